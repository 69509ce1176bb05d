package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"millrace/tools/internal/client"
	"millrace/tools/internal/script"
)

// configsScript is kafka-configs.sh.
type configsScript struct {
	connection script.Connection
	zookeeper  string // in place of a broker

	entities             []configEntity // in the order given
	pending              []string       // types whose name has not come yet
	byOption             []configEntity // those of --topic, --client and the like
	all, force           bool
	add, remove, addFile string
}

// configEntity is what settings belong to. A nil name is all of the type, an empty one
// the default of the type.
type configEntity struct {
	kind string // topics, brokers, clients, users, ips, groups, client-metrics, broker-loggers
	name *string
}

// entityKinds are the types of --entity-type, and the options that name one of a type.
var entityKinds = []struct{ kind, option, defaults string }{
	{"topics", "topic", ""},
	{"clients", "client", "client-defaults"},
	{"users", "user", "user-defaults"},
	{"brokers", "broker", "broker-defaults"},
	{"ips", "ip", "ip-defaults"},
	{"client-metrics", "client-metrics", ""},
	{"groups", "group", ""},
	{"broker-loggers", "broker-logger", ""},
}

func newConfigsScript() *cobra.Command {
	s := &configsScript{}
	cmd := &cobra.Command{
		Use:   "kafka-configs.sh",
		Short: "This tool helps to manipulate and describe entity config for a topic, client, user, broker",
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	fs := cmd.Flags()
	s.connection.Register(fs)
	fs.StringVar(&s.zookeeper, "zookeeper", "", zookeeperUsage)
	fs.Bool("describe", false, "show settings")
	fs.Bool("alter", false, "change settings")
	fs.StringArrayVar(&s.pending, "entity-type", nil, "topics, brokers, clients, users, ips, groups, client-metrics or broker-loggers; users and clients may be given together")
	fs.Func("entity-name", "the name of the entity", func(v string) error { s.named(&v); return nil })
	fs.Var(flagFunc(func() { s.named(new(string)) }), "entity-default", "the default of the type")
	fs.Lookup("entity-default").NoOptDefVal = "true"
	for _, k := range entityKinds {
		fs.Func(k.option, "the "+strings.TrimSuffix(k.kind, "s")+" of this name", func(v string) error {
			s.byOption = append(s.byOption, configEntity{k.kind, &v})
			return nil
		})
		if k.defaults != "" {
			fs.Var(flagFunc(func() { s.byOption = append(s.byOption, configEntity{k.kind, new(string)}) }), k.defaults, "what counts for all "+k.kind+" without settings of their own")
			fs.Lookup(k.defaults).NoOptDefVal = "true"
		}
	}
	fs.BoolVar(&s.all, "all", false, "with --describe: all settings, not only those that were set")
	fs.StringVar(&s.add, "add-config", "", "settings to set: a=1,b=[x,y],c=2; brackets hold values with commas")
	fs.StringVar(&s.addFile, "add-config-file", "", "a properties file of settings to set")
	fs.StringVar(&s.remove, "delete-config", "", "settings to take back to their defaults: a,b")
	fs.BoolVar(&s.force, "force", false, "accepted for Kafka's sake")
	return cmd
}

// flagFunc is a flag without a value that calls a function.
type flagFunc func()

func (f flagFunc) Set(string) error { f(); return nil }
func (f flagFunc) String() string   { return "" }
func (f flagFunc) Type() string     { return "bool" }

var _ pflag.Value = flagFunc(nil)

// named gives the oldest type without a name its name.
func (s *configsScript) named(name *string) {
	if len(s.pending) > 0 {
		s.entities = append(s.entities, configEntity{s.pending[0], name})
		s.pending = s.pending[1:]
		return
	}
	s.entities = append(s.entities, configEntity{"", name})
}

// check refuses what Kafka's script refuses before it connects.
func (s *configsScript) check(cmd *cobra.Command) (alter bool, err error) {
	fs := cmd.Flags()
	alter = fs.Changed("alter")
	for _, kind := range s.pending {
		s.entities = append(s.entities, configEntity{kind, nil})
	}
	for _, k := range entityKinds {
		for _, e := range s.byOption {
			if e.kind == k.kind {
				s.entities = append(s.entities, e)
			}
		}
	}
	switch {
	case alter == fs.Changed("describe"):
		return false, script.Usagef("Command must include exactly one action: --describe, --alter")
	case s.connection.Bootstrap == "" && s.zookeeper == "":
		return false, script.Usagef("Either --bootstrap-server or --bootstrap-controller must be specified.")
	case len(s.entities) == 0:
		return false, script.Usagef("At least one entity type must be specified")
	}
	if s.zookeeper != "" {
		if err := s.checkZookeeper(cmd); err != nil {
			return false, err
		}
	}
	var kinds []string
	for _, e := range s.entities {
		if e.kind == "" {
			return false, script.Usagef("--entity-name or --entity-default must follow an --entity-type")
		}
		if !slices.ContainsFunc(entityKinds, func(k struct{ kind, option, defaults string }) bool { return k.kind == e.kind }) {
			return false, script.Usagef("Invalid entity type %s, the entity type must be one of topics, clients, users, brokers, ips, client-metrics, groups, broker-loggers with a --bootstrap-server or --bootstrap-controller argument", e.kind)
		}
		if slices.Contains(kinds, e.kind) {
			return false, script.Usagef("Duplicate entity type(s) specified: %s", e.kind)
		}
		kinds = append(kinds, e.kind)
		err := e.check(alter)
		if err == nil && s.zookeeper != "" {
			err = e.checkInTree(alter)
		}
		if err != nil {
			return false, err
		}
	}
	if len(kinds) > 1 && !(len(kinds) == 2 && slices.Contains(kinds, "users") && slices.Contains(kinds, "clients")) {
		return false, script.Usagef("Only users and clients may be specified together")
	}
	if alter && s.add == "" && s.addFile == "" && s.remove == "" {
		return false, script.Usagef("At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter")
	}
	if s.add != "" && s.addFile != "" {
		return false, script.Usagef("Only one of --add-config or --add-config-file must be specified")
	}
	return alter, nil
}

func (e configEntity) check(alter bool) error {
	switch {
	case !alter && e.name == nil && e.kind == "broker-loggers":
		return script.Usagef("An entity name must be specified with --describe of broker-loggers")
	case alter && e.name == nil && !e.quota():
		return script.Usagef("An entity name must be specified with --alter of %s", e.kind)
	case alter && e.name == nil:
		return script.Usagef("An entity-name or default entity must be specified with --alter of users, clients, brokers or ips")
	case e.kind == "brokers" && e.name != nil && *e.name != "":
		if _, err := strconv.ParseInt(*e.name, 10, 32); err != nil {
			return script.Usagef("The entity name for brokers must be a valid integer broker id, but it is: %s", *e.name)
		}
	}
	return nil
}

// quota says whether the settings of the entity are quotas.
func (e configEntity) quota() bool {
	return e.kind == "clients" || e.kind == "users" || e.kind == "ips"
}

// one is the entity's type as Kafka's sentences have it.
func (e configEntity) one() string {
	return strings.TrimSuffix(e.kind, "s")
}

func (s *configsScript) run(cmd *cobra.Command) error {
	alter, err := s.check(cmd)
	if err != nil {
		return err
	}
	if s.zookeeper != "" {
		return s.runZookeeper(cmd, alter)
	}
	var change configChange
	if alter {
		if change, err = s.change(); err != nil {
			return err
		}
		if s.entities[0].quota() {
			if err := change.onlyQuotas(s.entities[0].kind); err != nil {
				return err
			}
		}
	}
	out := cmd.OutOrStdout()
	err = s.connection.Admin(cmd, func(ctx context.Context, cl *client.Admin) error {
		switch quota := s.entities[0].quota(); {
		case alter && quota:
			err = alterQuotas(ctx, cl, s.entities, change)
		case alter && s.entities[0].kind == "broker-loggers":
			if err = onlyLoggers(ctx, cl, s.entities[0], change); err == nil {
				err = alterEntity(ctx, cl, s.entities[0], change)
			}
		case alter:
			err = alterEntity(ctx, cl, s.entities[0], change)
		case quota:
			return describeQuotasScript(ctx, cl, out, s.entities)
		default:
			return s.describe(ctx, cl, out, s.entities[0])
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, s.completed())
		return nil
	})
	return explainConfigs(cmd, err)
}

// completed is Kafka's sentence about the entity that was given first.
func (s *configsScript) completed() string {
	if e := s.entities[0]; *e.name != "" {
		return fmt.Sprintf("Completed updating config for %s %s.", e.one(), *e.name)
	}
	if s.entities[0].kind == "brokers" {
		return "Completed updating default config for brokers in the cluster."
	}
	return fmt.Sprintf("Completed updating default config for %s in the cluster.", s.entities[0].kind)
}

// explainConfigs writes what failed once the broker was asked.
func explainConfigs(cmd *cobra.Command, err error) error {
	errs := cmd.ErrOrStderr()
	if err == nil {
		return nil
	}
	if plain, ok := err.(*plainError); ok {
		fmt.Fprintln(errs, plain.say)
		return &script.Failed{Status: 1}
	}
	fmt.Fprintf(errs, "Error while executing config command with args '%s'\n%v\n", strings.Join(script.Args(cmd), " "), err)
	return &script.Failed{Status: 1}
}

// plainError is one of the failures that Kafka's script tells in one line.
type plainError struct{ say string }

func (e *plainError) Error() string { return e.say }

func (s *configsScript) describe(ctx context.Context, cl *client.Admin, out io.Writer, e configEntity) error {
	names, err := entityNames(ctx, cl, e)
	if err != nil {
		return err
	}
	for _, name := range names {
		if e.name != nil && *e.name != "" && !(s.all && (e.kind == "groups" || e.kind == "client-metrics")) { // as Kafka's
			if there, err := entityExists(ctx, cl, e.kind, name); err != nil {
				return err
			} else if !there {
				fmt.Fprintf(out, "The %s '%s' doesn't exist and doesn't have dynamic config.\n", e.one(), name)
				continue
			}
		}
		which := "Dynamic"
		if s.all {
			which = "All"
		}
		if name == "" {
			fmt.Fprintf(out, "Default configs for %s in the cluster are:\n", e.kind)
		} else {
			fmt.Fprintf(out, "%s configs for %s %s are:\n", which, e.one(), name)
		}
		list, err := entityConfigs(ctx, cl, e.kind, name, s.all)
		if err != nil {
			return err
		}
		for _, c := range list {
			fmt.Fprintln(out, configLine(c))
		}
	}
	return nil
}
