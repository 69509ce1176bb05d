package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

// newClusterScript is kafka-cluster.sh, of which unregister is not built in.
func newClusterScript() *cobra.Command {
	var connection script.Connection
	var fenced bool
	cmd := &cobra.Command{
		Use:   "kafka-cluster.sh cluster-id|list-endpoints",
		Short: "The Kafka cluster tool.",
		RunE: func(cmd *cobra.Command, args []string) error {
			act := ""
			if len(args) > 0 {
				act = args[0]
			}
			show := map[string]func(context.Context, *client.Admin, io.Writer) error{
				"cluster-id": printClusterID,
				"list-endpoints": func(ctx context.Context, cl *client.Admin, out io.Writer) error {
					return printEndpoints(ctx, cl, out, fenced)
				},
			}[act]
			if show == nil {
				return script.Usagef("kafka-cluster: error: invalid choice: '%s' (choose from 'cluster-id', 'list-endpoints')", act)
			}
			if connection.Bootstrap == "" {
				return script.Usagef("kafka-cluster: error: the argument --bootstrap-server/-b is required")
			}
			return connection.Admin(cmd, func(ctx context.Context, cl *client.Admin) error {
				return show(ctx, cl, cmd.OutOrStdout())
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&connection.Bootstrap, "bootstrap-server", "b", "", "REQUIRED: host:port of a broker, or several with commas")
	fs.StringVar(&connection.Config, "command-config", "", "file of Kafka client properties")
	fs.StringVar(&connection.Config, "config", "", "Kafka's older name of --command-config")
	fs.BoolVar(&fenced, "include-fenced-brokers", false, "with list-endpoints: brokers that may not serve yet, too")
	return cmd
}

func printClusterID(ctx context.Context, cl *client.Admin, out io.Writer) error {
	m, err := cl.BrokerMetadata(ctx)
	if err != nil {
		return err
	}
	if m.Cluster == "" {
		fmt.Fprintln(out, "No cluster ID found. The Kafka version is probably too old.")
		return nil
	}
	fmt.Fprintf(out, "Cluster ID: %s\n", m.Cluster)
	return nil
}

func printEndpoints(ctx context.Context, cl *client.Admin, out io.Writer, fenced bool) error {
	if err := client.NeedAPIs(ctx, cl, kmsg.DescribeCluster); err != nil {
		return err
	}
	req := kmsg.NewPtrDescribeClusterRequest()
	req.IncludeFencedBrokers = fenced
	resp, err := req.RequestWith(ctx, cl.Raw)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return refusedBy(err, text(resp.ErrorMessage))
	}
	hosts, racks := 4, 10
	for _, b := range resp.Brokers {
		hosts = max(hosts, len(b.Host))
		racks = max(racks, len(text(b.Rack)))
	}
	line := func(id, host, port, rack, state, kind string) {
		fmt.Fprintf(out, "%-10s %-*s %-10s %-*s %-10s %-15s\n", id, hosts, host, port, racks, rack, state, kind)
	}
	line("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")
	for _, b := range resp.Brokers {
		rack, state := "null", "unfenced"
		if b.Rack != nil {
			rack = *b.Rack
		}
		if b.IsFenced {
			state = "fenced"
		}
		line(strconv.Itoa(int(b.NodeID)), b.Host, strconv.Itoa(int(b.Port)), rack, state, "broker")
	}
	return nil
}

// newAPIVersionsScript is kafka-broker-api-versions.sh.
func newAPIVersionsScript() *cobra.Command {
	var connection script.Connection
	cmd := &cobra.Command{
		Use:   "kafka-broker-api-versions.sh",
		Short: "This tool helps to retrieve broker version information.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := script.Require(cmd.Flags(), "bootstrap-server"); err != nil {
				return err
			}
			return connection.Admin(cmd, func(ctx context.Context, cl *client.Admin) error {
				return printAPIVersions(ctx, cl, cmd.OutOrStdout())
			})
		},
	}
	connection.Register(cmd.Flags())
	return cmd
}

func printAPIVersions(ctx context.Context, cl *client.Admin, out io.Writer) error {
	brokers, err := cl.ListBrokers(ctx)
	if err != nil {
		return err
	}
	versions, err := cl.ApiVersions(ctx)
	if err != nil {
		return err
	}
	for _, b := range brokers {
		rack := "null"
		if b.Rack != nil {
			rack = *b.Rack
		}
		fmt.Fprintf(out, "%s:%d (id: %d rack: %s isFenced: false) -> ", b.Host, b.Port, b.NodeID, rack)
		v, ok := versions[b.NodeID]
		if !ok || v.Err != nil {
			fmt.Fprintf(out, "ERROR: %v\n", v.Err)
			continue
		}
		var lines []string
		for _, api := range clientAPIs {
			lowest, highest, ok := v.KeyVersions(api.key)
			lines = append(lines, "\t"+api.line(lowest, highest, ok))
		}
		v.EachKeySorted(func(key, lowest, highest int16) {
			if _, known := clientAPIName(key); !known {
				lines = append(lines, fmt.Sprintf("\tUNKNOWN(%d): %s", key, versionRange(lowest, highest)))
			}
		})
		fmt.Fprintf(out, "(\n%s\n)\n", strings.Join(lines, ",\n"))
	}
	return nil
}

