package engine

import (
	"fmt"
	"io"
)

// ReadStart copies the first len(dst) bytes of the slice: for those who need
// only the first batch's header. The slice stays usable.
func (s *Slice) ReadStart(dst []byte) error {
	if s.segment == nil {
		panic("engine: Slice used after Release, or empty")
	}
	if len(dst) > s.size {
		return fmt.Errorf("read start of slice: %w: %d bytes of %d", io.ErrShortBuffer, len(dst), s.size)
	}
	if err := readFull(s.file, dst, s.pos); err != nil {
		return fmt.Errorf("read start of slice of %s at %d: %w", s.segment.name(logSuffix), s.pos, err)
	}
	return nil
}
