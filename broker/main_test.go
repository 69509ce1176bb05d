package broker

import (
	"testing"

	"go.uber.org/goleak"
)

// Claim: a stopped broker leaves no goroutine behind.
// Method: after all tests of the package, none may run.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