func versionRange(lowest, highest int16) string {
	if lowest == highest {
		return strconv.Itoa(int(lowest))
	}
	return fmt.Sprintf("%d to %d", lowest, highest)
}

// clientAPI is a request kind that Kafka 4.3's clients know, with their versions of it.
type clientAPI struct {
	key             int16
	name            string
	lowest, highest int16
}

// line compares the broker's versions with the client's.
func (a clientAPI) line(lowest, highest int16, ok bool) string {
	head := fmt.Sprintf("%s(%d): ", a.name, a.key)
	switch {
	case !ok:
		return head + "UNSUPPORTED"
	case highest < a.lowest:
		return head + versionRange(lowest, highest) + " [unusable: node too old]"
	case lowest > a.highest:
		return head + versionRange(lowest, highest) + " [unusable: node too new]"
	}
	return head + fmt.Sprintf("%s [usable: %d]", versionRange(lowest, highest), min(highest, a.highest))
}

func clientAPIName(key int16) (string, bool) {
	for _, a := range clientAPIs {
		if a.key == key {
			return a.name, true
		}
	}
	return "", false
}

// clientAPIs are those of Kafka 4.3.1, by its names.
var clientAPIs = []clientAPI{
	{0, "Produce", 0, 13},
	{1, "Fetch", 4, 18},
	{2, "ListOffsets", 1, 11},
	{3, "Metadata", 0, 13},
	{8, "OffsetCommit", 2, 10},
	{9, "OffsetFetch", 1, 10},
	{10, "FindCoordinator", 0, 6},
	{11, "JoinGroup", 0, 9},
	{12, "Heartbeat", 0, 4},
	{13, "LeaveGroup", 0, 5},
	{14, "SyncGroup", 0, 5},
	{15, "DescribeGroups", 0, 6},
	{16, "ListGroups", 0, 5},
	{17, "SaslHandshake", 0, 1},
	{18, "ApiVersions", 0, 4},
	{19, "CreateTopics", 2, 7},
	{20, "DeleteTopics", 1, 6},
	{21, "DeleteRecords", 0, 2},
	{22, "InitProducerId", 0, 5},
	{23, "OffsetForLeaderEpoch", 2, 4},
	{24, "AddPartitionsToTxn", 0, 5},
	{25, "AddOffsetsToTxn", 0, 4},
	{26, "EndTxn", 0, 5},
	{27, "WriteTxnMarkers", 1, 2},
	{28, "TxnOffsetCommit", 0, 5},
	{29, "DescribeAcls", 1, 3},
	{30, "CreateAcls", 1, 3},
	{31, "DeleteAcls", 1, 3},
	{32, "DescribeConfigs", 1, 4},
	{33, "AlterConfigs", 0, 2},
	{34, "AlterReplicaLogDirs", 1, 2},
	{35, "DescribeLogDirs", 1, 5},
	{36, "SaslAuthenticate", 0, 2},
	{37, "CreatePartitions", 0, 3},
	{38, "CreateDelegationToken", 1, 3},
	{39, "RenewDelegationToken", 1, 2},
	{40, "ExpireDelegationToken", 1, 2},
	{41, "DescribeDelegationToken", 1, 3},
	{42, "DeleteGroups", 0, 2},
	{43, "ElectLeaders", 0, 2},
	{44, "IncrementalAlterConfigs", 0, 1},
	{45, "AlterPartitionReassignments", 0, 1},
	{46, "ListPartitionReassignments", 0, 0},
	{47, "OffsetDelete", 0, 0},
	{48, "DescribeClientQuotas", 0, 1},
	{49, "AlterClientQuotas", 0, 1},
	{50, "DescribeUserScramCredentials", 0, 0},
	{51, "AlterUserScramCredentials", 0, 0},
	{55, "DescribeQuorum", 0, 2},
	{57, "UpdateFeatures", 0, 2},
	{60, "DescribeCluster", 0, 2},
	{61, "DescribeProducers", 0, 0},
	{64, "UnregisterBroker", 0, 0},
	{65, "DescribeTransactions", 0, 0},
	{66, "ListTransactions", 0, 2},
	{68, "ConsumerGroupHeartbeat", 0, 1},
	{69, "ConsumerGroupDescribe", 0, 1},
	{71, "GetTelemetrySubscriptions", 0, 0},
	{72, "PushTelemetry", 0, 0},
	{74, "ListConfigResources", 0, 1},
	{75, "DescribeTopicPartitions", 0, 0},
	{76, "ShareGroupHeartbeat", 1, 1},
	{77, "ShareGroupDescribe", 1, 1},
	{78, "ShareFetch", 1, 2},
	{79, "ShareAcknowledge", 1, 2},
	{80, "AddRaftVoter", 0, 1},
	{81, "RemoveRaftVoter", 0, 0},
	{83, "InitializeShareGroupState", 0, 0},
	{84, "ReadShareGroupState", 0, 0},
	{85, "WriteShareGroupState", 0, 1},
	{86, "DeleteShareGroupState", 0, 0},
	{87, "ReadShareGroupStateSummary", 0, 1},
	{88, "StreamsGroupHeartbeat", 0, 0},
	{89, "StreamsGroupDescribe", 0, 0},
	{90, "DescribeShareGroupOffsets", 0, 1},
	{91, "AlterShareGroupOffsets", 0, 0},
	{92, "DeleteShareGroupOffsets", 0, 0},
}
