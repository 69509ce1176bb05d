package broker

import (
	"strings"

	"millrace/wire"
)

// answerAPIVersions serves the first request of nearly every connection. It does
// not go through the table of handlers, since its body may be of a version that
// we do not know (F030).
func (c *conn) answerAPIVersions(body []byte) {
	response, software := wire.APIVersionsAnswer(c.rc.header, body, served)
	if software != "" {
		c.log = c.log.With("software", software)
		c.rc.log = c.log
		c.rc.software.name, c.rc.software.version, _ = strings.Cut(software, " ")
	}
	c.writer.Respond(c.rc.header, response)
}

// served reports whether this broker answers an API (W2).
func served(key int16) bool {
	switch key {
	case wire.KeyProduce, wire.KeyFetch, wire.KeyAPIVersions:
		return true
	}
	return handlerOf(key) != nil
}
