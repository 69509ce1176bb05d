package engine

import (
	"cmp"
	"fmt"

	"millrace/engine/vfs"
)

// openSystem opens the operating system's files in the way that is asked for, unless the caller brings an FS of its own, and says which way it became.
func openSystem(o *StoreOptions) (*vfs.System, error) {
	if o.FS != nil {
		return nil, nil
	}
	system, err := vfs.OSWith(cmp.Or(o.IO, vfs.IOAuto))
	if err != nil {
		return nil, fmt.Errorf("millrace.io=%s: %w", o.IO, err)
	}
	o.FS = system
	if why := system.Refused(); why != nil {
		o.Logger.Info("files are read and synced by plain system calls", "millrace.io", system.Way(), "reason", why)
	} else {
		o.Logger.Info("files are read and synced", "millrace.io", system.Way(), "asked", cmp.Or(o.IO, vfs.IOAuto))
	}
	return system, nil
}

// closeSystem gives back what openSystem took. Ranges that are being sent still are sent by plain calls.
func (s *Store) closeSystem() {
	if s.system != nil {
		s.system.Close()
	}
}

// IO is how files are read and synced: "ring" or "pool", or "" with an FS that is not the operating system's.
func (s *Store) IO() string {
	if s.system == nil {
		return ""
	}
	return s.system.Way()
}
