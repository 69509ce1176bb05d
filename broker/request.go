package broker

import (
	"context"
	"log/slog"
	"time"

	"millrace/wire"
)

// software is a client's name and version as it gave them (KIP-511); empty if it did
// not.
type software struct{ name, version string }

// requestContext is what a handler knows of a request beside its body. It is
// the connection's and is used again for the next request: nothing of it may be
// kept after the handler returns, save copies of its values.
type requestContext struct {
	header   wire.Header
	size     int       // bytes of the frame, its length included
	listener string    // name of the listener the request came in on
	remote   string    // the client's address, for logs
	arrived  time.Time // when the frame was complete
	ctx      context.Context
	log      *slog.Logger // carries connection and listener

	software software // what the client calls itself

	conn *conn
}
