package client

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"millrace/tools/internal/cli"
)

// Flags are the connection flags of Kafka's tools. The deprecated spellings
// (--producer-props, --producer.config, --consumer.config) are the same flags.
type Flags struct {
	Bootstrap  string
	Config     string
	Properties Pairs
}

// Pairs is a repeatable flag; two spellings of it may share one value.
type Pairs []string

// Set implements pflag.Value.
func (p *Pairs) Set(v string) error { *p = append(*p, v); return nil }

// String implements pflag.Value.
func (p *Pairs) String() string { return strings.Join(*p, " ") }

// Type implements pflag.Value.
func (p *Pairs) Type() string { return "name=value" }

// Register adds the flags. aliases names Kafka's deprecated spellings of the
// config and the property flag; either may be empty.
func (f *Flags) Register(fs *pflag.FlagSet, configAlias, propertyAlias string) {
	fs.StringVarP(&f.Bootstrap, "bootstrap-server", "b", "", "host:port of a broker, or several with commas (default 127.0.0.1:9092)")
	fs.StringVar(&f.Config, "command-config", "", "file of Kafka client properties")
	fs.Var(&f.Properties, "command-property", "a Kafka client property, name=value (repeatable)")
	if configAlias != "" {
		fs.StringVar(&f.Config, configAlias, "", "Kafka's older name of --command-config")
	}
	if propertyAlias != "" {
		fs.Var(&f.Properties, propertyAlias, "Kafka's older name of --command-property")
	}
}

// Settings resolves the flags as Kafka's tools do: the file, then the
// properties (extra holds those that followed on the command line), then
// --bootstrap-server. Unknown properties are warned about on warn.
func (f *Flags) Settings(role Role, extra []string, warn io.Writer) (*Settings, error) {
	s := NewSettings()
	if f.Config != "" {
		unknown, err := s.Load(role, f.Config)
		if err != nil {
			return nil, &cli.Error{Status: cli.ExitUsage, Err: err}
		}
		warnUnknown(warn, unknown)
	}
	unknown, err := s.Apply(role, slices.Concat(f.Properties, extra))
	if err != nil {
		return nil, &cli.Error{Status: cli.ExitUsage, Err: err}
	}
	warnUnknown(warn, unknown)
	if f.Bootstrap != "" {
		s.Bootstrap = splitList(f.Bootstrap)
	}
	for i, address := range s.Bootstrap {
		if !strings.Contains(address, ":") {
			s.Bootstrap[i] = address + ":9092"
		}
	}
	if len(s.Bootstrap) == 0 {
		return nil, cli.Usagef("--bootstrap-server names no broker")
	}
	return s, nil
}

func warnUnknown(w io.Writer, names []string) {
	for _, name := range names {
		fmt.Fprintf(w, "warning: property %s is not known here and has no effect\n", name)
	}
}

// OnlyProperties is the cobra.Args check of the perf tools. Kafka's tools read
// several pairs after one flag (--producer-props acks=1 linger.ms=0); what
// follows the first reaches us as arguments, so arguments must be pairs.
func (f *Flags) OnlyProperties(args []string) error {
	for _, arg := range args {
		if len(f.Properties) == 0 || !strings.Contains(arg, "=") {
			return cli.Usagef("unexpected argument %q", arg)
		}
	}
	return nil
}
