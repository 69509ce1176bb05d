package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

// quotaOptions say whose quotas are meant.
type quotaOptions struct {
	admin
	user, client, ip           string
	userDefault, clientDefault bool
	ipDefault                  bool
}

func newQuota() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quota",
		Short: "Show and change the quotas of users, clients and addresses",
		Example: `  millrace quota list
  millrace quota set --client batch producer_byte_rate=1048576
  millrace quota unset --client batch producer_byte_rate`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newQuotaList(), newQuotaChange(true), newQuotaChange(false))
	return cmd
}

func (o *quotaOptions) register(fs *pflag.FlagSet) {
	fs.StringVar(&o.user, "user", "", "of this user")
	fs.StringVar(&o.client, "client", "", "of clients with this id")
	fs.StringVar(&o.ip, "ip", "", "of connections from this address")
	fs.BoolVar(&o.userDefault, "user-default", false, "of users without quotas of their own")
	fs.BoolVar(&o.clientDefault, "client-default", false, "of clients without quotas of their own")
	fs.BoolVar(&o.ipDefault, "ip-default", false, "of addresses without quotas of their own")
}

// entities are those that the options name.
func (o *quotaOptions) entities() (list []configEntity, err error) {
	for _, e := range []struct {
		kind, name string
		defaults   bool
	}{{"users", o.user, o.userDefault}, {"clients", o.client, o.clientDefault}, {"ips", o.ip, o.ipDefault}} {
		switch {
		case e.defaults && e.name != "":
			return nil, cli.Usagef("a name and the default of %s exclude each other", e.kind)
		case e.defaults || e.name != "":
			list = append(list, configEntity{e.kind, &e.name})
		}
	}
	if len(list) > 1 && list[len(list)-1].kind == "ips" {
		return nil, cli.Usagef("an address goes with neither user nor client")
	}
	return list, nil
}

// quotaRow is an element of what 'quota list --json' writes; "" names a default.
type quotaRow struct {
	Entity map[string]string  `json:"entity"`
	Quotas map[string]float64 `json:"quotas"`
}

func newQuotaList() *cobra.Command {
	o := &quotaOptions{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show quotas: all of them, or those of one entity",
		Long:  "Show quotas: all of them, or those of one entity.\n\nColumns: entity, quota, value.",
		Example: `  millrace quota list
  millrace quota list --user anna --client batch`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			entities, err := o.entities()
			if err != nil {
				return err
			}
			asks := [][]configEntity{entities}
			if len(entities) == 0 { // everything that can have quotas
				asks = [][]configEntity{{{"users", nil}}, {{"clients", nil}}, {{"users", nil}, {"clients", nil}}, {{"ips", nil}}}
			}
			return o.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				list := []quotaRow{}
				table := output.Table{Head: []string{"entity", "quota", "value"}, Numbers: []string{"value"}}
				for _, ask := range asks {
					quotas, err := askQuotas(ctx, cl, ask)
					if err != nil {
						return err
					}
					for _, q := range quotas {
						row := quotaRow{map[string]string{}, map[string]float64{}}
						for _, c := range q.Entity {
							row.Entity[c.Type] = text(c.Name)
						}
						for _, v := range q.Values {
							row.Quotas[v.Key] = v.Value
							table.Add(quotaEntityText(q.Entity), v.Key, strconv.FormatFloat(v.Value, 'f', -1, 64))
						}
						list = append(list, row)
					}
				}
				return o.show(cmd, list, table)
			})
		},
	}
	o.register(cmd.Flags())
	o.admin.register(cmd)
	return cmd
}

func newQuotaChange(set bool) *cobra.Command {
	o := &quotaOptions{}
	cmd := &cobra.Command{
		Use:     "set name=value...",
		Short:   "Set quotas",
		Long:    "Set quotas: producer_byte_rate and consumer_byte_rate in bytes a second, request_percentage, controller_mutation_rate; for addresses connection_creation_rate.",
		Example: "  millrace quota set --client batch producer_byte_rate=1048576\n  millrace quota set --user-default request_percentage=200",
	}
	if !set {
		cmd.Use, cmd.Short, cmd.Long, cmd.Example = "unset name...", "Take quotas away", "Take quotas away.", "  millrace quota unset --client batch producer_byte_rate"
	}
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		entities, err := o.entities()
		if err != nil {
			return err
		}
		if len(entities) == 0 {
			return cli.Usagef("say whose quotas: --user, --client, --ip, or the default of one")
		}
		change, err := quotaChange(args, set, entities[0].kind)
		if err != nil {
			return err
		}
		return o.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
			if err := alterQuotas(ctx, cl, entities, change); err != nil {
				return err
			}
			if o.asJSON {
				return output.JSON(cmd.OutOrStdout(), args)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "altered: "+strings.Join(args, " "))
			return nil
		})
	}
	o.register(cmd.Flags())
	o.admin.register(cmd)
	return cmd
}

func quotaChange(args []string, set bool, kind string) (configChange, error) {
	change := configChange{set: map[string]string{}}
	for _, arg := range args {
		name, value, valued := strings.Cut(arg, "=")
		switch {
		case valued != set:
			return change, cli.Usagef("%q: set takes name=value, unset takes names", arg)
		case !slices.Contains(quotaNames[kind], name):
			return change, cli.Usagef("%q is none of %s", name, strings.Join(quotaNames[kind], ", "))
		case set:
			change.set[name] = value
		default:
			change.remove = append(change.remove, name)
		}
	}
	return change, nil
}
