package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"millrace/coord/zk/proto"
	"millrace/tools/internal/cli"
	"millrace/tools/internal/zkclient"
)

func newZkImport() *cobra.Command {
	o := &zkOptions{}
	var overwrite bool
	var at string
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Make the nodes of an export",
		Long: `Make the nodes that 'zk export' has written, with their data, access lists and kinds. If
one of them exists, nothing is done, unless --overwrite is given: then its data and access
list are set; its kind stays. Nodes that are not in the file are left alone. Nodes are made
one after the other, not as one transaction.

Who imports needs the right to make nodes below those of the file: with access lists that
restrict that, be the super user (--auth digest:super:...).`,
		Example: "  millrace zk import tree.json\n  millrace zk import tree.json --at /copy --overwrite",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := readExport(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			if at != "" {
				if err := checkZkPath(at); err != nil {
					return err
				}
				x.move(at)
			}
			asks, err := x.requests()
			if err != nil {
				return err
			}
			return o.with(cmd, func(_ context.Context, c *zkclient.Client) error {
				made, set, err := zkImport(c, asks, overwrite)
				if err != nil {
					return fmt.Errorf("%w (%d nodes made, %d set before)", err, made, set)
				}
				table := fmt.Sprintf("made: %d\tset: %d\n", made, set)
				if o.asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]int{"made": made, "set": set})
				}
				_, err = io.WriteString(cmd.OutOrStdout(), table)
				return err
			})
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "set nodes that exist")
	cmd.Flags().StringVar(&at, "at", "", "put what was exported here instead of where it was")
	return cmd
}

func readExport(in io.Reader, name string) (*zkExport, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	x := &zkExport{}
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	if err := d.Decode(x); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if x.Format != zkFormat {
		return nil, fmt.Errorf("%s: its format is %q, not %q", name, x.Format, zkFormat)
	}
	slices.SortFunc(x.Nodes, func(a, b zkNode) int { return strings.Compare(a.Path, b.Path) })
	return x, nil
}

// move puts the tree elsewhere.
func (x *zkExport) move(to string) {
	for i := range x.Nodes {
		below := strings.TrimPrefix(strings.TrimPrefix(x.Nodes[i].Path, strings.TrimSuffix(x.Root, "/")), "/")
		if x.Nodes[i].Path = to; below != "" {
			x.Nodes[i].Path = childOf(to, below)
		}
	}
	x.Root = to
}

// requests are the creates of all nodes, what is above first.
func (x *zkExport) requests() (asks []proto.Request, err error) {
	for i := range x.Nodes {
		n := &x.Nodes[i]
		if err := checkZkPath(n.Path); err != nil {
			return nil, err
		}
		q := proto.Request{Op: proto.OpCreate, Path: n.Path}
		if q.Data, err = n.bytes(); err != nil {
			return nil, err
		}
		if q.ACL, err = parseACL(n.ACL); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Path, err)
		}
		switch n.Kind {
		case "":
		case "container":
			q.Op, q.Mode = proto.OpCreateContainer, proto.Container
		case "ttl":
			q.Op, q.Mode, q.TTL = proto.OpCreateTTL, proto.PersistentTTL, n.TTL
		default:
			return nil, fmt.Errorf("%s: kind %q is none of container and ttl", n.Path, n.Kind)
		}
		asks = append(asks, q)
	}
	return asks, nil
}

// plainRoot says whether a create of the root asks for nothing but what every root is.
func plainRoot(q *proto.Request) bool {
	return q.Path == "/" && len(q.Data) == 0 && slices.Equal(q.ACL, proto.OpenACL)
}

// zkImport makes, or sets, what asks say; it begins when it knows that nothing is in the way.
func zkImport(c *zkclient.Client, asks []proto.Request, overwrite bool) (made, set int, err error) {
	asks = slices.DeleteFunc(asks, func(q proto.Request) bool { return plainRoot(&q) })
	if len(asks) == 0 {
		return 0, 0, nil
	}
	looks := make([]proto.Request, len(asks))
	for i := range asks {
		looks[i] = proto.Request{Op: proto.OpExists, Path: asks[i].Path}
	}
	there, err := c.All(looks)
	if err != nil {
		return 0, 0, zkRefusal(asks[0].Path, err)
	}
	if !overwrite {
		for i, a := range there {
			if a.Err != proto.ErrNoNode {
				return 0, 0, cli.NotFoundf("%s: the node exists already; nothing was done: --overwrite sets nodes that exist", asks[i].Path)
			}
		}
	}
	if err := zkParents(c, asks[0].Path); err != nil {
		return 0, 0, err
	}
	var batch []proto.Request
	for i := range asks {
		if there[i].Err == proto.OK {
			batch = append(batch, proto.Request{Op: proto.OpSetData, Path: asks[i].Path, Data: asks[i].Data, Version: -1},
				proto.Request{Op: proto.OpSetACL, Path: asks[i].Path, ACL: asks[i].ACL, Version: -1})
		} else {
			batch = append(batch, asks[i])
		}
	}
	return zkImportAll(c, batch)
}

// zkImportChunk is how many requests are sent before it is looked whether one was refused.
const zkImportChunk = 1000

func zkImportAll(c *zkclient.Client, batch []proto.Request) (made, set int, err error) {
	for chunk := range slices.Chunk(batch, zkImportChunk) {
		answers, err := c.All(chunk)
		if err != nil {
			return made, set, zkRefusal(chunk[0].Path, err)
		}
		var refused error
		for i, a := range answers {
			switch {
			case a.Err != proto.OK:
				refused = errors.Join(refused, zkRefusal(chunk[i].Path, a.Err))
			case chunk[i].Op.Creates():
				made++
			case chunk[i].Op == proto.OpSetACL:
				set++
			}
		}
		if refused != nil {
			return made, set, firstOf(refused)
		}
	}
	return made, set, nil
}

// firstOf is the first of joined errors: the others mostly follow from it.
func firstOf(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()[0]
	}
	return err
}
