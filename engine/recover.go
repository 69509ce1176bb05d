package engine

// place is where a segment stands in its log when a crash is looked at.
type place int8

const (
	lastSegment place = iota
	beforeLast        // the crash may have come in the middle of a roll
	earlier
)

// finding is what recovery knows when it has looked at one batch.
type finding struct {
	length   bool // it can be framed: a known format, not longer than what is there
	checksum bool // as stored
	sane     bool // offsets above those before it and below the next segment's (L1), epoch possible
	place    place
	clean    bool // the directory was stopped cleanly
	above    bool // above the recovery point: nobody said that it was synced here
	synced   bool // the log's durability is sync, and was when its segments were closed (looseName)
	proven   bool // the journal holds later batches that do not connect: what is missing here was acknowledged
	reached  bool // a closed segment that already holds all up to the next one
}

// verdict is what to do with the segment from this batch on.
type verdict int8

const (
	keep     verdict = iota + 1
	cut              // cut the file here; later segments are kept under another name
	trim             // cut the file here and go on with the next segment
	setAside         // touch nothing: the log does not open, and the damage is named
)

func (v verdict) String() string {
	return [...]string{"none", "keep", "cut", "trim", "set aside"}[v]
}

// match is one cell of the table.
type match int8

const (
	both match = iota
	yes
	no
)

func (m match) holds(b bool) bool { return m == both || (m == yes) == b }

// places is a set of place.
type places int8

const (
	inLast   places = 1 << lastSegment
	inBefore places = 1 << beforeLast
	inEarly  places = 1 << earlier
	sealed          = inBefore | inEarly
	anywhere        = inLast | sealed
)

type recoveryRow struct {
	length, checksum, sane                match
	where                                 places
	clean, above, synced, proven, reached match
	verdict                               verdict
}

// recoveryTable decides what becomes of a batch found while opening a log.
// Exactly one row holds for every finding; a test walks them all. By the time
// the table is asked about a hole above the recovery point in a sealed segment,
// the commit journal has been tried: it had nothing that fits there.
//
//   - Whole batches stay.
//   - Below the recovery point everything had been synced, so what is bad there
//     was acknowledged once: only a person can decide. It is never taken for
//     the end of the log.
//   - So it is where the journal has later batches: a block of it is written
//     after its round's files are synced and after all rounds before it, so no
//     crash takes from a log what lies before an entry.
//   - Else, above it in the last segment, it is the torn tail that any crash leaves.
//     What was acknowledged of it is in the journal and is replayed.
//   - What follows in a closed segment after the last offset before the next one
//     is no part of the log: a truncation that was never synced left it there.
//   - After a clean stop nothing above it can be torn in a sealed segment.
//   - In sync mode a roll has the closed segment synced by the time that the
//     segment after next is begun (roll), so a crash tears the last two at
//     most; nothing behind such a hole was acknowledged. Earlier is damage.
//   - In page-cache mode nothing above it was promised; nor is it in a log that
//     was switched to sync mode and has closed no segment since (looseName).
var recoveryTable = []recoveryRow{
	{yes, yes, yes, anywhere, both, both, both, both, both, keep},

	{no, both, both, anywhere, both, no, both, both, both, setAside},
	{no, both, both, inLast, both, yes, both, yes, both, setAside},
	{no, both, both, inLast, both, yes, both, no, both, cut},
	{no, both, both, sealed, both, yes, both, both, yes, trim},
	{no, both, both, sealed, both, yes, both, yes, no, setAside},
	{no, both, both, sealed, yes, yes, both, no, no, setAside},
	{no, both, both, inBefore, no, yes, yes, no, no, cut},
	{no, both, both, inEarly, no, yes, yes, no, no, setAside},
	{no, both, both, sealed, no, yes, no, no, no, cut},

	{yes, no, both, anywhere, both, no, both, both, both, setAside},
	{yes, no, both, inLast, both, yes, both, yes, both, setAside},
	{yes, no, both, inLast, both, yes, both, no, both, cut},
	{yes, no, both, sealed, both, yes, both, both, yes, trim},
	{yes, no, both, sealed, both, yes, both, yes, no, setAside},
	{yes, no, both, sealed, yes, yes, both, no, no, setAside},
	{yes, no, both, inBefore, no, yes, yes, no, no, cut},
	{yes, no, both, inEarly, no, yes, yes, no, no, setAside},
	{yes, no, both, sealed, no, yes, no, no, no, cut},

	{yes, yes, no, anywhere, both, no, both, both, both, setAside},
	{yes, yes, no, inLast, both, yes, both, yes, both, setAside},
	{yes, yes, no, inLast, both, yes, both, no, both, cut},
	{yes, yes, no, sealed, both, yes, both, both, yes, trim},
	{yes, yes, no, sealed, both, yes, both, yes, no, setAside},
	{yes, yes, no, sealed, yes, yes, both, no, no, setAside},
	{yes, yes, no, inBefore, no, yes, yes, no, no, cut},
	{yes, yes, no, inEarly, no, yes, yes, no, no, setAside},
	{yes, yes, no, sealed, no, yes, no, no, no, cut},
}

func (r *recoveryRow) holds(f finding) bool {
	return r.length.holds(f.length) && r.checksum.holds(f.checksum) && r.sane.holds(f.sane) &&
		r.where&(1<<f.place) != 0 &&
		r.clean.holds(f.clean) && r.above.holds(f.above) && r.synced.holds(f.synced) && r.proven.holds(f.proven) && r.reached.holds(f.reached)
}

func decide(f finding) verdict {
	for i := range recoveryTable {
		if recoveryTable[i].holds(f) {
			return recoveryTable[i].verdict
		}
	}
	panic("engine: recovery table has no row for a finding")
}
