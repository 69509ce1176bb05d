package producers

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
	"unsafe"

	"millrace/engine/batch"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func info(id int64, epoch int16, seq int32, count int32) batch.Info {
	return batch.Info{ProducerID: id, ProducerEpoch: epoch, BaseSequence: seq, Count: count, LastOffsetDelta: count - 1, Magic: 2}
}

func marker(id int64, epoch int16) batch.Info {
	return batch.Info{ProducerID: id, ProducerEpoch: epoch, BaseSequence: -1, Count: 1, Magic: 2, Attributes: 0x30}
}

// Claim: every row of Kafka's idempotence table is answered as Kafka does.
// Method: one history per row, then one batch and its verdict.
func TestSequenceRules(t *testing.T) {
	const pid = 7
	accepted, outOfOrder, fenced, duplicate := "accepted", "out of order", "fenced", "duplicate"
	rows := []struct {
		name    string
		history []batch.Info
		next    batch.Info
		want    string
	}{
		{"no producer", nil, batch.Info{ProducerID: -1, BaseSequence: -1}, accepted},
		{"unknown producer, any sequence", nil, info(pid, 3, 77, 2), accepted},
		{"next in order", []batch.Info{info(pid, 0, 0, 5)}, info(pid, 0, 5, 1), accepted},
		{"gap", []batch.Info{info(pid, 0, 0, 5)}, info(pid, 0, 6, 1), outOfOrder},
		{"last again", []batch.Info{info(pid, 0, 0, 5)}, info(pid, 0, 0, 5), duplicate},
		{"same first, other length", []batch.Info{info(pid, 0, 0, 5)}, info(pid, 0, 0, 4), outOfOrder},
		{"fifth last again", five(pid, 0), info(pid, 0, 0, 2), duplicate},
		{"sixth last again", append(five(pid, 0), info(pid, 0, 10, 2)), info(pid, 0, 0, 2), outOfOrder},
		{"wrap of the sequence", []batch.Info{info(pid, 0, math.MaxInt32-1, 2)}, info(pid, 0, 0, 1), accepted},
		{"wrap inside the batch", []batch.Info{info(pid, 0, math.MaxInt32, 3)}, info(pid, 0, 2, 1), accepted},
		{"wrap inside the batch, again", []batch.Info{info(pid, 0, math.MaxInt32, 3)}, info(pid, 0, math.MaxInt32, 3), duplicate},
		{"old epoch", []batch.Info{info(pid, 4, 0, 1)}, info(pid, 3, 1, 1), fenced},
		{"old epoch, same sequences", []batch.Info{info(pid, 4, 0, 1)}, info(pid, 3, 0, 1), fenced},
		{"new epoch at 0", []batch.Info{info(pid, 4, 9, 1)}, info(pid, 5, 0, 1), accepted},
		{"new epoch not at 0", []batch.Info{info(pid, 4, 9, 1)}, info(pid, 5, 10, 1), outOfOrder},
		{"after a marker of this epoch", []batch.Info{info(pid, 4, 0, 2), marker(pid, 4)}, info(pid, 4, 2, 1), accepted},
		{"after a marker that raised the epoch", []batch.Info{info(pid, 4, 0, 2), marker(pid, 5)}, info(pid, 5, 2, 1), outOfOrder},
		{"after a marker that raised the epoch, at 0", []batch.Info{info(pid, 4, 0, 2), marker(pid, 5)}, info(pid, 5, 0, 1), accepted},
		{"old marker", []batch.Info{info(pid, 4, 0, 2)}, marker(pid, 3), fenced},
		{"marker", []batch.Info{info(pid, 4, 0, 2)}, marker(pid, 4), accepted},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			table := New(time.Hour)
			for i, h := range row.history {
				table.Update(h, int64(1000+100*i), int64(50+i))
			}
			dup, err := table.Check(row.next)
			got := accepted
			var refused *SequenceError
			switch {
			case errors.As(err, &refused) && refused.Kind == FencedEpoch:
				got = fenced
			case errors.As(err, &refused):
				got = outOfOrder
			case dup != nil:
				got = duplicate
				if dup.Base != 1000 || dup.Timestamp != 50 { // all rows repeat the first of their history
					t.Fatalf("answered with %+v", *dup)
				}
			}
			if got != row.want {
				t.Fatalf("%s (%v), want %s", got, err, row.want)
			}
			if err != nil && (refused.ProducerID != pid || err.Error() == "") {
				t.Fatalf("%+v", err)
			}
		})
	}
}

func five(pid int64, epoch int16) []batch.Info {
	var h []batch.Info
	for i := range int32(5) {
		h = append(h, info(pid, epoch, 2*i, 2))
	}
	return h
}

