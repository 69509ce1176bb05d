package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"millrace/coord/zk/proto"
	"millrace/tools/internal/cli"
	"millrace/tools/internal/output"
	"millrace/tools/internal/zkclient"
)

// zkInput is data of the command line: an argument, "-" for standard input, or none.
func zkInput(cmd *cobra.Command, args []string) ([]byte, error) {
	switch {
	case len(args) < 2:
		return []byte{}, nil
	case args[1] == "-":
		return io.ReadAll(cmd.InOrStdin())
	}
	return []byte(args[1]), nil
}

func newZkSet() *cobra.Command {
	o := &zkOptions{}
	var version int32
	cmd := &cobra.Command{
		Use:     "set PATH DATA|-",
		Short:   "Set a node's data",
		Long:    "Set a node's data to the argument, or to what standard input has if it is -. The version that the node has then is shown.",
		Example: "  millrace zk set /config/a '{\"x\":1}' --version 3\n  millrace zk set /blob - < file",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("name a path, and the data or -")
			}
			return checkZkPath(args[0])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := zkInput(cmd, args)
			if err != nil {
				return err
			}
			return o.with(cmd, func(_ context.Context, c *zkclient.Client) error {
				res, err := c.Do(proto.Request{Op: proto.OpSetData, Path: args[0], Data: data, Version: version})
				if err != nil {
					return zkRefusal(args[0], err)
				}
				table := output.Table{Head: []string{"path", "version"}}
				table.Add(args[0], fmt.Sprint(res.Stat.Version))
				return o.show(cmd, zkEntryOf(args[0], &res.Stat), table)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().Int32Var(&version, "version", -1, "only if the node has this version; -1 any")
	return cmd
}

func zkEntryOf(path string, s *proto.Stat) zkEntry {
	v := zkStatOf(s)
	return zkEntry{path, &v}
}

// zkCreate is the options of create.
type zkCreate struct {
	zkOptions
	ephemeral, sequential, container, parents bool
	ttl                                       cli.Millis
	acl                                       []string
}

// request is the create that the options mean.
func (o *zkCreate) request(path string, data []byte) (proto.Request, error) {
	acl, err := parseACL(o.acl)
	q := proto.Request{Op: proto.OpCreate, Path: path, Data: data, ACL: acl}
	kinds := 0
	for _, given := range []bool{o.ephemeral, o.container, o.ttl > 0} {
		if given {
			kinds++
		}
	}
	switch {
	case err != nil:
		return q, err
	case kinds > 1:
		return q, cli.Usagef("--ephemeral, --container and --ttl exclude each other")
	case o.container && o.sequential:
		return q, cli.Usagef("a container has no sequence number")
	case o.container:
		q.Op, q.Mode = proto.OpCreateContainer, proto.Container
	case o.ttl > 0:
		q.Op, q.Mode, q.TTL = proto.OpCreateTTL, proto.PersistentTTL, o.ttl.Duration().Milliseconds()
		if o.sequential {
			q.Mode = proto.PersistentSequentialTTL
		}
	default:
		if o.ephemeral {
			q.Mode |= proto.Ephemeral
		}
		if o.sequential {
			q.Mode |= proto.PersistentSequential
		}
	}
	return q, nil
}

func newZkCreate() *cobra.Command {
	o := &zkCreate{}
	cmd := &cobra.Command{
		Use:   "create PATH [DATA|-]",
		Short: "Create a node",
		Long: `Create a node, with the argument as its data, or with what standard input has if it is -.
The path is shown, which for --sequential has its number. An ephemeral node lives as long
as its session: the command then holds it until it is interrupted.`,
		Example: `  millrace zk create /a/b hello --parents
  millrace zk create /queue/item- "$(date)" --sequential
  millrace zk create /lock --ephemeral
  millrace zk create /mine secret --auth digest:me:pw --acl auth::cdrwa`,
		Args: zkPath(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := zkInput(cmd, args)
			if err != nil {
				return err
			}
			q, err := o.request(args[0], data)
			if err != nil {
				return err
			}
			return o.with(cmd, func(ctx context.Context, c *zkclient.Client) error {
				if o.parents {
					if err := zkParents(c, args[0]); err != nil {
						return err
					}
				}
				res, err := c.Do(q)
				if errors.Is(err, proto.ErrNoNode) {
					return cli.NotFoundf("%s: the node above it does not exist; --parents makes it", args[0])
				}
				if err != nil {
					return zkRefusal(args[0], err)
				}
				table := output.Table{Head: []string{"path"}}
				table.Add(res.Path)
				if err := o.show(cmd, zkEntry{Path: res.Path}, table); err != nil || !o.ephemeral {
					return err
				}
				if _, err = c.Next(ctx); ctx.Err() != nil {
					return nil
				}
				return zkRefusal(res.Path, err)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVarP(&o.ephemeral, "ephemeral", "e", false, "a node that goes with the session, which lasts until the command is interrupted")
	cmd.Flags().BoolVarP(&o.sequential, "sequential", "q", false, "add a number to the name")
	cmd.Flags().BoolVarP(&o.container, "container", "c", false, "a node that goes some time after its last child")
	cmd.Flags().Var(&o.ttl, "ttl", "a node that goes when it has no children and was not changed for this long")
	cmd.Flags().BoolVarP(&o.parents, "parents", "p", false, "create the nodes above it that do not exist")
	cmd.Flags().StringArrayVar(&o.acl, "acl", nil, "scheme:id:permissions, such as world:anyone:r (repeatable; default world:anyone:cdrwa)")
	return cmd
}

// zkParents makes the nodes above a path.
func zkParents(c *zkclient.Client, path string) error {
	for i, r := range path {
		if r != '/' || i == 0 {
			continue
		}
		_, err := c.Do(proto.Request{Op: proto.OpCreate, Path: path[:i], Data: []byte{}, ACL: proto.OpenACL})
		if errors.Is(err, proto.ErrNoAuth) { // it may be there all the same
			_, err = c.Do(proto.Request{Op: proto.OpExists, Path: path[:i]})
		}
		if err != nil && !errors.Is(err, proto.ErrNodeExists) {
			return zkRefusal(path[:i], err)
		}
	}
	return nil
}

func newZkDelete() *cobra.Command {
	o := &zkOptions{}
	var deep bool
	var version int32
	cmd := &cobra.Command{
		Use:     "delete PATH",
		Short:   "Delete a node, with -R all below it too",
		Long:    "Delete a node. With -R all below it first, one after the other: it is not one transaction, and an error leaves what is not deleted yet. Of the root and /zookeeper nothing is deleted.",
		Example: "  millrace zk delete /a --version 2\n  millrace zk delete /old -R",
		Args:    zkPath(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "/" || args[0] == "/zookeeper" {
				return cli.Usagef("%s cannot be deleted", args[0])
			}
			if deep && version >= 0 {
				return cli.Usagef("-R and --version exclude each other")
			}
			return o.with(cmd, func(_ context.Context, c *zkclient.Client) error {
				paths := []string{args[0]}
				if deep {
					var err error
					if paths, err = zkList(c, args[0], true); err != nil {
						return err
					}
				}
				slices.Reverse(paths) // what is below comes behind what is above in the order of paths
				asks := make([]proto.Request, len(paths))
				for i, p := range paths {
					asks[i] = proto.Request{Op: proto.OpDelete, Path: p, Version: version}
				}
				answers, err := c.All(asks)
				if err != nil {
					return zkRefusal(args[0], err)
				}
				gone := []string{}
				for i, a := range answers {
					if a.Err == proto.ErrNoNode && deep {
						continue // somebody else was faster
					}
					if a.Err != proto.OK {
						return zkRefusal(paths[i], a.Err)
					}
					gone = append(gone, paths[i])
				}
				if o.asJSON {
					return output.JSON(cmd.OutOrStdout(), gone)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "deleted: %d\n", len(gone))
				return err
			})
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVarP(&deep, "recursive", "R", false, "all below it too")
	cmd.Flags().Int32Var(&version, "version", -1, "only if the node has this version; -1 any")
	return cmd
}

func newZkACL() *cobra.Command {
	o := &zkOptions{}
	cmd := &cobra.Command{
		Use:     "acl PATH [ENTRY...]",
		Short:   "Show or set a node's access list",
		Long:    "Show a node's access list, or set it to the entries, each scheme:id:permissions with permissions of c (create), d (delete), r (read), w (write), a (admin).",
		Example: "  millrace zk acl /a\n  millrace zk acl /a world:anyone:r ip:10.0.0.0/8:cdrwa",
		Args:    zkPath(1000),
		RunE: func(cmd *cobra.Command, args []string) error {
			acl, err := parseACL(args[1:])
			if err != nil {
				return err
			}
			return o.with(cmd, func(_ context.Context, c *zkclient.Client) error {
				if len(args) > 1 {
					if _, err := c.Do(proto.Request{Op: proto.OpSetACL, Path: args[0], ACL: acl, Version: -1}); err != nil {
						return zkRefusal(args[0], err)
					}
				}
				res, err := c.Do(proto.Request{Op: proto.OpGetACL, Path: args[0]})
				if err != nil {
					return zkRefusal(args[0], err)
				}
				list := aclText(res.ACL)
				if o.asJSON {
					return output.JSON(cmd.OutOrStdout(), list)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(list, "\n"))
				return err
			})
		},
	}
	o.register(cmd)
	return cmd
}
