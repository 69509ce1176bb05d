package single

import (
	"testing"

	"millrace/coord"
	"millrace/coord/contract"
)

// Claim: a broker cannot tell this Service from coord/controller's.
// Method: the contract, over a disk in memory.
func TestContract(t *testing.T) {
	contract.Run(t, func(t *testing.T) contract.Cluster {
		disk := newDisk(t)
		return contract.Cluster{Broker: 1, Open: func(t *testing.T) coord.Service { return open(t, disk) }, Written: disk.Operations}
	})
}
