package payload

import (
	"errors"
	"io"
)

// Survey is what one pass over a file tells before anything is sent.
type Survey struct {
	Records int64
	Bytes   int64 // of the stream, delimiters included
	Longest int   // bytes of the longest record
	Least   int   // bytes of the shortest record
}

// Look reads r to its end and says what is in it. It costs about 0.1 s for
// 200 MB and buys a right total for progress and a batch limit that fits.
func Look(r io.Reader, o Options) (Survey, error) {
	var s Survey
	reader := NewReader(r, o)
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		if s.Records == 0 || len(record) < s.Least {
			s.Least = len(record)
		}
		s.Longest = max(s.Longest, len(record))
		s.Records++
		s.Bytes = reader.Bytes()
	}
}
