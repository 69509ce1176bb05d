// Package dump prints the files of a data directory as Kafka's DumpLogSegments does, says what is wrong with them, and saves what
// can be saved. It reads files and nothing else: no broker has to run, and a running one is not disturbed.
package dump

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"millrace/engine/batch"
)

// Options say how much is printed; the names are those of Kafka's flags.
type Options struct {
	Deep         bool  // every record
	Print        bool  // and its key and value
	SkipMetadata bool  // only key and value
	SanityCheck  bool  // of an index: only whether it passes the check of a start
	VerifyOnly   bool  // of an index: only what does not fit the log
	Offsets      bool  // keys and values are those of __consumer_offsets
	MaxBytes     int64 // of batches read from a log; 0: all
}

// File prints one file by its suffix.
func File(out, errs io.Writer, path string, o Options) error {
	fmt.Fprintf(out, "Dumping %s\n", path)
	w := bufio.NewWriterSize(out, 1<<16)
	defer w.Flush()
	switch filepath.Ext(path) {
	case ".log":
		return dumpLog(w, errs, path, o)
	case ".index":
		return dumpIndex(w, errs, path, o)
	case ".timeindex":
		return dumpTimeIndex(w, errs, path, o)
	case ".txnindex":
		return dumpTxnIndex(w, path)
	case ".snapshot":
		return dumpSnapshot(w, path)
	}
	if strings.HasSuffix(path, "-checkpoint") {
		return dumpCheckpoint(w, path)
	}
	fmt.Fprintf(errs, "Ignoring unknown file %s\n", path)
	return nil
}

// entries calls each for every whole entry of a segment, in order. At bytes that cannot be one it stops and returns how many there
// are from there on, and why.
func entries(path string, each func(pos int64, b []byte) error) (rest int64, why, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	r := bufio.NewReaderSize(f, 1<<20)
	var buf []byte
	for pos := int64(0); pos < st.Size(); {
		head, err := r.Peek(int(min(batch.HeaderSize, st.Size()-pos)))
		if err != nil {
			return 0, nil, err
		}
		n, err := batch.Split(head)
		if err != nil && (!errors.Is(err, batch.ErrShort) || n == 0) || int64(n) > st.Size()-pos {
			if n > 0 {
				err = fmt.Errorf("a batch of %d bytes where %d are left", n, st.Size()-pos)
			}
			return st.Size() - pos, err, nil
		}
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		if _, err := io.ReadFull(r, buf); err != nil {
			return 0, nil, err
		}
		if err := each(pos, buf); err != nil {
			if errors.Is(err, io.EOF) {
				return 0, nil, nil
			}
			return 0, nil, err
		}
		pos += int64(n)
	}
	return 0, nil, nil
}

