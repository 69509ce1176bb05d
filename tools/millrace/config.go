package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/tools/internal/cli"
	"millrace/tools/internal/client"
	"millrace/tools/internal/output"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and change settings of topics, brokers, groups and the like",
		Example: `  millrace config describe topic logs
  millrace config set topic logs retention.ms=3600000
  millrace config unset topic logs retention.ms
  millrace config set group billing consumer.session.timeout.ms=50000
  millrace config set client-metrics producers metrics=org.apache.kafka.producer. interval.ms=10000
  millrace config set broker-logger 1 millrace.broker=WARN`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigDescribe(), newConfigSet(), newConfigUnset())
	return cmd
}

// configKinds are what 'millrace config' takes, with the names of the protocol's types.
var configKinds = map[string]string{"topic": "topics", "broker": "brokers", "broker-logger": "broker-loggers", "group": "groups", "client-metrics": "client-metrics"}

// configTarget reads KIND NAME from the arguments; --default stands for the name.
func configTarget(args []string, defaults bool) (e configEntity, rest []string, err error) {
	if len(args) == 0 || configKinds[args[0]] == "" {
		return e, nil, cli.Usagef("say whose settings: topic, broker, broker-logger, group or client-metrics, and the name")
	}
	e.kind, rest = configKinds[args[0]], args[1:]
	switch {
	case defaults && e.kind != "brokers":
		return e, nil, cli.Usagef("--default is for brokers only")
	case defaults:
		e.name = new(string)
		return e, rest, nil
	case len(rest) == 0:
		return e, nil, cli.Usagef("name the %s", args[0])
	}
	e.name = &rest[0]
	if _, err := strconv.ParseInt(rest[0], 10, 32); strings.HasPrefix(e.kind, "broker") && err != nil {
		return e, nil, cli.Usagef("a broker is named by its id, a number, not %q", rest[0])
	}
	return e, rest[1:], nil
}

// entitySetting is an element of what 'config describe --json' writes.
type entitySetting struct {
	Key       string   `json:"key"`
	Value     *string  `json:"value"` // null: none, or not to be shown
	Source    string   `json:"source"`
	Default   bool     `json:"default"`
	ReadOnly  bool     `json:"read_only"`
	Sensitive bool     `json:"sensitive,omitempty"`
	Synonyms  []string `json:"synonyms,omitempty"` // source:key=value, in the order in which they count
}

func newConfigDescribe() *cobra.Command {
	var a admin
	var all, defaults bool
	cmd := &cobra.Command{
		Use:   "describe topic|broker|broker-logger|group|client-metrics NAME",
		Short: "Show settings",
		Long: `Show the settings that were made for one topic, broker, group or subscription to
clients' metrics, or with --all every setting that counts for it. A broker-logger is
named by its broker's id; its settings are the levels of the broker's loggers.

Columns in a pipe: setting, value ("-" where there is none), source.`,
		Example: `  millrace config describe topic logs --all
  millrace config describe broker 1
  millrace config describe broker --default
  millrace config describe topic logs --all --json | jq '.[] | select(.key == "retention.ms")'`,
		Args: cobra.ArbitraryArgs, // configTarget checks them
		RunE: func(cmd *cobra.Command, args []string) error {
			e, rest, err := configTarget(args, defaults)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return cli.Usagef("unexpected argument %q", rest[0])
			}
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				if named := e.kind == "groups" || e.kind == "client-metrics"; !named && *e.name != "" { // those need not be there
					if there, err := entityExists(ctx, cl, e.kind, *e.name); err != nil {
						return err
					} else if !there {
						return cli.NotFoundf("%s %q does not exist", args[0], *e.name)
					}
				}
				configs, err := entityConfigs(ctx, cl, e.kind, *e.name, all)
				if err != nil {
					return err
				}
				list := entitySettings(configs)
				table := output.Table{Title: strings.TrimSpace(args[0] + " " + *e.name), Head: []string{"setting", "value", "source"}}
				for _, s := range list {
					table.Add(s.Key, dash(text(s.Value)), s.Source)
				}
				return a.show(cmd, list, table)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show defaults, too")
	cmd.Flags().BoolVar(&defaults, "default", false, "what counts for all brokers, instead of a name")
	a.register(cmd)
	return cmd
}

func entitySettings(configs []kmsg.DescribeConfigsResponseResourceConfig) []entitySetting {
	list := []entitySetting{}
	for _, c := range configs {
		s := entitySetting{
			Key: c.Name, Value: c.Value, Source: strings.ToLower(sourceName(c.Source)), ReadOnly: c.ReadOnly, Sensitive: c.IsSensitive,
			Default: c.Source == kmsg.ConfigSourceDefaultConfig,
		}
		for _, y := range c.ConfigSynonyms {
			s.Synonyms = append(s.Synonyms, fmt.Sprintf("%s:%s=%s", strings.ToLower(sourceName(y.Source)), y.Name, text(y.Value)))
		}
		list = append(list, s)
	}
	return list
}

func newConfigSet() *cobra.Command {
	return newConfigChange("set topic|broker|broker-logger|group|client-metrics NAME key=value...", "Make settings", `  millrace config set topic logs retention.ms=3600000 cleanup.policy=compact,delete
  millrace config set broker --default log.retention.ms=86400000`,
		func(rest []string) (configChange, error) {
			set := map[string]string{}
			for _, pair := range rest {
				key, value, ok := strings.Cut(pair, "=")
				if !ok || key == "" {
					return configChange{}, cli.Usagef("%q is not of the form key=value", pair)
				}
				set[key] = value
			}
			return configChange{set: set}, nil
		})
}

func newConfigUnset() *cobra.Command {
	return newConfigChange("unset topic|broker|broker-logger|group|client-metrics NAME key...", "Take settings back to their defaults", `  millrace config unset topic logs retention.ms cleanup.policy`,
		func(rest []string) (configChange, error) {
			if i := slices.IndexFunc(rest, func(key string) bool { return strings.Contains(key, "=") }); i >= 0 {
				return configChange{}, cli.Usagef("name the settings without values, not %q", rest[i])
			}
			return configChange{remove: rest}, nil
		})
}

func newConfigChange(use, short, example string, read func([]string) (configChange, error)) *cobra.Command {
	var a admin
	var defaults bool
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: cobra.ArbitraryArgs, // configTarget checks them
		RunE: func(cmd *cobra.Command, args []string) error {
			e, rest, err := configTarget(args, defaults)
			if err != nil {
				return err
			}
			if len(rest) == 0 {
				return cli.Usagef("name at least one setting")
			}
			change, err := read(rest)
			if err != nil {
				return err
			}
			return a.ask(cmd, func(ctx context.Context, cl *client.Admin) error {
				if err := alterEntity(ctx, cl, e, change); err != nil {
					return err
				}
				list, err := entityConfigs(ctx, cl, e.kind, *e.name, false)
				if err != nil {
					return err
				}
				if a.asJSON {
					return output.JSON(cmd.OutOrStdout(), entitySettings(list))
				}
				fmt.Fprintf(cmd.OutOrStdout(), "altered: %s\n", strings.TrimSpace(args[0]+" "+*e.name))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&defaults, "default", false, "what counts for all brokers, instead of a name")
	a.register(cmd)
	return cmd
}
