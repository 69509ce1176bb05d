package proto

import "fmt"

// multiHeaderSize is a MultiHeader: type, done, err.
const multiHeaderSize = 4 + 1 + 4

func (r *reader) multiHeader() (op Op, done bool) {
	op, done = Op(r.int32()), r.bool()
	r.int32() // err says nothing that the result does not
	return op, done
}

func appendMultiHeader(b []byte, op Op, done bool, err Code) []byte {
	return appendInt32(appendBool(appendInt32(b, int32(op)), done), int32(err))
}

// inMulti reports what may be in a multi: writes or reads, never both in one.
func inMulti(op Op) (write, read bool) {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
		return true, false
	case OpGetData, OpGetChildren:
		return false, true
	}
	return false, false
}

// multi reads the operations of a multi or multiRead. ZooKeeper refuses bad modes and
// mixtures while it parses, so that the answer is a marshalling error; so do we.
func (r *reader) multi() (ops []Request) {
	var writes, reads bool
	for r.err == nil {
		op, done := r.multiHeader()
		if done || r.err != nil {
			return ops
		}
		w, rd := inMulti(op)
		writes, reads = writes || w, reads || rd
		switch {
		case !w && !rd:
			r.fail(fmt.Errorf("zookeeper protocol: %v in a multi", op))
		case writes && reads:
			r.fail(fmt.Errorf("zookeeper protocol: reads and writes in one multi"))
		}
		q := Request{Op: op}
		r.request(&q)
		if op.Creates() {
			r.settle(&q)
		}
		ops = append(ops, q)
	}
	return nil
}

// settle makes of a create in a multi what ZooKeeper makes of it while parsing: the
// mode decides which kind it is, where alone the type of the request does.
func (r *reader) settle(q *Request) {
	if q.Op != OpCreateTTL && (!q.Mode.Valid() || q.Mode.TTL()) {
		r.fail(fmt.Errorf("zookeeper protocol: %v with mode %d in a multi", q.Op, q.Mode))
	}
	if q.Op == OpCreateTTL && !q.Mode.TTL() {
		q.Op, q.TTL = OpCreate, -1
	}
	if q.Mode == Container {
		q.Op = OpCreateContainer
	}
}

func appendMulti(b []byte, ops []Request) []byte {
	for i := range ops {
		b = AppendBody(appendMultiHeader(b, ops[i].Op, false, -1), &ops[i])
	}
	return appendMultiHeader(b, -1, true, -1)
}

// appendResults appends the answer to a multi or multiRead. The creates that answer
// with a stat all answer as create2.
func appendResults(b []byte, list []Result) []byte {
	for i := range list {
		res := &list[i]
		op := res.Op
		switch {
		case res.Err != OK || op == OpError:
			b = appendInt32(appendMultiHeader(b, OpError, false, res.Err), int32(res.Err))
			continue
		case op == OpCreateContainer || op == OpCreateTTL:
			op = OpCreate2
		}
		b = appendResult(appendMultiHeader(b, op, false, 0), res)
	}
	return appendMultiHeader(b, -1, true, -1)
}

func (r *reader) results() (list []Result) {
	for r.err == nil {
		op, done := r.multiHeader()
		if done || r.err != nil {
			return list
		}
		res := Result{Op: op}
		switch op {
		case OpError:
			res.Err = Code(r.int32())
		case OpCreate, OpCreate2, OpDelete, OpSetData, OpCheck, OpGetData, OpGetChildren:
			r.result(&res)
		default:
			r.fail(fmt.Errorf("zookeeper protocol: a result of %v in a multi", op))
		}
		list = append(list, res)
	}
	return nil
}
