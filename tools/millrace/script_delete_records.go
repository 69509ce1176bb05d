package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

// recordsToDelete is the file that kafka-delete-records.sh reads.
type recordsToDelete struct {
	Partitions []struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Offset    int64  `json:"offset"`
	} `json:"partitions"`
	Version int `json:"version"`
}

func newDeleteRecordsScript() *cobra.Command {
	var connection script.Connection
	var file string
	cmd := &cobra.Command{
		Use:   "kafka-delete-records.sh",
		Short: "This tool helps to delete records of the given partitions down to the specified offset.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := script.Require(cmd.Flags(), "bootstrap-server", "offset-json-file"); err != nil {
				return err
			}
			wanted, err := readRecordsToDelete(file)
			if err != nil {
				return err
			}
			return connection.Admin(cmd, func(ctx context.Context, cl *client.Admin) error {
				return deleteRecordsScript(ctx, cl, cmd.OutOrStdout(), wanted)
			})
		},
	}
	connection.Register(cmd.Flags())
	cmd.Flags().StringVar(&file, "offset-json-file", "", `REQUIRED: a file {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}; offset -1 is the end`)
	return cmd
}

func readRecordsToDelete(file string) (map[topicPartition]int64, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("Unable to read file %s", file) //nolint:staticcheck // Kafka's words
	}
	if err != nil {
		return nil, err
	}
	f := recordsToDelete{Version: 1}
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("The input string is not a valid JSON: %w", err) //nolint:staticcheck // Kafka's words
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("Not supported version field value %d", f.Version) //nolint:staticcheck // Kafka's words
	}
	if f.Partitions == nil {
		return nil, errors.New("Missing partitions field") //nolint:staticcheck // Kafka's words
	}
	out := map[topicPartition]int64{}
	for _, p := range f.Partitions {
		tp := topicPartition{p.Topic, p.Partition}
		if _, twice := out[tp]; twice {
			return nil, &refusedError{say: "Offset json file contains duplicate topic partitions: " + tp.dashed()}
		}
		out[tp] = p.Offset
	}
	return out, nil
}

func deleteRecordsScript(ctx context.Context, cl *client.Admin, out io.Writer, wanted map[topicPartition]int64) error {
	if err := client.NeedAPIs(ctx, cl, kmsg.DeleteRecords); err != nil {
		return err
	}
	fmt.Fprintln(out, "Executing records delete operation")
	answers, err := deleteRecords(ctx, cl, wanted)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Records delete operation completed:")
	for _, tp := range sortedPartitions(wanted) {
		if a := answers[tp]; a.Err != nil {
			fmt.Fprintf(out, "partition: %s\terror: %s\n", tp.dashed(), javaError(a.Err, ""))
		} else {
			fmt.Fprintf(out, "partition: %s\tlow_watermark: %d\n", tp.dashed(), a.LowWatermark)
		}
	}
	return nil
}

// deleteRecords deletes what is before the offsets; -1 is the end. Each partition has
// an answer of its own.
func deleteRecords(ctx context.Context, cl *client.Admin, before map[topicPartition]int64) (map[topicPartition]kadm.DeleteRecordsResponse, error) {
	out := map[topicPartition]kadm.DeleteRecordsResponse{}
	// A topic or partition that does not exist fails the whole request in the client;
	// Kafka's tool has an answer for each, so these are taken out first.
	offsets := kadm.Offsets{}
	var names []string
	for tp := range before {
		if !slices.Contains(names, tp.Topic) {
			names = append(names, tp.Topic)
		}
	}
	topics, err := cl.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return nil, err
	}
	for tp, at := range before {
		if _, exists := topics[tp.Topic].Partitions[tp.Partition]; !exists {
			out[tp] = kadm.DeleteRecordsResponse{Topic: tp.Topic, Partition: tp.Partition, Err: kerr.UnknownTopicOrPartition}
			continue
		}
		offsets.AddOffset(tp.Topic, tp.Partition, at, -1)
	}
	if len(offsets) == 0 {
		return out, nil
	}
	answers, err := cl.DeleteRecords(ctx, offsets)
	if err != nil {
		return nil, err
	}
	answers.Each(func(r kadm.DeleteRecordsResponse) { out[topicPartition{r.Topic, r.Partition}] = r })
	return out, nil
}
