package engine

import (
	"errors"
	"fmt"
	"io"
	"net"

	"millrace/engine/vfs"
)

// Slice is a range of bytes of one segment: batches exactly as they were
// appended. It keeps its segment's file open until Release, also when retention
// takes the segment away meanwhile. Its size never changes.
//
// The first byte starts the batch that holds the offset asked for, so the batch
// may begin below it. The last batch may be cut off where the reader's max
// fell, as in Kafka; readers drop such a piece.
type Slice struct {
	First Offset // the first offset in it, as far as known: at or below the one asked for

	segment *segment // nil when empty or released
	file    vfs.File
	pos     int64
	size    int
}

// Size is how many bytes there are to send. 0 for a read at its limit.
func (s *Slice) Size() int { return s.size }

// ReadInto copies the bytes into dst, which must hold Size bytes. The slice
// stays usable.
func (s *Slice) ReadInto(dst []byte) error {
	if s.size == 0 {
		return nil
	}
	if s.segment == nil {
		panic("engine: Slice used after Release")
	}
	if len(dst) < s.size {
		return fmt.Errorf("read slice: %w: %d bytes for %d", io.ErrShortBuffer, len(dst), s.size)
	}
	if err := s.readFull(dst[:s.size]); err != nil {
		return fmt.Errorf("read slice of %s at %d: %w", s.segment.name(logSuffix), s.pos, err)
	}
	return nil
}

func (s *Slice) readFull(dst []byte) error {
	n, err := s.file.ReadCold(dst, s.pos)
	if n == len(dst) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// SendTo writes the bytes to c with sendfile where c allows it, and returns how
// many c took. No lock is held meanwhile, and the file's own position is not
// used, so that one segment can be sent to many at once.
func (s *Slice) SendTo(c net.Conn) (int64, error) {
	if s.size == 0 {
		return 0, nil
	}
	if s.segment == nil {
		panic("engine: Slice used after Release")
	}
	n, err := s.file.SendTo(c, s.pos, int64(s.size))
	if err != nil {
		return n, fmt.Errorf("send slice of %s at %d: %w", s.segment.name(logSuffix), s.pos, err)
	}
	return n, nil
}

// WillNeed asks the system to read the range now, so that ReadInto does not wait for the disk piece by piece: for small
// ranges, which are read one after another. SendTo reads ahead itself. A hint: failures are not reported.
func (s *Slice) WillNeed() {
	if s.segment != nil {
		_ = s.file.Advise(s.pos, int64(s.size), vfs.AdviseWillNeed)
	}
}

// Release ends the use of the slice. Each slice is released exactly once; an
// empty one may be left alone.
func (s *Slice) Release() {
	if seg := s.segment; seg != nil {
		s.segment, s.file = nil, nil
		seg.unpin()
	}
}
