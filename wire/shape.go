package wire

// field is one field of a request body as the walk of decode.go sees it: just
// enough to know how many bytes it takes and which arrays count what.
type field struct {
	kind  kind
	size  int     // of a fixed field
	from  int16   // first version that has it
	to    int16   // last version that has it
	elems []field // of an array, or of a nullable struct
	plain bool    // an array of primitives, whose elements have no tag block
}

type kind uint8

const (
	kindFixed kind = iota
	kindString
	kindBytes
	kindArray
	kindNullable // a struct behind a byte that says whether it is there: -1, it is not
)

const always = int16(32767)

func fixed(size int) field          { return field{kind: kindFixed, size: size, to: always} }
func str() field                    { return field{kind: kindString, to: always} }
func blob() field                   { return field{kind: kindBytes, to: always} }
func structs(elems ...field) field  { return field{kind: kindArray, elems: elems, to: always} }
func nullable(elems ...field) field { return field{kind: kindNullable, elems: elems, to: always} }
func plain(elem field) field {
	return field{kind: kindArray, elems: []field{elem}, plain: true, to: always}
}
func (f field) in(from, to int16) field { f.from, f.to = from, to; return f }
func (f field) since(from int16) field  { return f.in(from, always) }

// Bodies of the requests that go through kmsg, in wire order.
var (
	apiVersionsShape = []field{str().since(3), str().since(3)}

	metadataShape = []field{
		structs(fixed(16).since(10), str()),
		fixed(1).since(4), fixed(1).in(8, 10), fixed(1).since(8),
	}

	listOffsetsShape = []field{
		fixed(4), fixed(1).since(2),
		structs(str(), structs(fixed(4), fixed(4).since(4), fixed(8), fixed(4).in(0, 0))),
		fixed(4).since(10),
	}

	createTopicsShape = []field{
		structs(str(), fixed(4), fixed(2),
			structs(fixed(4), plain(fixed(4))),
			structs(str(), str())),
		fixed(4), fixed(1).since(1),
	}

	deleteTopicsShape = []field{
		structs(str(), fixed(16)).since(6), plain(str()).in(0, 5), fixed(4),
	}

	initProducerIDShape = []field{str(), fixed(4), fixed(8).since(3), fixed(2).since(3)}

	describeConfigsShape = []field{
		structs(fixed(1), str(), plain(str())),
		fixed(1).since(1), fixed(1).since(3),
	}
)
