package dump

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"millrace/engine/batch"
)

// Bytes of an entry of each kind of index.
const (
	offsetEntry = 8
	timeEntry   = 12
	txnEntry    = 34
)

// indexEntry is an entry of an offset index (offset, position) or of a time index (timestamp, offset).
type indexEntry struct{ key, value int64 }

// readIndex reads an index and drops the zeros that follow the last entry while it is written to.
func readIndex(path string, size int) ([]indexEntry, int64, error) {
	base, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), 10, 64)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: an index is named after its segment, twenty digits and %s", path, filepath.Ext(path))
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, base, err
	}
	if len(b)%size != 0 {
		return nil, base, fmt.Errorf("%s: %d bytes; an index has a multiple of %d", path, len(b), size)
	}
	var all []indexEntry
	for ; len(b) > 0; b = b[size:] {
		var e indexEntry
		if size == offsetEntry {
			e = indexEntry{base + int64(binary.BigEndian.Uint32(b)), int64(binary.BigEndian.Uint32(b[4:]))}
			if e.value == 0 && e.key == base && len(all) > 0 {
				break
			}
		} else {
			e = indexEntry{int64(binary.BigEndian.Uint64(b)), base + int64(binary.BigEndian.Uint32(b[8:]))}
			if e.key == 0 && e.value == base && len(all) > 0 {
				break
			}
		}
		all = append(all, e)
	}
	if len(all) == 1 && (all[0] == indexEntry{base, 0} || all[0] == indexEntry{0, base}) {
		all = nil // only zeros: an empty index that is being written to
	}
	return all, base, nil
}

// rising is an error if keys fall.
func rising(path string, all []indexEntry) error {
	for i := 1; i < len(all); i++ {
		if all[i].key < all[i-1].key || all[i].value < all[i-1].value {
			return fmt.Errorf("%s: entry %d (%d, %d) does not rise above the one before (%d, %d)", path, i, all[i].key, all[i].value, all[i-1].key, all[i-1].value)
		}
	}
	return nil
}

func dumpIndex(w *bufio.Writer, errs io.Writer, path string, o Options) error {
	all, _, err := readIndex(path, offsetEntry)
	if err == nil && len(all) == 0 {
		fmt.Fprintf(w, "%s is empty.\n", path)
		return nil
	}
	if err == nil && o.SanityCheck {
		if err = rising(path, all); err == nil {
			fmt.Fprintf(w, "%s passed sanity check.\n", path)
		}
		return err
	}
	if err != nil {
		return err
	}
	var wrong []string
	for _, e := range all {
		if !o.VerifyOnly {
			fmt.Fprintf(w, "offset: %d position: %d\n", e.key, e.value)
		}
		last, err := batchAt(logOf(path), e.value)
		if err != nil {
			return err
		}
		if last != e.key {
			wrong = append(wrong, fmt.Sprintf("  Index offset: %d, log offset: %d", e.key, last))
		}
	}
	mismatches(w, errs, "Mismatches in :"+path, wrong)
	return nil
}

func mismatches(w *bufio.Writer, errs io.Writer, head string, list []string) {
	if len(list) > 0 {
		w.Flush()
		fmt.Fprintf(errs, "%s\n%s\n", head, strings.Join(list, "\n"))
	}
}

func logOf(index string) string { return strings.TrimSuffix(index, filepath.Ext(index)) + ".log" }

// batchAt is the last offset of the batch at a position of a segment.
func batchAt(log string, pos int64) (int64, error) {
	f, err := os.Open(log)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head := make([]byte, batch.HeaderSize)
	n, err := f.ReadAt(head, pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if n < 17 {
		return 0, fmt.Errorf("%s: no batch at position %d", log, pos)
	}
	base := int64(binary.BigEndian.Uint64(head))
	if head[16] >= 2 && n == len(head) {
		return batch.View(head).LastOffset(), nil
	}
	return base, nil
}

func dumpTimeIndex(w *bufio.Writer, errs io.Writer, path string, o Options) error {
	all, _, err := readIndex(path, timeEntry)
	if err == nil && o.SanityCheck {
		if err = rising(path, all); err == nil {
			fmt.Fprintf(w, "%s passed sanity check.\n", path)
		}
		return err
	}
	if err != nil {
		return err
	}
	// What the log says of the offsets that the index names: the largest timestamp up to each.
	truth := map[int64]int64{}
	i, largest := 0, int64(math.MinInt64)
	_, _, err = entries(logOf(path), func(_ int64, b []byte) error {
		for r, err := range batch.Records(b) {
			if err != nil {
				return nil // the log's own dump names it
			}
			largest = max(largest, r.Timestamp)
			for i < len(all) && all[i].value <= r.Offset {
				truth[all[i].value] = largest
				i++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var wrong, falling []string
	for i, e := range all {
		if !o.VerifyOnly {
			fmt.Fprintf(w, "timestamp: %d offset: %d\n", e.key, e.value)
		}
		if t, ok := truth[e.value]; ok && t != e.key {
			wrong = append(wrong, fmt.Sprintf("  Index timestamp: %d, log timestamp: %d", e.key, t))
		}
		if i > 0 && e.key < all[i-1].key {
			falling = append(falling, fmt.Sprintf("  Index timestamp: %d, previously indexed timestamp: %d", e.key, all[i-1].key))
		}
	}
	mismatches(w, errs, "Found timestamp mismatch in :"+path, wrong)
	mismatches(w, errs, "Found out of order timestamp in :"+path, falling)
	return nil
}

func dumpTxnIndex(w *bufio.Writer, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(b)%txnEntry != 0 {
		return fmt.Errorf("%s: %d bytes; a transaction index has a multiple of %d", path, len(b), txnEntry)
	}
	for ; len(b) > 0; b = b[txnEntry:] {
		be := binary.BigEndian
		fmt.Fprintf(w, "version: %d producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n", be.Uint16(b), be.Uint64(b[2:]), be.Uint64(b[10:]), be.Uint64(b[18:]), be.Uint64(b[26:]))
	}
	return nil
}

// dumpSnapshot prints a producer snapshot (storage-formats: version int16, CRC-32C int32 of what follows, entries).
func dumpSnapshot(w *bufio.Writer, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	list, err := readSnapshot(path, b)
	for _, p := range list {
		first := "OptionalLong.empty"
		if p.txnFirst >= 0 {
			first = fmt.Sprintf("OptionalLong[%d]", p.txnFirst)
		}
		fmt.Fprintf(w, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d ", p.id, p.epoch, p.coordinatorEpoch, first, p.timestamp)
		if p.lastOffset >= 0 {
			firstSequence := (int64(p.lastSequence) - int64(p.delta)) & 0x7fffffff
			fmt.Fprintf(w, "firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d", firstSequence, p.lastSequence, p.lastOffset, p.delta, p.timestamp)
		}
		fmt.Fprintln(w)
	}
	return err
}

// dumpCheckpoint prints a checkpoint file of a data directory or of a partition as it is: it is text.
func dumpCheckpoint(w *bufio.Writer, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}
