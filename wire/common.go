package wire

import "net"

// Payload is a range of record bytes that somebody else owns, usually a pinned
// range of a file. wire knows no more of it than this. Whoever answers the
// request calls Release exactly once; FetchResponse.Send does so.
type Payload interface {
	Size() int                        // bytes; fixed
	ReadInto(dst []byte) error        // fills dst, which is Size long
	SendTo(c net.Conn) (int64, error) // sends all Size bytes to c
	Release()
}

// Leader names a partition's leader and its epoch, as told in a tagged field.
type Leader struct {
	ID, Epoch int32
}

// NodeEndpoint tells where the node of a Leader is reached.
type NodeEndpoint struct {
	ID   int32
	Host string
	Port int32
	Rack *string // nil = null
}

// appendNodeEndpoints appends the top level's tag block: tag 0, the endpoints.
func appendNodeEndpoints(dst []byte, nodes []NodeEndpoint) []byte {
	if len(nodes) == 0 {
		return append(dst, 0)
	}
	value := appendCountV(nil, len(nodes), true)
	for i := range nodes {
		n := &nodes[i]
		value = appendInt32(value, n.ID)
		value = appendStringV(value, n.Host, true)
		value = appendInt32(value, n.Port)
		value = appendNullableV(value, n.Rack, true)
		value = append(value, 0)
	}
	return appendTag(append(dst, 1), 0, value)
}

func appendLeader(dst []byte, tag uint32, l *Leader) []byte {
	dst = append(appendUvarint(dst, tag), 9) // two int32 and an empty tag block
	dst = appendInt32(dst, l.ID)
	dst = appendInt32(dst, l.Epoch)
	return append(dst, 0)
}
