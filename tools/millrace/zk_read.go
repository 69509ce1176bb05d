package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"millrace/coord/zk/proto"
	"millrace/tools/internal/output"
	"millrace/tools/internal/zkclient"
)

// zkStat is a stat as JSON.
type zkStat struct {
	Kind     string `json:"kind"` // persistent (containers and TTL nodes too), ephemeral
	Owner    string `json:"owner,omitempty"`
	Version  int32  `json:"version"`
	Cversion int32  `json:"cversion"`
	Aversion int32  `json:"aversion"`
	Czxid    string `json:"czxid"`
	Mzxid    string `json:"mzxid"`
	Pzxid    string `json:"pzxid"`
	Created  string `json:"created"`
	Changed  string `json:"changed"`
	Size     int32  `json:"size_bytes"`
	Children int32  `json:"children"`
}

func zxidText(zxid int64) string { return fmt.Sprintf("0x%x", uint64(zxid)) }

func zkStatOf(s *proto.Stat) zkStat {
	when := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
	v := zkStat{
		Kind: zkKind(s.EphemeralOwner), Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		Czxid: zxidText(s.Czxid), Mzxid: zxidText(s.Mzxid), Pzxid: zxidText(s.Pzxid),
		Created: when(s.Ctime), Changed: when(s.Mtime), Size: s.DataLength, Children: s.NumChildren,
	}
	if s.EphemeralOwner != 0 {
		v.Owner = zxidText(s.EphemeralOwner)
	}
	return v
}

// zkData is data as JSON: text where it is some, else base64. Neither is null data.
type zkData struct {
	Text   *string `json:"data,omitempty"`
	Base64 *string `json:"data_base64,omitempty"`
}

func zkDataOf(b []byte) zkData {
	if b == nil {
		return zkData{}
	}
	if s := string(b); printable(s) {
		return zkData{Text: &s}
	}
	s := base64.StdEncoding.EncodeToString(b)
	return zkData{Base64: &s}
}

// printable says whether text survives JSON and a look at it.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\r' {
			return false
		}
	}
	return true
}

// zkNodeView is what get and stat write as JSON.
type zkNodeView struct {
	Path string `json:"path"`
	zkData
	Stat zkStat `json:"stat"`
}

func newZkGet() *cobra.Command {
	o := &zkOptions{}
	var exact bool
	cmd := &cobra.Command{
		Use:     "get PATH",
		Short:   "Show a node's data",
		Long:    "Show a node's data, followed by a newline unless --exact is given. With --json also its stat; data that is not text is then in base64 (data_base64).",
		Example: "  millrace zk get /brokers/ids/1 | jq .endpoints\n  millrace zk get /blob --exact > blob",
		Args:    zkPath(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd, func(_ context.Context, c *zkclient.Client) error {
				res, err := c.Do(proto.Request{Op: proto.OpGetData, Path: args[0]})
				if err != nil {
					return zkRefusal(args[0], err)
				}
				if o.asJSON {
					return output.JSON(cmd.OutOrStdout(), zkNodeView{args[0], zkDataOf(res.Data), zkStatOf(&res.Stat)})
				}
				b := res.Data
				if !exact {
					b = append(slices.Clone(b), '\n')
				}
				_, err = cmd.OutOrStdout().Write(b)
				return err
			})
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&exact, "exact", false, "the bytes as they are, without a newline")
	return cmd
}

func newZkStat() *cobra.Command {
	o := &zkOptions{}
	cmd := &cobra.Command{
		Use:     "stat PATH",
		Short:   "Show what is known of a node beside its data",
		Long:    "Show a node's kind, versions, transactions, times, size and number of children. Containers and\nTTL nodes look persistent: the protocol does not tell them apart.\n\nColumns: name, value.",
		Example: "  millrace zk stat /controller\n  millrace zk stat /controller --json | jq -r .stat.owner",
		Args:    zkPath(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd, func(_ context.Context, c *zkclient.Client) error {
				res, err := c.Do(proto.Request{Op: proto.OpExists, Path: args[0]})
				if err != nil {
					return zkRefusal(args[0], err)
				}
				s := zkStatOf(&res.Stat)
				table := output.Table{Title: args[0], Head: []string{"name", "value"}}
				table.Add("kind", s.Kind)
				if s.Owner != "" {
					table.Add("owner", s.Owner)
				}
				for _, n := range []struct {
					name string
					n    int32
				}{{"version", s.Version}, {"cversion", s.Cversion}, {"aversion", s.Aversion}, {"size_bytes", s.Size}, {"children", s.Children}} {
					table.Add(n.name, strconv.Itoa(int(n.n)))
				}
				table.Add("czxid", s.Czxid)
				table.Add("mzxid", s.Mzxid)
				table.Add("pzxid", s.Pzxid)
				table.Add("created", s.Created)
				table.Add("changed", s.Changed)
				return o.show(cmd, struct {
					Path string `json:"path"`
					Stat zkStat `json:"stat"`
				}{args[0], s}, table)
			})
		},
	}
	o.register(cmd)
	return cmd
}

