package tree

import (
	"encoding/binary"
	"errors"
	"fmt"

	"millrace/coord/zk/proto"
)

// txnFormat is the first byte of an encoded transaction.
const txnFormat = 1

// txnHead is format, zxid, time, session, cxid, rules, refused, op and the number of identities.
const txnHead = 1 + 8 + 8 + 8 + 4 + 1 + 4 + 4 + 2

var errTxn = errors.New("not a transaction")

// AppendTxn appends x as it stands in the log: fixed fields, identities, and the
// request's body as on the wire, which a refused one does not have.
func AppendTxn(b []byte, x *Txn) []byte {
	be := binary.BigEndian
	b = append(b, txnFormat)
	b = be.AppendUint64(b, uint64(x.Zxid))
	b = be.AppendUint64(b, uint64(x.Time))
	b = be.AppendUint64(b, uint64(x.Session))
	b = be.AppendUint32(b, uint32(x.Cxid))
	b = append(b, byte(x.Rules))
	b = be.AppendUint32(b, uint32(x.Refused))
	b = be.AppendUint32(b, uint32(x.Req.Op))
	b = be.AppendUint16(b, uint16(len(x.Auth)))
	for _, id := range x.Auth {
		b = appendText(appendText(b, id.Scheme), id.ID)
	}
	if x.Refused != proto.OK {
		return b
	}
	return proto.AppendBody(b, &x.Req)
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// ParseTxn reads what AppendTxn wrote. Data in it aliases b.
func ParseTxn(b []byte) (Txn, error) {
	if len(b) < txnHead || b[0] != txnFormat {
		return Txn{}, fmt.Errorf("%w: %d bytes of format %d", errTxn, len(b), first(b))
	}
	be := binary.BigEndian
	x := Txn{
		Zxid: int64(be.Uint64(b[1:])), Time: int64(be.Uint64(b[9:])), Session: int64(be.Uint64(b[17:])),
		Cxid: int32(be.Uint32(b[25:])), Rules: Rules(b[29]), Refused: proto.Code(be.Uint32(b[30:])),
	}
	op, ids := proto.Op(be.Uint32(b[34:])), int(be.Uint16(b[38:]))
	b = b[txnHead:]
	for ; ids > 0; ids-- {
		var id proto.ID
		var ok bool
		if id.Scheme, b, ok = cutText(b); ok {
			id.ID, b, ok = cutText(b)
		}
		if !ok {
			return x, fmt.Errorf("%w: identities cut short", errTxn)
		}
		x.Auth = append(x.Auth, id)
	}
	if x.Refused != proto.OK {
		x.Req.Op = op
		return x, nil
	}
	var err error
	x.Req, err = proto.ParseRequest(op, b)
	return x, err
}

func first(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	return int(b[0])
}

func cutText(b []byte) (string, []byte, bool) {
	if len(b) < 4 {
		return "", nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return "", nil, false
	}
	return string(b[:n]), b[n:], true
}