func dumpLog(w *bufio.Writer, errs io.Writer, path string, o Options) error {
	name := filepath.Base(path)
	base, err := strconv.ParseInt(strings.TrimSuffix(name, ".log"), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: a segment is named after its first offset, twenty digits and .log", path)
	}
	fmt.Fprintf(w, "Log starting offset: %d\n", base)
	o.Deep = o.Deep || o.Print || o.Offsets
	last, gaps := int64(-1), []string(nil)
	rest, _, err := entries(path, func(pos int64, b []byte) error {
		if o.MaxBytes > 0 && pos+int64(len(b)) > o.MaxBytes {
			return io.EOF
		}
		_, cerr := batch.CheckStored(b)
		printBatch(w, b, pos, cerr == nil)
		if !o.Deep {
			return nil
		}
		sequence := int64(-1)
		if b[16] >= 2 {
			sequence = int64(batch.View(b).BaseSequence())
		}
		for r, err := range batch.Records(b) {
			if err != nil {
				fmt.Fprintf(errs, "%s: records of the batch at position %d cannot be read: %v\n", path, pos, err)
				break
			}
			if last >= 0 && r.Offset != last+1 {
				gaps = append(gaps, fmt.Sprintf("  %d is followed by %d", last, r.Offset))
			}
			last = r.Offset
			if err := printRecord(w, b, &r, sequence, o); err != nil {
				fmt.Fprintf(errs, "%s: offset %d: %v\n", path, r.Offset, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if rest > 0 {
		fmt.Fprintf(w, "Found %d invalid bytes at the end of %s\n", rest, name)
	}
	if len(gaps) > 0 {
		w.Flush()
		fmt.Fprintf(errs, "Non-consecutive offsets in %s\n%s\n", path, strings.Join(gaps, "\n"))
	}
	return nil
}

func printBatch(w *bufio.Writer, b []byte, pos int64, valid bool) {
	if b[16] < 2 {
		stamp, kind := int64(-1), "NoTimestampType"
		if b[16] == 1 {
			stamp, kind = int64(binary.BigEndian.Uint64(b[18:])), "CreateTime"
			if b[17]&8 != 0 {
				kind = "LogAppendTime"
			}
		}
		fmt.Fprintf(w, "offset: %d position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %v\n", binary.BigEndian.Uint64(b), pos, kind, stamp,
			len(b), b[16], batch.Codec(b[17]&7), binary.BigEndian.Uint32(b[12:]), valid)
		return
	}
	v := batch.View(b)
	horizon := "OptionalLong.empty"
	if v.HasDeleteHorizon() {
		horizon = fmt.Sprintf("OptionalLong[%d]", v.BaseTimestamp())
	}
	lastSequence := v.BaseSequence()
	if lastSequence >= 0 {
		lastSequence = int32((int64(lastSequence) + int64(v.LastOffsetDelta())) & 0x7fffffff)
	}
	fmt.Fprintf(w, "baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %v isControl: %v deleteHorizonMs: %s",
		v.BaseOffset(), v.LastOffset(), v.Count(), v.BaseSequence(), lastSequence, v.ProducerID(), v.ProducerEpoch(), v.LeaderEpoch(), v.IsTransactional(), v.IsControl(), horizon)
	fmt.Fprintf(w, " position: %d %s: %d size: %d magic: 2 compresscodec: %s crc: %d isvalid: %v\n", pos, timeKind(v), v.MaxTimestamp(), len(b), v.Codec(), v.CRC(), valid)
}

func timeKind(v batch.View) string {
	if v.AppendTime() {
		return "LogAppendTime"
	}
	return "CreateTime"
}

func printRecord(w *bufio.Writer, b []byte, r *batch.Record, sequence int64, o Options) error {
	control := b[16] >= 2 && batch.View(b).IsControl()
	if o.SkipMetadata && control {
		return nil
	}
	w.WriteByte('|')
	if !o.SkipMetadata {
		kind := "CreateTime"
		if b[16] >= 2 {
			kind = timeKind(batch.View(b))
		}
		fmt.Fprintf(w, " offset: %d %s: %d keySize: %d valueSize: %d", r.Offset, kind, r.Timestamp, sizeOf(r.Key), sizeOf(r.Value))
		if b[16] >= 2 {
			if sequence >= 0 {
				sequence = (sequence + r.Offset - batch.View(b).BaseOffset()) & 0x7fffffff
			}
			keys := make([]string, len(r.Headers))
			for i, h := range r.Headers {
				keys[i] = h.Key
			}
			fmt.Fprintf(w, " sequence: %d headerKeys: [%s]", sequence, strings.Join(keys, ","))
		}
		if control {
			printMarker(w, r)
		}
	}
	var err error
	if !control && (o.Print || o.Offsets) {
		key, value := string(r.Key), string(r.Value)
		hasKey, hasValue := r.Key != nil, r.Value != nil
		if o.Offsets {
			key, value, err = decodeGroupRecord(r.Key, r.Value)
			hasValue = err == nil
		}
		if hasKey {
			fmt.Fprintf(w, " key: %s", key)
		}
		if hasValue {
			fmt.Fprintf(w, " payload: %s", value)
		}
	}
	w.WriteByte('\n')
	return err
}

func sizeOf(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

// printMarker prints the end of a transaction.
func printMarker(w *bufio.Writer, r *batch.Record) {
	if len(r.Key) < 4 || len(r.Value) < 6 {
		return
	}
	switch binary.BigEndian.Uint16(r.Key[2:]) {
	case 0:
		fmt.Fprintf(w, " endTxnMarker: ABORT coordinatorEpoch: %d", int32(binary.BigEndian.Uint32(r.Value[2:])))
	case 1:
		fmt.Fprintf(w, " endTxnMarker: COMMIT coordinatorEpoch: %d", int32(binary.BigEndian.Uint32(r.Value[2:])))
	}
}