// zkEntry is an element of what 'zk ls --json' writes.
type zkEntry struct {
	Path string  `json:"path"`
	Stat *zkStat `json:"stat,omitempty"`
}

func newZkLs() *cobra.Command {
	o := &zkOptions{}
	var deep, long bool
	cmd := &cobra.Command{
		Use:   "ls [PATH]",
		Short: "List the children of a node",
		Long: `List the children of a node, in the order of their names; with -R the node and all
below it, by path. With --long also: kind, version, bytes of data, children.`,
		Example: "  millrace zk ls /brokers/topics\n  millrace zk ls / -R --long",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "/"
			if len(args) > 0 {
				path = args[0]
			}
			if err := checkZkPath(path); err != nil {
				return err
			}
			return o.with(cmd, func(_ context.Context, c *zkclient.Client) error {
				paths, err := zkList(c, path, deep)
				if err != nil {
					return err
				}
				return o.list(cmd, c, path, paths, deep, long)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVarP(&deep, "recursive", "R", false, "the node and all below it")
	cmd.Flags().BoolVarP(&long, "long", "l", false, "with kind, version, bytes and children")
	return cmd
}

func (o *zkOptions) list(cmd *cobra.Command, c *zkclient.Client, path string, paths []string, deep, long bool) error {
	stats := make([]proto.Result, len(paths))
	if long || o.asJSON {
		asks := make([]proto.Request, len(paths))
		for i, p := range paths {
			asks[i] = proto.Request{Op: proto.OpExists, Path: p}
		}
		var err error
		if stats, err = c.All(asks); err != nil {
			return zkRefusal(path, err)
		}
	}
	list := []zkEntry{}
	table := output.Table{Head: []string{"name"}}
	if long {
		table.Head = []string{"name", "kind", "version", "bytes", "children"}
		table.Numbers = table.Head[2:]
	}
	for i, p := range paths {
		if stats[i].Err != proto.OK {
			continue // gone meanwhile
		}
		name := p
		if !deep {
			name = p[len(childOf(path, "")):]
		}
		if !long && !o.asJSON {
			table.Add(name)
			continue
		}
		s := zkStatOf(&stats[i].Stat)
		list = append(list, zkEntry{p, &s})
		if long {
			table.Add(name, s.Kind, strconv.Itoa(int(s.Version)), strconv.Itoa(int(s.Size)), strconv.Itoa(int(s.Children)))
		} else {
			table.Add(name)
		}
	}
	return o.show(cmd, list, table)
}

// zkList are the paths of a node's children, or of it and all below it, sorted.
func zkList(c *zkclient.Client, path string, deep bool) ([]string, error) {
	res, err := c.Do(proto.Request{Op: proto.OpGetChildren, Path: path})
	if err != nil {
		return nil, zkRefusal(path, err)
	}
	slices.Sort(res.Children)
	var level []string
	for _, name := range res.Children {
		level = append(level, childOf(path, name))
	}
	if !deep {
		return level, nil
	}
	all := append([]string{path}, level...)
	for len(level) > 0 { // one level of the tree after the other
		asks := make([]proto.Request, len(level))
		for i, p := range level {
			asks[i] = proto.Request{Op: proto.OpGetChildren, Path: p}
		}
		answers, err := c.All(asks)
		if err != nil {
			return nil, zkRefusal(path, err)
		}
		var next []string
		for i, a := range answers {
			if a.Err != proto.OK && a.Err != proto.ErrNoNode {
				return nil, zkRefusal(level[i], a.Err)
			}
			for _, name := range a.Children {
				next = append(next, childOf(level[i], name))
			}
		}
		all = append(all, next...)
		level = next
	}
	slices.Sort(all)
	return all, nil
}
