package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"millrace/coord/zk/proto"
	"millrace/tools/internal/zkclient"
)

// zkEvent is a line of what 'zk watch --json' writes.
type zkEvent struct {
	Event string `json:"event"`
	Path  string `json:"path"`
	Zxid  string `json:"zxid"`
}

var zkEvents = map[proto.EventType]string{
	proto.EventCreated: "created", proto.EventDeleted: "deleted", proto.EventDataChanged: "changed", proto.EventChildrenChanged: "children",
}

func newZkWatch() *cobra.Command {
	o := &zkOptions{}
	var deep bool
	var count int
	cmd := &cobra.Command{
		Use:   "watch PATH",
		Short: "Tell of changes of a node as they happen",
		Long: `Tell of changes of a node until interrupted: one line each, with what happened (created,
deleted, changed, children), the path, and the newest transaction that the server has told
of. With -R of the node and all below it. The node need not exist. A lost connection ends
the command with exit status 4: what happens meanwhile would not be told.`,
		Example: "  millrace zk watch /brokers/ids -R\n  millrace zk watch /controller --count 1 && echo 'another controller'",
		Args:    zkPath(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd, func(ctx context.Context, c *zkclient.Client) error {
				q := proto.Request{Op: proto.OpAddWatch, Path: args[0], Kind: proto.WatchPersistent}
				if deep {
					q.Kind = proto.WatchPersistentRecursive
				}
				if _, err := c.Do(q); err != nil {
					return zkRefusal(args[0], err)
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "watching %s at %s\n", args[0], c.Addr)
				for n := 0; count == 0 || n < count; n++ {
					e, err := c.Next(ctx)
					if ctx.Err() != nil {
						return nil
					}
					if err != nil {
						return zkRefusal(args[0], err)
					}
					line := zkEvent{zkEvents[e.Type], e.Path, zxidText(c.Zxid)}
					if o.asJSON {
						err = json.NewEncoder(cmd.OutOrStdout()).Encode(line)
					} else {
						_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\t%s\t%s\n", line.Event, line.Path, line.Zxid)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVarP(&deep, "recursive", "R", false, "of the node and all below it")
	cmd.Flags().IntVar(&count, "count", 0, "stop after so many events; 0 is never")
	return cmd
}
