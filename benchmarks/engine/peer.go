package main

import (
	"errors"
	"fmt"
)

// peer is one library that can be measured.
type peer struct {
	name   string
	module string // whose version the report names
	open   func(dir string, o options) (store, error)

	// What the library does not do, each with the reason that stands in the table in place of a figure.
	unsynced string // appends that do not wait for the disk
	random   string // reading a record by its number
	tail     string // reading a log that is being appended to

	// weaker says what its unsynced acknowledgement means if that is less than: a crash of the process loses nothing. Its figures in
	// those rows are shown, and not counted when the best is looked for.
	weaker string
}

// options say how a store is opened. A directory that is not empty is opened as a process would after a crash, which takes
// as long as it takes until all that was acknowledged can be read and the next append would be accepted.
type options struct {
	logs    int
	synced  bool // every append that was acknowledged survives a loss of power
	writers int  // how many goroutines append at once
}

// segmentBytes is what a library that reserves its segments is told, so that a thousand logs fit on the disk: 64 MiB for one log, which
// is the default of those that do, a share of 1 GiB for many.
func (o options) segmentBytes() int { return max(1<<20, min(64<<20, (1<<30)/o.logs)) }

// store is some logs of one library, in one directory.
type store interface {
	// writer returns what one goroutine appends with. It returns when the records are as safe as options.synced says.
	// The records' memory is the caller's again then.
	writer() func(log int, records [][]byte) error

	// scan calls each for every record of a log, in order. The record is valid during the call. Appends have ended.
	scan(log int, each func(record []byte) error) error

	// reader reads log 0 while it is appended to, from its present end on or anywhere; nil if the library cannot.
	reader(random bool) (reader, error)

	close() error
}

// reader reads records by their number, from 0.
type reader interface {
	// read calls each for n records from number first on.
	read(first int64, n int, each func(record []byte) error) error
	close() error
}

var peers = []peer{millracePeer, raftwalPeer, tidwallPeer, etcdPeer, wlogPeer, pebblePeer, natsPeer}

func peerOf(name string) (peer, error) {
	for _, p := range peers {
		if p.name == name {
			return p, nil
		}
	}
	return peer{}, fmt.Errorf("no peer %q", name)
}

// openAll opens one log after the other with one function, closing those that are open if one fails.
func openAll[T interface{ close() error }](n int, open func(i int) (T, error)) ([]T, error) {
	logs := make([]T, 0, n)
	for i := range n {
		l, err := open(i)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("log %d: %w", i, err), closeAll(logs))
		}
		logs = append(logs, l)
	}
	return logs, nil
}

func closeAll[T interface{ close() error }](logs []T) error {
	var errs []error
	for _, l := range logs {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}
