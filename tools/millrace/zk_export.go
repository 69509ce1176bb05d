package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"millrace/coord/zk/proto"
	"millrace/tools/internal/output"
	"millrace/tools/internal/zkclient"
)

// zkFormat names the format of an export.
const zkFormat = "millrace-zk-1"

// zkExport is the file that export writes and import reads.
type zkExport struct {
	Format string   `json:"format"`
	Root   string   `json:"root"`  // of what was exported; all paths are at or below it
	Zxid   string   `json:"zxid"`  // the tree is that after this transaction
	Exact  bool     `json:"exact"` // false: it changed while it was read, and nodes may be of different moments
	Nodes  []zkNode `json:"nodes"` // by path, what is above first

	Ephemerals []string `json:"ephemerals_left_out,omitempty"`
}

// zkNode is one node of an export. The protocol tells nobody which nodes are containers or
// have a TTL, so export writes no kind; who knows better adds it to the file.
type zkNode struct {
	Path string `json:"path"`
	Kind string `json:"kind,omitempty"` // container, ttl; "" persistent
	TTL  int64  `json:"ttl_ms,omitempty"`
	zkData
	ACL []string `json:"acl,omitempty"` // none: world:anyone:cdrwa
}

// bytes is the node's data.
func (n *zkNode) bytes() ([]byte, error) {
	switch {
	case n.Text != nil:
		return []byte(*n.Text), nil
	case n.Base64 != nil:
		b, err := base64.StdEncoding.DecodeString(*n.Base64)
		if err != nil {
			return nil, fmt.Errorf("%s: data_base64: %w", n.Path, err)
		}
		return b, nil
	}
	return nil, nil
}

// zkRead is a node as it was read.
type zkRead struct {
	path string
	data []byte
	acl  []string
	stat proto.Stat
}

// same reports whether nothing happened to the node between two looks: whatever changes
// it gives one of these another value, for ever.
func (r *zkRead) same(o *zkRead) bool {
	return r.path == o.path && r.stat.Czxid == o.stat.Czxid && r.stat.Mzxid == o.stat.Mzxid && r.stat.Pzxid == o.stat.Pzxid && r.stat.Aversion == o.stat.Aversion
}

// zkPasses is how often a tree that keeps changing is read.
const zkPasses = 6

// readTree reads a subtree until two passes have seen the same: then it was just that
// at every moment between them. The zxid is one of those moments'.
func readTree(c *zkclient.Client, root string) (nodes []zkRead, zxid int64, exact bool, err error) {
	for pass := 0; pass < zkPasses; pass++ {
		var again []zkRead
		var begun int64
		if again, begun, err = readOnce(c, root); err != nil {
			return nil, 0, false, err
		}
		exact = pass > 0 && slices.EqualFunc(nodes, again, func(a, b zkRead) bool { return a.same(&b) })
		nodes, zxid = again, begun
		if exact {
			break
		}
	}
	return nodes, zxid, exact, nil
}

// readOnce reads a subtree, one level after the other. What goes away meanwhile is left out.
func readOnce(c *zkclient.Client, root string) (nodes []zkRead, zxid int64, err error) {
	if _, err := c.Do(proto.Request{Op: proto.OpExists, Path: root}); err != nil {
		return nil, 0, zkRefusal(root, err)
	}
	zxid = c.Zxid
	for level := []string{root}; len(level) > 0; {
		asks := make([]proto.Request, 0, 3*len(level))
		for _, p := range level {
			asks = append(asks, proto.Request{Op: proto.OpGetData, Path: p}, proto.Request{Op: proto.OpGetACL, Path: p}, proto.Request{Op: proto.OpGetChildren, Path: p})
		}
		answers, err := c.All(asks)
		if err != nil {
			return nil, 0, zkRefusal(root, err)
		}
		var next []string
		for i, p := range level {
			data, acl, children := answers[3*i], answers[3*i+1], answers[3*i+2]
			bad := errors.Join(codeError(data.Err), codeError(acl.Err), codeError(children.Err))
			if errors.Is(bad, proto.ErrNoNode) && p != root {
				continue
			}
			if bad != nil {
				return nil, 0, zkRefusal(p, bad)
			}
			nodes = append(nodes, zkRead{p, data.Data, aclText(acl.ACL), data.Stat})
			for _, name := range children.Children {
				if below := childOf(p, name); below != "/zookeeper" {
					next = append(next, below)
				}
			}
		}
		level = next
	}
	slices.SortFunc(nodes, func(a, b zkRead) int { return strings.Compare(a.path, b.path) })
	return nodes, zxid, nil
}

func codeError(code proto.Code) error {
	if code == proto.OK {
		return nil
	}
	return code
}

