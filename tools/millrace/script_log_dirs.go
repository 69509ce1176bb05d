package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

func newLogDirsScript() *cobra.Command {
	var connection script.Connection
	var brokers, topics string
	cmd := &cobra.Command{
		Use:   "kafka-log-dirs.sh",
		Short: "This tool helps to query log directory usage on the specified brokers.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := script.Require(cmd.Flags(), "bootstrap-server", "describe"); err != nil {
				return err
			}
			return connection.Admin(cmd, func(ctx context.Context, cl *client.Admin) error {
				return printLogDirs(ctx, cl, cmd.OutOrStdout(), splitNames(brokers), splitNames(topics))
			})
		},
	}
	fs := cmd.Flags()
	connection.Register(fs)
	fs.Bool("describe", false, "describe the log directories")
	fs.StringVar(&topics, "topic-list", "", "only these topics, with commas")
	fs.StringVar(&brokers, "broker-list", "", "only these brokers, with commas")
	return cmd
}

func splitNames(list string) (out []string) {
	for _, name := range strings.Split(list, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// The document that kafka-log-dirs.sh prints, its keys in Kafka's order.
type logDirsDocument struct {
	Brokers []logDirsBroker `json:"brokers"`
	Version int             `json:"version"`
}

type logDirsBroker struct {
	Broker  int32       `json:"broker"`
	LogDirs []logDirRow `json:"logDirs"`
}

type logDirRow struct {
	Partitions []logDirPartition `json:"partitions"`
	Error      *string           `json:"error"`
	LogDir     string            `json:"logDir"`
}

type logDirPartition struct {
	Partition string `json:"partition"`
	Size      int64  `json:"size"`
	OffsetLag int64  `json:"offsetLag"`
	IsFuture  bool   `json:"isFuture"`
}

func printLogDirs(ctx context.Context, cl *client.Admin, out io.Writer, brokers, topics []string) error {
	if err := client.NeedAPIs(ctx, cl, kmsg.DescribeLogDirs); err != nil {
		return err
	}
	cluster, err := cl.ListBrokers(ctx)
	if err != nil {
		return err
	}
	known := cluster.NodeIDs()
	ids := known
	if len(brokers) > 0 {
		var missing []string
		ids = nil
		for _, text := range brokers {
			id, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return fmt.Errorf("For input string: %q", text) //nolint:staticcheck // Kafka's words
			}
			if !slices.Contains(known, int32(id)) {
				missing = append(missing, text)
			}
			ids = append(ids, int32(id))
		}
		if len(missing) > 0 {
			return fmt.Errorf("ERROR: The given brokers do not exist from --broker-list: %s. Current existent brokers: %s", strings.Join(missing, ","), joined(known))
		}
	}
	fmt.Fprintln(out, "Querying brokers for log directories information")
	doc := logDirsDocument{Brokers: []logDirsBroker{}, Version: 1}
	for _, id := range ids {
		row, err := logDirsOf(ctx, cl, id, topics)
		if err != nil {
			return err
		}
		doc.Brokers = append(doc.Brokers, row)
	}
	fmt.Fprintf(out, "Received log directory information from brokers %s\n", joined(ids))
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", b)
	return err
}

func logDirsOf(ctx context.Context, cl *client.Admin, broker int32, topics []string) (logDirsBroker, error) {
	row := logDirsBroker{Broker: broker, LogDirs: []logDirRow{}}
	dirs, err := cl.DescribeBrokerLogDirs(ctx, broker, nil)
	if err != nil {
		return row, err
	}
	for _, d := range dirs.Sorted() {
		dir := logDirRow{Partitions: []logDirPartition{}, LogDir: d.Dir}
		if d.Err != nil {
			say := script.Say(d.Err, "")
			dir.Error = &say
		}
		for _, p := range d.Topics.Sorted() {
			if len(topics) == 0 || slices.Contains(topics, p.Topic) {
				dir.Partitions = append(dir.Partitions, logDirPartition{topicPartition{p.Topic, p.Partition}.dashed(), p.Size, p.OffsetLag, p.IsFuture})
			}
		}
		row.LogDirs = append(row.LogDirs, dir)
	}
	return row, nil
}
