package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/payload"
)

// source gives the values of records. Each producer has one of its own.
type source interface {
	// append adds the value of record i to dst. io.EOF: there are no more.
	append(dst []byte, i int64) ([]byte, error)
}

// letters are records of a fixed size made of random capital letters, as Kafka's
// tool makes them: about 4.7 bits a byte, so codecs find little but not nothing.
type letters struct {
	size   int
	random *rand.Rand
}

func (l *letters) append(dst []byte, _ int64) ([]byte, error) {
	for left := l.size; left > 0; {
		bits := l.random.Uint64()
		for n := min(left, 8); n > 0; n-- {
			dst = append(dst, 'A'+byte(uint32(byte(bits))*26>>8))
			bits >>= 8
			left--
		}
	}
	return dst, nil
}

// numbers are records that count.
type numbers struct{}

func (numbers) append(dst []byte, i int64) ([]byte, error) { return strconv.AppendInt(dst, i, 10), nil }

// picks are records of a file, one at random each time.
type picks struct {
	records [][]byte
	random  *rand.Rand
}

func (p *picks) append(dst []byte, _ int64) ([]byte, error) {
	return append(dst, p.records[p.random.IntN(len(p.records))]...), nil
}

// sequence is a stream's records in order. If the stream is a file and more
// records are asked for than it has, it begins again.
type sequence struct {
	reader *payload.Reader
	again  func() (*payload.Reader, error) // nil: the end of the stream is the end
}

func (s *sequence) append(dst []byte, _ int64) ([]byte, error) {
	value, err := s.reader.Next()
	if errors.Is(err, io.EOF) && s.again != nil {
		if s.reader, err = s.again(); err == nil {
			value, err = s.reader.Next()
		}
	}
	return append(dst, value...), err
}

// payload makes the plan's sources, and sets what is known from looking at the
// file: how many records it has, and how large the largest is.
func (o *options) payload(p *plan) (func(producer int) source, error) {
	seeded := func(producer int) *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), uint64(producer))) }
	s := p.settings
	switch {
	case o.payloadFile != "":
		delimiter, err := cli.Unescape(o.delimiter)
		if err != nil {
			return nil, cli.Usagef("--payload-delimiter: %w", err)
		}
		if delimiter == "" {
			return nil, cli.Usagef("--payload-delimiter is empty")
		}
		return o.filePayload(p, payload.Options{Delimiter: delimiter, Limit: s.MaxRequestSize - client.RecordOverhead}, seeded)
	case o.monotonic:
		s.LargestRecord = 20
		return func(int) source { return numbers{} }, nil
	}
	s.LargestRecord = int(o.recordSize)
	if err := fits(s.LargestRecord, s.MaxRequestSize); err != nil {
		return nil, err
	}
	return func(n int) source { return &letters{int(o.recordSize), seeded(n)} }, nil
}

func fits(size, most int) error {
	if size+client.RecordOverhead <= most {
		return nil
	}
	return cli.Usagef("a record of %d bytes does not fit max.request.size=%d; raise it with --command-property max.request.size=%d",
		size, most, size+client.RecordOverhead)
}

func (o *options) filePayload(p *plan, ro payload.Options, seeded func(int) *rand.Rand) (func(int) source, error) {
	if o.payloadFile == "-" {
		reader := payload.NewReader(os.Stdin, ro)
		return func(int) source { return &sequence{reader: reader} }, nil
	}
	file, err := os.Open(o.payloadFile)
	if err != nil {
		return nil, err
	}
	survey, err := payload.Look(file, payload.Options{Delimiter: ro.Delimiter})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.payloadFile, err)
	}
	if survey.Records == 0 {
		return nil, cli.Usagef("%s is empty", o.payloadFile)
	}
	if err := fits(survey.Longest, p.settings.MaxRequestSize); err != nil {
		return nil, fmt.Errorf("%s: %w", o.payloadFile, err)
	}
	p.settings.LargestRecord = survey.Longest

	begin := func() (*payload.Reader, error) {
		_, err := file.Seek(0, io.SeekStart)
		return payload.NewReader(file, ro), err
	}
	if o.order == "sequence" {
		if p.records < 0 {
			p.records = survey.Records
		}
		reader, err := begin()
		return func(int) source { return &sequence{reader, begin} }, err
	}
	defer file.Close()
	reader, err := begin()
	if err != nil {
		return nil, err
	}
	records := make([][]byte, 0, survey.Records)
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return func(n int) source { return &picks{records, seeded(n)} }, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.payloadFile, err)
		}
		records = append(records, bytes.Clone(record))
	}
}