// openText is the access list that goes without saying.
const openText = "world:anyone:cdrwa"

func newZkExport() *cobra.Command {
	o := &zkOptions{}
	cmd := &cobra.Command{
		Use:   "export FILE|- [PATH]",
		Short: "Write a tree as JSON",
		Long: `Write a node and all below it (default: the whole tree) as JSON, to a file or standard
output. The file says which transaction the tree is of: it is read until two passes have
seen the same, so it is exact unless the tree never rests; then "exact" is false, and a
warning says so.

Left out: ephemeral nodes, which are listed by name; /zookeeper, which is the service's
own (quotas are there); versions and times, which begin anew. Containers and TTL nodes
become persistent ones, since the protocol tells nobody which they are: add
"kind": "container", or "kind": "ttl" and "ttl_ms", to their entries if you know.`,
		Example: "  millrace zk export tree.json --server old:2181\n  millrace zk export - /config | jq '.nodes[].path'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return errors.New("name a file or -, and at most one path")
			}
			if len(args) == 2 {
				return checkZkPath(args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := "/"
			if len(args) == 2 {
				root = args[1]
			}
			return o.with(cmd, func(_ context.Context, c *zkclient.Client) error {
				x, err := zkExportOf(c, root)
				if err != nil {
					return err
				}
				if !x.Exact {
					fmt.Fprintf(cmd.ErrOrStderr(), "warning: the tree changed whenever it was read (%d times): its nodes may be of different moments\n", zkPasses)
				}
				if n := len(x.Ephemerals); n > 0 {
					fmt.Fprintf(cmd.ErrOrStderr(), "note: %d ephemeral nodes are left out\n", n)
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "exported: %d nodes at %s\n", len(x.Nodes), x.Zxid)
				if args[0] == "-" {
					return output.JSON(cmd.OutOrStdout(), x)
				}
				return writeExport(args[0], x)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().MarkHidden("json") // it is JSON
	return cmd
}

// writeExport makes the file whole or leaves what is there.
func writeExport(name string, x *zkExport) error {
	tmp := name + ".tmp"
	if err := output.JSONFile(tmp, x); err != nil {
		os.Remove(tmp)
		return err
	}
	return os.Rename(tmp, name)
}

func zkExportOf(c *zkclient.Client, root string) (*zkExport, error) {
	nodes, zxid, exact, err := readTree(c, root)
	if err != nil {
		return nil, err
	}
	x := &zkExport{Format: zkFormat, Root: root, Zxid: zxidText(zxid), Exact: exact, Nodes: []zkNode{}}
	for _, n := range nodes {
		if n.stat.EphemeralOwner != 0 {
			x.Ephemerals = append(x.Ephemerals, n.path)
			continue
		}
		node := zkNode{Path: n.path, zkData: zkDataOf(n.data)}
		if len(n.acl) != 1 || n.acl[0] != openText {
			node.ACL = n.acl
		}
		x.Nodes = append(x.Nodes, node)
	}
	return x, nil
}

func newZkDump() *cobra.Command {
	o := &zkOptions{}
	cmd := &cobra.Command{
		Use:   "dump [PATH]",
		Short: "Show a tree with its data",
		Long: `Show a node and all below it (default: the whole tree but /zookeeper) with their data.

Columns: path, kind, version, access list ("-" is world:anyone:cdrwa), data (quoted, base64
if it is not text). For a copy that can be imported, see 'zk export'.`,
		Example: "  millrace zk dump /brokers\n  millrace zk dump --server zk1:2181/kafka | grep controller",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := "/"
			if len(args) == 1 {
				root = args[0]
			}
			if err := checkZkPath(root); err != nil {
				return err
			}
			return o.with(cmd, func(_ context.Context, c *zkclient.Client) error {
				nodes, _, err := readOnce(c, root)
				if err != nil {
					return err
				}
				type row struct {
					zkNodeView
					ACL []string `json:"acl"`
				}
				list := []row{}
				table := output.Table{Head: []string{"path", "kind", "version", "acl", "data"}, Numbers: []string{"version"}}
				for _, n := range nodes {
					v := zkNodeView{n.path, zkDataOf(n.data), zkStatOf(&n.stat)}
					list = append(list, row{v, n.acl})
					acl, data := strings.Join(n.acl, ","), "null"
					if acl == openText {
						acl = "-"
					}
					if v.Text != nil {
						data = strconv.Quote(*v.Text)
					} else if v.Base64 != nil {
						data = *v.Base64
					}
					table.Add(n.path, v.Stat.Kind, strconv.Itoa(int(v.Stat.Version)), acl, data)
				}
				return o.show(cmd, list, table)
			})
		},
	}
	o.register(cmd)
	return cmd
}
