// Package script is what the commands under Kafka's names share: the way Kafka's
// scripts read a command line, how they end, and the words they use.
package script

import (
	"strings"

	"github.com/spf13/pflag"
)

// Expand reads a command line as Kafka's scripts do and writes it as pflag wants it:
// every option with two dashes and with its value behind '='. Kafka's rules that pflag
// lacks: one dash will do, and an option whose value may be left out takes the next
// word unless that is an option.
func Expand(fs *pflag.FlagSet, args []string) ([]string, error) {
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...), nil
		}
		if len(arg) < 2 || arg[0] != '-' {
			out = append(out, arg)
			continue
		}
		name, value, valued := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		f := find(fs, name)
		if f == nil {
			return nil, Usagef("%s is not a recognized option", name)
		}
		if f.Value.Type() == "bool" {
			out = append(out, "--"+f.Name)
			continue
		}
		next := i + 1
		switch {
		case valued:
		case f.NoOptDefVal != "" && (next == len(args) || strings.HasPrefix(args[next], "-")):
			out = append(out, "--"+f.Name)
			continue
		case next == len(args):
			return nil, Usagef("Option %s requires an argument", f.Name)
		default:
			value, i = args[next], next
		}
		out = append(out, "--"+f.Name+"="+value)
	}
	return out, nil
}

// find looks an option up by its name, or its one letter. Kafka's scripts take no
// shortened names.
func find(fs *pflag.FlagSet, name string) *pflag.Flag {
	if f := fs.Lookup(name); f != nil || len(name) != 1 {
		return f
	}
	return fs.ShorthandLookup(name)
}

// Maybe is an option whose value may be left out, as in --state and --state stable.
type Maybe struct {
	Given bool
	Value string
}

// withoutValue is what pflag passes on for an option that stands alone.
const withoutValue = "\x00"

// Register adds the option.
func (m *Maybe) Register(fs *pflag.FlagSet, name, usage string) {
	fs.Var(m, name, usage)
	fs.Lookup(name).NoOptDefVal = withoutValue
}

// Set implements pflag.Value.
func (m *Maybe) Set(v string) error {
	m.Given = true
	if v != withoutValue {
		m.Value = v
	}
	return nil
}

// String implements pflag.Value.
func (m *Maybe) String() string { return m.Value }

// Type implements pflag.Value.
func (m *Maybe) Type() string { return "string" }

// Whole is a number from the command line. The zero value was not given.
type Whole struct {
	Given bool
	Value int64
	bits  int
}

// Register adds the option; bits is the size that Kafka's scripts give it, 32 or 64.
func (w *Whole) Register(fs *pflag.FlagSet, bits int, name, usage string) {
	w.bits = bits
	fs.Var(w, name, usage)
}
