package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FillTopic sends the frame n times in all, over r.Connections at once.
func FillTopic(addr string, r Row, frame []byte, n int) error {
	errs := make([]error, r.Connections)
	var wg sync.WaitGroup
	for i := range errs {
		share := n / r.Connections
		if i < n%r.Connections {
			share++
		}
		wg.Go(func() { errs[i] = Fill(addr, r, frame, share) }) // ends with the last answer
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ReadAll reads a topic's partitions 0 … partitions-1 from offset 0 to the given end, one connection each, in fetches of at most
// the given bytes. Of the result, Requests, Bytes and Elapsed are filled in. It looks at batch headers only.
func ReadAll(addr, topic string, partitions int, end int64, fetch int) (Result, error) {
	results, errs := make([]Result, partitions), make([]error, partitions)
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range partitions {
		wg.Go(func() { results[i], errs[i] = readPartition(addr, topic, int32(i), end, fetch) }) // ends at the partition's end
	}
	wg.Wait()
	sum := Result{Elapsed: time.Since(begun)}
	for _, r := range results {
		sum.Requests += r.Requests
		sum.Bytes += r.Bytes
	}
	return sum, errors.Join(errs...)
}

func readPartition(addr, topic string, partition int32, end int64, fetch int) (Result, error) {
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return Result{}, err
	}
	defer c.Close()
	var res Result
	var buf []byte
	for next := int64(0); next < end; {
		c.SetDeadline(time.Now().Add(60 * time.Second))
		if _, err := c.Write(fetchFrame(topic, partition, next, fetch)); err != nil {
			return res, err
		}
		if buf, err = readFrame(c, buf); err != nil {
			return res, err
		}
		records, err := fetchedRecords(buf)
		if err != nil {
			return res, fmt.Errorf("fetching %s-%d at %d: %w", topic, partition, next, err)
		}
		after := afterBatches(records)
		if after <= next {
			return res, fmt.Errorf("fetching %s-%d at %d brought nothing new; the end should be %d", topic, partition, next, end)
		}
		res.Requests++
		res.Bytes += int64(len(records))
		next = after
	}
	return res, nil
}

func fetchFrame(topic string, partition int32, offset int64, bytes int) []byte {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(fetchVersion)
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 500, 1, 64<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, int32(bytes)
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return Frame(req)
}

// readFrame reads one answer without its size, into buf if it is large enough.
func readFrame(c io.Reader, buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return buf, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > 256<<20 {
		return buf, fmt.Errorf("an answer of %d bytes", n)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	_, err := io.ReadFull(c, buf)
	return buf, err
}

// fetchedRecords finds the records in an answer to Fetch v11 about one partition.
func fetchedRecords(b []byte) ([]byte, error) {
	short := errors.New("the answer is too short")
	at := 4 + 4 // correlation id, throttle time
	if len(b) < at+12 {
		return nil, short
	}
	if code := int16(binary.BigEndian.Uint16(b[at:])); code != 0 {
		return nil, fmt.Errorf("error code %d", code)
	}
	at += 2 + 4 + 4 // error, session, count of topics
	at += 2 + int(binary.BigEndian.Uint16(b[at:])) + 4 + 4
	if len(b) < at+2+24+4+4+4 {
		return nil, short
	}
	if code := int16(binary.BigEndian.Uint16(b[at:])); code != 0 {
		return nil, fmt.Errorf("error code %d", code)
	}
	at += 2 + 24 // error; high watermark, last stable and first offset
	at += 4 + 16*max(0, int(int32(binary.BigEndian.Uint32(b[at:]))))
	at += 4 // preferred replica
	if len(b) < at+4 {
		return nil, short
	}
	n := int(int32(binary.BigEndian.Uint32(b[at:])))
	at += 4
	if n < 0 || len(b) < at+n {
		return nil, short
	}
	return b[at : at+n], nil
}

// afterBatches is the offset that follows the last whole batch; -1 if there is none.
func afterBatches(b []byte) int64 {
	next := int64(-1)
	for len(b) >= 27 {
		size := 12 + int(binary.BigEndian.Uint32(b[8:]))
		if size > len(b) {
			break
		}
		next = int64(binary.BigEndian.Uint64(b)) + int64(int32(binary.BigEndian.Uint32(b[23:]))) + 1
		b = b[size:]
	}
	return next
}
