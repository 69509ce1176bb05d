// Command millrace is the broker and its command line in one binary. Under
// another name (a link such as kafka-topics.sh) it acts as that command.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

var version string // set by the linker: -X main.version=1.2.3

// acts are the commands that a link to this binary can stand for, by the name of
// the link. One that is not here is refused, not guessed at.
var acts = map[string]func() *cobra.Command{
	"kafka-topics.sh":              newTopicsScript,
	"kafka-console-producer.sh":    newConsoleProducer,
	"kafka-console-consumer.sh":    newConsoleConsumer,
	"kafka-consumer-groups.sh":     newGroupsScript,
	"kafka-configs.sh":             newConfigsScript,
	"kafka-get-offsets.sh":         newGetOffsetsScript,
	"kafka-delete-records.sh":      newDeleteRecordsScript,
	"kafka-log-dirs.sh":            newLogDirsScript,
	"kafka-cluster.sh":             newClusterScript,
	"kafka-broker-api-versions.sh": newAPIVersionsScript,
	"kafka-dump-log.sh":            newDumpLogScript,
}

func main() {
	client.SetVersion(version)
	ctx, stop := cli.Signals()
	defer stop()
	os.Exit(runNamed(ctx, filepath.Base(os.Args[0]), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// runNamed is the whole process under this name, with these arguments. A renamed
// binary is still millrace.
func runNamed(ctx context.Context, name string, args []string, in io.Reader, out, errs io.Writer) int {
	act, isScript := acts[name]
	var cmd *cobra.Command
	switch {
	case isScript:
		cmd = act()
	case strings.HasPrefix(name, "kafka-") || strings.HasSuffix(name, ".sh"):
		fmt.Fprintf(errs, "%s: this command of Kafka's is not built into this version; see 'millrace --help' for what is\n", name)
		return cli.ExitUsage
	default:
		cmd = newRoot()
		cmd.SetArgs(args)
	}
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(errs)
	if isScript {
		return script.Execute(ctx, cmd, args)
	}
	return cli.Execute(ctx, cmd)
}

const about = `Millrace is a Kafka-compatible message broker: one binary, no other process needed.

'millrace serve' runs the broker. The other commands are clients: they work
against Millrace and against any Kafka broker. Under the names of Kafka's own
scripts (a link such as kafka-topics.sh) it takes their options and gives their
answers.

On a terminal answers are tables. In a pipe they are tab-separated lines without
a head, or JSON with --json.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "millrace",
		Short: "A Kafka-compatible message broker",
		Long:  about + "\n\n" + cli.ExitHelp,
		Example: `  millrace serve                                     # a broker on 127.0.0.1:9092, data in ./data
  millrace topic create logs --partitions 3
  millrace produce logs < /var/log/syslog            # every line becomes a record
  millrace consume logs --from-beginning --to-end    # all that is there, then stop
  millrace group lag billing --watch
  source <(millrace completion bash)                 # or zsh, fish, powershell`,
	}
	root.AddCommand(newServe(), newCoordinator(), newZk(), newTopic(), newProduce(), newConsume(), newGroup(), newConfig(), newQuota(), newCluster(), newLogDirs(), newDumpLog(), newVersion())
	return root
}
