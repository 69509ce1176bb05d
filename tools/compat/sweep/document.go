package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"millrace/wire"
)

// Document is the part of docs/compatibility.md that tells where Millrace differs from Apache Kafka 4.3, out of the tables that
// the sweep holds both brokers against.
func Document() string {
	var b strings.Builder
	b.WriteString(`
## Where it differs from Apache Kafka 4.3

` + "`make compat`" + ` sends every version of every request above to Millrace and to Apache Kafka 4.3.1 in the same state and compares the answers: codes
everywhere, and all fields that are not a broker's own (addresses, ids, sizes, epochs of groups, the words of messages). Versions that
Kafka 4 no longer serves are compared in codes with the oldest that it does. What differs is meant to, and is listed here; an entry that no
longer occurs fails the run.

| request | asked | field | why |
|---|---|---|---|
`)
	for _, in := range intended {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", apiName(in.API), plain(in.Step), plain(in.Path), in.Why)
	}
	b.WriteString(`
Requests that Kafka 4.3 advertises and Millrace does not:

| key | request | why |
|---|---|---|
`)
	for _, key := range slices.Sorted(maps.Keys(NotBuilt)) {
		if _, served := wire.Lookup(key); !served {
			fmt.Fprintf(&b, "| %d | %s | %s |\n", key, kafkaName(key), NotBuilt[key])
		}
	}
	return b.String()
}

// plain makes a pattern readable in a table.
func plain(pattern string) string {
	if pattern == ".*" {
		return "any"
	}
	return "`" + strings.NewReplacer("|", `\|`).Replace(pattern) + "`"
}
