package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

// lagNow is an element of what 'group lag --json' writes; with --watch each look is
// one such list on a line.
type lagNow struct {
	Time   string       `json:"time"`
	Group  string       `json:"group"`
	State  string       `json:"state"`
	Topics []lagOfTopic `json:"topics"`
	Lag    int64        `json:"lag"`
}

func newGroupLag() *cobra.Command {
	var a admin
	watch := cli.Millis(0)
	cmd := &cobra.Command{
		Use:   "lag NAME...",
		Short: "Show how far groups are behind, once or again and again",
		Long: `Show how many records groups have left to read, by topic.

Columns in a pipe: time, group, state, topic, partitions, lag, partitions without
a commit. With --watch it looks again every 2 s, or as often as given, until
interrupted.`,
		Example: `  millrace group lag billing
  millrace group lag billing --watch
  millrace group lag billing --watch=10s --json >> lag.jsonl`,
		Args: needGroups,
		RunE: func(cmd *cobra.Command, names []string) error {
			if !cmd.Flags().Changed("watch") {
				return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error { return a.lagOnce(ctx, cmd, cl, names, false) })
			}
			if watch.Duration() <= 0 {
				return cli.Usagef("--watch must be more than 0")
			}
			return a.watchLag(cmd, names, watch.Duration())
		},
	}
	cmd.Flags().Var(&watch, "watch", "look again so often")
	cmd.Flags().Lookup("watch").NoOptDefVal = "2s"
	a.register(cmd)
	return cmd
}

// watchLag looks until interrupted. A look that fails is told of, and the next may work:
// a broker that restarts does not end a watch. Only what cannot get better ends it.
func (a *admin) watchLag(cmd *cobra.Command, names []string, every time.Duration) error {
	s, err := a.connection.Settings(client.ForBoth, nil, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	raw, err := s.Connect(cmd.Context(), s.Common())
	if err != nil {
		return err
	}
	defer raw.Close()
	cl := client.NewAdmin(raw)
	for ticker := time.NewTicker(every); ; {
		limited, cancel := context.WithTimeout(cmd.Context(), requestTimeout)
		err := a.lagOnce(limited, cmd, cl, names, true)
		cancel()
		var missing *client.MissingAPIError
		switch {
		case cmd.Context().Err() != nil:
			return nil
		case errors.As(err, &missing):
			return err
		case err != nil:
			fmt.Fprintf(cmd.ErrOrStderr(), "%v\n", err)
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (a *admin) lagOnce(ctx context.Context, cmd *cobra.Command, cl *client.Admin, names []string, watching bool) error {
	groups, err := describedGroups(ctx, cl, names)
	if err != nil && len(groups) == 0 {
		return err
	}
	now := time.Now()
	list := []lagNow{}
	for _, g := range groups {
		list = append(list, lagNow{now.UTC().Format(time.RFC3339), g.Group, g.State, g.Topics, g.Lag})
	}
	return errors.Join(a.showLag(cmd.OutOrStdout(), list, watching), err)
}

func (a *admin) showLag(w io.Writer, list []lagNow, watching bool) error {
	switch {
	case a.asJSON && watching:
		return json.NewEncoder(w).Encode(list)
	case a.asJSON:
		return output.JSON(w, list)
	}
	people := output.IsTerminal(w)
	table := output.Table{
		Head:    []string{"group", "state", "topic", "partitions", "lag", "no commit"},
		Numbers: []string{"partitions", "lag", "no commit"},
	}
	for _, g := range list {
		for _, t := range g.Topics {
			row := []string{g.Group, g.State, t.Topic, strconv.Itoa(t.Partitions), strconv.FormatInt(t.Lag, 10), strconv.Itoa(t.Unread)}
			if !people {
				row = append([]string{g.Time}, row...)
			}
			table.Add(row...)
		}
		if people && len(g.Topics) > 1 {
			table.Add(g.Group, g.State, "all", "", strconv.FormatInt(g.Lag, 10), "")
		}
	}
	if people && watching {
		fmt.Fprint(w, "\x1b[H\x1b[2J") // one picture that changes, not a scroll
		table.Title = time.Now().Format(time.TimeOnly)
	}
	return table.Write(w)
}
