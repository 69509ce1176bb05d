package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millrace/coord/zk/proto"
	"millrace/tools/internal/cli"
	"millrace/tools/internal/output"
	"millrace/tools/internal/zkclient"
)

func newZk() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "zk",
		Short: "Look at and change the nodes of a coordination service, ours or ZooKeeper",
		Long: `Look at and change the nodes of a coordination service: 'millrace coordinator', the
one inside a broker, or Apache ZooKeeper 3.6 and later.

--server names it: host:port, several with commas between, and a path behind them below
which all paths of the command are (host:2181/kafka).`,
		Example: `  millrace zk ls / -R
  millrace zk get /controller
  millrace zk create /a/b/c hello --parents
  millrace zk watch /brokers -R
  millrace zk export tree.json && millrace zk import tree.json --server other:2181`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newZkGet(), newZkLs(), newZkStat(), newZkDump(), newZkSet(), newZkCreate(), newZkDelete(), newZkACL(), newZkWatch(), newZkExport(), newZkImport())
	return cmd
}

// zkOptions is the part that all zk commands share.
type zkOptions struct {
	server  string
	auth    []string
	timeout cli.Millis
	asJSON  bool
}

func (o *zkOptions) register(cmd *cobra.Command) {
	o.timeout = cli.Millis(30 * time.Second)
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&o.server, "server", "s", "127.0.0.1:2181", "host:port[,host:port...][/path]")
	cmd.Flags().StringArrayVar(&o.auth, "auth", nil, "scheme:credentials, such as digest:user:password (repeatable)")
	cmd.Flags().Var(&o.timeout, "session-timeout", "what the session is asked to time out after")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON")
}

// with runs f with a session, which ends afterwards.
func (o *zkOptions) with(cmd *cobra.Command, f func(ctx context.Context, c *zkclient.Client) error) error {
	ctx := cmd.Context()
	c, err := zkclient.Dial(ctx, o.server, o.timeout.Duration())
	if err != nil {
		return cli.Unreachablef("coordination at %s: %w", o.server, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, c.Interrupt)()
	for _, a := range o.auth {
		scheme, secret, ok := strings.Cut(a, ":")
		if !ok {
			return cli.Usagef("--auth %s… is not of the form scheme:credentials", scheme)
		}
		if _, err := c.Do(proto.Request{Op: proto.OpAuth, Scheme: scheme, Data: []byte(secret)}); err != nil {
			return fmt.Errorf("--auth %s: the server does not take it: %w", scheme, err)
		}
	}
	err = f(ctx, c)
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	return err
}

// zkRefusal is what a server's no, or the loss of it, means to the user.
func zkRefusal(path string, err error) error {
	var code proto.Code
	var network net.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, proto.ErrNoNode):
		return cli.NotFoundf("%s: no such node", path)
	case errors.Is(err, proto.ErrNodeExists):
		return cli.NotFoundf("%s: the node exists already", path)
	case errors.Is(err, proto.ErrBadVersion):
		return fmt.Errorf("%s: the node has another version than --version says", path)
	case errors.Is(err, proto.ErrNotEmpty):
		return fmt.Errorf("%s: the node has children; -R deletes them too", path)
	case errors.Is(err, proto.ErrNoAuth):
		return fmt.Errorf("%s: its access list does not allow this; see --auth", path)
	case errors.Is(err, proto.ErrInvalidACL):
		return fmt.Errorf("%s: the server does not take this access list", path)
	case errors.Is(err, proto.ErrUnimplemented):
		return fmt.Errorf("%s: the server does not offer this (TTL nodes need extendedTypesEnabled=true, watches ZooKeeper 3.6)", path)
	case errors.As(err, &code):
		return fmt.Errorf("%s: %v", path, code)
	case errors.As(err, &network):
		return cli.Unreachablef("%s: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// zkPath is a cobra.Args check: one path, and as many further arguments as may be.
func zkPath(further int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 || len(args) > 1+further {
			return fmt.Errorf("name one path, and at most %d further arguments", further)
		}
		return checkZkPath(args[0])
	}
}

func checkZkPath(path string) error {
	if !strings.HasPrefix(path, "/") || path != "/" && strings.HasSuffix(path, "/") || strings.Contains(path, "//") {
		return cli.Usagef("%q is not a path: it must begin with / and not end with one, without an empty name", path)
	}
	return nil
}

// childOf joins a path and a name.
func childOf(path, name string) string { return strings.TrimSuffix(path, "/") + "/" + name }

// permissions are zkCli's letters, in its order.
var permissions = []struct {
	letter byte
	bit    int32
}{{'c', proto.PermCreate}, {'d', proto.PermDelete}, {'r', proto.PermRead}, {'w', proto.PermWrite}, {'a', proto.PermAdmin}}

// aclText writes entries as scheme:id:permissions.
func aclText(acl []proto.ACL) []string {
	list := []string{}
	for _, a := range acl {
		perms := ""
		for _, p := range permissions {
			if a.Perms&p.bit != 0 {
				perms += string(p.letter)
			}
		}
		list = append(list, a.ID.Scheme+":"+a.ID.ID+":"+perms)
	}
	sort.Strings(list) // servers keep them in no order
	return list
}

// parseACL reads what aclText writes; none is open to everybody.
func parseACL(list []string) ([]proto.ACL, error) {
	if len(list) == 0 {
		return proto.OpenACL, nil
	}
	var acl []proto.ACL
	for _, text := range list {
		scheme, rest, _ := strings.Cut(text, ":")
		i := strings.LastIndexByte(rest, ':')
		if scheme == "" || i < 0 {
			return nil, cli.Usagef("access list entry %q is not of the form scheme:id:permissions (world:anyone:cdrwa)", text)
		}
		a := proto.ACL{ID: proto.ID{Scheme: scheme, ID: rest[:i]}}
		for _, letter := range []byte(rest[i+1:]) {
			bit := int32(0)
			for _, p := range permissions {
				if p.letter == letter {
					bit = p.bit
				}
			}
			if bit == 0 {
				return nil, cli.Usagef("access list entry %q: permissions are of the letters c, d, r, w and a", text)
			}
			a.Perms |= bit
		}
		acl = append(acl, a)
	}
	return acl, nil
}

// zkKind is what a node's owner says of it. Of containers and TTL nodes the protocol says
// that they have none: to clients they look persistent.
func zkKind(owner int64) string {
	if owner == 0 {
		return "persistent"
	}
	return "ephemeral"
}

// show writes rows as a table, or what stands for them as JSON.
func (o *zkOptions) show(cmd *cobra.Command, asJSON any, table output.Table) error {
	if o.asJSON {
		return output.JSON(cmd.OutOrStdout(), asJSON)
	}
	return table.Write(cmd.OutOrStdout())
}
