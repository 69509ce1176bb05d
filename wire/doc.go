// Package wire speaks Kafka's protocol: frames, headers, the one table of APIs
// and versions, the error codes, and the two messages that carry records.
//
// Produce requests are parsed in place: the records alias the frame. Fetch
// answers are written as headers only; the record bytes come through [Payload]
// and are either copied into the outgoing buffer (small) or sent by their owner
// straight to the connection (large). Every other message goes through
// franz-go's kmsg, behind [DecodeRequest], which first walks the body so that
// no length in it can make a decoder allocate more than the frame holds.
//
// Rules kept here (docs/INVARIANTS.md):
//
//	W1  decoding never reads or allocates beyond what the frame declared
//	W2  one table says what we speak (apis.go)
//	W3  answers leave in request order per connection (Writer is append-only)
//
// The package knows nothing of logs, topics or the broker. Reading order:
// apis.go, frame.go, header.go, decode.go, produce_request.go,
// produce_response.go, fetch_request.go, fetch_response.go, writer.go.
package wire
