// Command perf-consumer measures consuming from any Kafka broker. It takes the
// flags of Kafka's own kafka-consumer-perf-test.sh and prints its lines.
package main

import (
	"os"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
)

var version string // set by the linker: -X main.version=1.2.3

func main() {
	client.SetVersion(version)
	os.Exit(cli.Run(newCommand()))
}
