package faultfs

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Kind is a kind of operation, for FailKind and the trace.
type Kind string

// The mutating kinds, which are counted: by FailOperation, CutAtOperation, Ops.
const (
	OpCreate      Kind = "create" // OpenFile or Lock making a new file
	OpWrite       Kind = "write"  // WriteAt, WriteVAt
	OpDirectWrite Kind = "direct-write"
	OpSync        Kind = "sync"
	OpSyncDir     Kind = "sync-dir"
	OpSyncFS      Kind = "sync-fs"
	OpFlush       Kind = "flush" // Mapping.Flush
	OpTruncate    Kind = "truncate"
	OpPreallocate Kind = "preallocate"
	OpRename      Kind = "rename"
	OpRemove      Kind = "remove" // one for each name that RemoveAll removes
	OpMkdir       Kind = "mkdir"  // one for each directory that MkdirAll makes
	OpChtimes     Kind = "chtimes"
)

// The other kinds: not counted, but a Fault naming one of them makes it fail.
const (
	OpOpen Kind = "open"
	OpRead Kind = "read" // ReadAt, and SendTo by way of it
	OpMap  Kind = "map"

	OpWriteOut Kind = "write-out"
)

// AnySync as a Fault's kind stands for OpSync, OpSyncDir, OpSyncFS and OpFlush.
const AnySync Kind = "any-sync"

// Op is one counted operation.
type Op struct {
	Index int // from 0, over the life of the disk, across power cuts
	Kind  Kind
	Name  string // the file's path at its opening
	To    string // OpRename: the new name
	Off   int64  // position of writes
	Size  int64  // bytes written or reserved; new size of OpTruncate
	Err   error  // what it was made to fail with
}

func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s", o.Index, o.Kind, o.Name)
	switch o.Kind {
	case OpWrite, OpDirectWrite, OpPreallocate:
		fmt.Fprintf(&b, " [%d,%d)", o.Off, o.Off+o.Size)
	case OpTruncate:
		fmt.Fprintf(&b, " %d", o.Size)
	case OpRename:
		fmt.Fprintf(&b, " -> %s", o.To)
	}
	if o.Err != nil {
		fmt.Fprintf(&b, ": %v", o.Err)
	}
	return b.String()
}

// Fault says which operations fail. The zero Fault fails the next counted one.
type Fault struct {
	Kind    Kind   // "": any counted kind
	Pattern string // path.Match on the name's last part, or on all of it if it has a slash; "": any
	After   int    // how many matching operations pass first
	Times   int    // how many fail; 0 means 1, below 0 means all
	Err     error  // nil: ErrInjected; ErrPowerCut cuts the power
}

// Fail arms a fault. Armed faults end with the next CutPower.
func (d *Disk) Fail(f Fault) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Err == nil {
		f.Err = ErrInjected
	}
	if f.Times == 0 {
		f.Times = 1
	}
	d.faults = append(d.faults, &f)
	return d
}

// Disarm takes back all armed faults and cuts. What has happened stays Fired.
func (d *Disk) Disarm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = nil
}

// FailOperation makes the n-th counted operation from now on fail, 0 being the next.
func (d *Disk) FailOperation(n int) *Disk { return d.Fail(Fault{After: n}) }

// FailKind makes the n-th operation of a kind from now on fail, 0 being the next.
func (d *Disk) FailKind(kind Kind, n int) *Disk { return d.Fail(Fault{Kind: kind, After: n}) }

// CutAtOperation cuts the power during the n-th counted operation from now on, 0
// being the next: that operation has begun and not ended, so whatever it does is
// there in part, whole or not at all after CutPower; it and all later ones fail
// with ErrPowerCut until CutPower starts the machine again.
func (d *Disk) CutAtOperation(n int) *Disk {
	return d.Fail(Fault{After: n, Err: ErrPowerCut})
}

// Fired reports whether any armed fault or cut has happened.
func (d *Disk) Fired() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fired
}

// Operations is the number of operations counted so far.
func (d *Disk) Operations() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// Ops is the trace of the counted operations, one line each.
func (d *Disk) Ops() []string {
	trace := d.Trace()
	lines := make([]string, len(trace))
	for i, op := range trace {
		lines[i] = op.String()
	}
	return lines
}

// Trace is the trace of the counted operations.
func (d *Disk) Trace() []Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Op(nil), d.trace...)
}

// BeforeOperation has hook called before each operation that may mutate, outside
// any lock: it may block, which holds that operation up, or Freeze the disk. Set
// it before the disk is used by others. A hook is also called for operations that
// are then refused (no such file).
func (d *Disk) BeforeOperation(hook func(kind Kind, name string)) { d.before = hook }

// BeforeRead has hook called before each ReadAt, and each SendTo, of a file, outside any lock: it may block, as a slow disk does. Set it
// before the disk is used by others.
func (d *Disk) BeforeRead(hook func(name string)) { d.beforeRead = hook }

// AfterOperation has hook called after each counted operation, outside any lock,
// in the goroutine that did it: the place to Clone the disk. Set it before the disk
// is used by others.
func (d *Disk) AfterOperation(hook func(Op)) { d.after = hook }

// enter begins a method that may mutate: the hook, then the lock.
func (d *Disk) enter(kind Kind, name string) {
	if d.before != nil {
		d.before(kind, name)
	}
	d.mu.Lock()
}

// leave ends what enter began, and tells the hook what was counted meanwhile.
func (d *Disk) leave() {
	done := d.pending
	d.pending = nil
	d.mu.Unlock()
	if d.after != nil {
		for _, op := range done {
			d.after(op)
		}
	}
}

// begin counts an operation that has been found possible and returns the error it
// must end with; nil: it is to be carried out. With ErrPowerCut, the caller first
// does to the live state what the operation does, then calls powerOff: the cut
// decides how much of it is there.
func (d *Disk) begin(op Op) error {
	d.writeBack()
	op.Index = d.count
	d.count++
	op.Err = d.faultFor(op.Kind, op.Name, true)
	d.trace = append(d.trace, op)
	if d.after != nil {
		d.pending = append(d.pending, op)
	}
	return named(op.Kind, op.Name, op.Err)
}

// faultFor finds what the armed faults say of an operation.
func (d *Disk) faultFor(kind Kind, name string, counted bool) error {
	var err error
	for i := 0; i < len(d.faults); i++ {
		f := d.faults[i]
		if !f.matches(kind, name, counted) {
			continue
		}
		if f.After > 0 {
			f.After--
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		if f.Times == 0 {
			d.faults = append(d.faults[:i:i], d.faults[i+1:]...)
			i--
		}
		d.fired = true
		if err == nil || isCut(f.Err) {
			err = f.Err
		}
	}
	return err
}

func (f *Fault) matches(kind Kind, name string, counted bool) bool {
	switch f.Kind {
	case "":
		if !counted {
			return false
		}
	case AnySync:
		if kind != OpSync && kind != OpSyncDir && kind != OpSyncFS && kind != OpFlush {
			return false
		}
	default:
		if kind != f.Kind {
			return false
		}
	}
	return f.Pattern == "" || matchName(f.Pattern, name)
}

// matchName matches a pattern with the last part of name, or with the whole of it
// if the pattern has a slash.
func matchName(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	ok, err := path.Match(pattern, name)
	if err != nil {
		panic(fmt.Sprintf("faultfs: pattern %q: %v", pattern, err))
	}
	return ok
}

// named wraps err, if any, as package os would.
func named(kind Kind, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: string(kind), Path: name, Err: err}
}