// Claim: Rollback leaves no trace of what was noted since Begin, Commit keeps it.
// Method: snapshots before, after rollback and after commit; old, new and twice touched producers.
func TestRollbackLeavesNoTrace(t *testing.T) {
	table := New(time.Hour)
	for _, h := range five(1, 0) {
		table.Update(h, 0, 1)
	}
	before := string(table.Snapshot())
	change := func() {
		table.Begin()
		table.Update(info(1, 0, 10, 2), 100, 2)
		table.Update(info(2, 0, 0, 1), 102, 2)
		table.Update(info(2, 0, 1, 1), 103, 2)
		table.Update(info(1, 1, 0, 1), 104, 2)
		if dup, err := table.Check(info(2, 0, 1, 1)); dup == nil || err != nil { // seen within the batch of writes
			t.Fatal(dup, err)
		}
	}
	change()
	table.Rollback()
	if string(table.Snapshot()) != before || table.Len() != 1 {
		t.Fatal("rollback left something")
	}
	if dup, _ := table.Check(info(1, 0, 0, 2)); dup == nil {
		t.Fatal("rollback lost the oldest of five batches")
	}
	change()
	table.Commit()
	if string(table.Snapshot()) == before || table.Len() != 2 {
		t.Fatal("commit kept nothing")
	}
}

// Claim: F075 an idle producer is known until its expiry and not an hour longer, by our clock, whatever
// timestamps its records have; afterwards any sequence is accepted.
// Method: records of the distant past and future, swept every minute.
func TestField_F075_IdleProducerIsKnownUntilExpiry(t *testing.T) {
	for _, ts := range []int64{0, noon.UnixMilli(), noon.AddDate(50, 0, 0).UnixMilli()} {
		table := New(time.Hour)
		table.Expire(noon)
		table.Update(info(1, 0, 0, 5), 0, ts)
		for minute := range 60 {
			table.Expire(noon.Add(time.Duration(minute) * time.Minute))
			if _, err := table.Check(info(1, 0, 6, 1)); err == nil {
				t.Fatalf("timestamp %d: forgotten after %d minutes", ts, minute)
			}
		}
		table.Expire(noon.Add(62 * time.Minute))
		if table.Len() != 0 {
			t.Fatalf("timestamp %d: still there after an hour", ts)
		}
		if dup, err := table.Check(info(1, 0, 6, 1)); dup != nil || err != nil {
			t.Fatalf("a continuing sequence after expiry: %v, %v", dup, err)
		}
	}
}

// Claim: a producer with an open transaction does not expire, and OpenTxn finds the oldest.
// Method: two open ones, one ended by its marker, years later.
func TestOpenTransactionDoesNotExpire(t *testing.T) {
	table := New(time.Hour)
	txn := info(1, 0, 0, 5)
	txn.Attributes = 0x10
	table.Update(txn, 40, 0)
	txn.ProducerID = 2
	table.Update(txn, 45, 0)
	table.Expire(noon)
	table.Expire(noon.AddDate(1, 0, 0))
	if first, ok := table.OpenTxn(); table.Len() != 2 || first != 40 || !ok {
		t.Fatal(table.Len(), first, ok)
	}
	table.Update(marker(1, 0), 50, 0)
	if first, ok := table.OpenTxn(); first != 45 || !ok {
		t.Fatal(first, ok)
	}
	table.Expire(noon.AddDate(1, 0, 1))
	table.Expire(noon.AddDate(1, 0, 2))
	if table.Len() != 1 {
		t.Fatalf("%d producers", table.Len())
	}
}

// Claim: a producer's memory is bounded whatever it sends, and checking it allocates nothing.
// Method: the struct's size; allocations of 1000 batches in steady state.
func TestMemoryPerProducerIsBounded(t *testing.T) {
	if size := unsafe.Sizeof(producer{}); size > 200 {
		t.Fatalf("%d bytes a producer", size)
	}
	table := New(time.Hour)
	seq := int32(0)
	allocations := testing.AllocsPerRun(1000, func() {
		i := info(1, 0, seq, 3)
		table.Begin()
		if _, err := table.Check(i); err != nil {
			t.Fatal(err)
		}
		table.Update(i, int64(seq), 0)
		table.Commit()
		seq += 3
	})
	if allocations > 0 {
		t.Fatalf("%v allocations a batch", allocations)
	}
}

func ExampleTable() {
	table := New(24 * time.Hour)
	i := info(9, 0, 0, 10)
	table.Update(i, 500, 1700000000000)
	dup, err := table.Check(i)
	fmt.Println(dup.Base, dup.Timestamp, err)
	_, err = table.Check(info(9, 0, 11, 1))
	fmt.Println(err)
	// Output:
	// 500 1700000000000 <nil>
	// producer 9 epoch 0: sequence 11 is out of order, want 10
}
