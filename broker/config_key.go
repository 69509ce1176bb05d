package broker

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ConfigType is a key's type under the names Kafka's documentation uses.
type ConfigType string

// The types of configs.md; TypePassword marks values that are never shown.
const (
	TypeBool     ConfigType = "boolean"
	TypeString   ConfigType = "string"
	TypeInt      ConfigType = "int"
	TypeShort    ConfigType = "short"
	TypeLong     ConfigType = "long"
	TypeDouble   ConfigType = "double"
	TypeList     ConfigType = "list"
	TypePassword ConfigType = "password"
)

// ConfigKey is one row of the table: a key of server.properties, what it means
// and what it may hold.
type ConfigKey struct {
	Name    string
	Type    ConfigType
	Default string // text form
	Range   string // what is allowed, for people; "" for anything of the type
	Unit    string // ms, bytes, count…; "" where the type says all
	Text    string

	Unsupported bool // Kafka knows it, we accept it and do not act on it

	set func(c *Config, value string) error // nil only where Unsupported
}

// LookupConfigKey finds a key's row; nil if there is none.
func LookupConfigKey(key string) *ConfigKey {
	if i, ok := configIndex[key]; ok {
		return &configTable[i]
	}
	return nil
}

// ConfigKeys returns every row, in the table's order. Not to be changed.
func ConfigKeys() []ConfigKey { return configTable }

var configIndex = func() map[string]int {
	index := make(map[string]int, len(configTable))
	for i := range configTable {
		if _, twice := index[configTable[i].Name]; twice {
			panic("config_table: " + configTable[i].Name + " is there twice")
		}
		index[configTable[i].Name] = i
	}
	return index
}()

const (
	maxInt32 = math.MaxInt32
	maxInt64 = math.MaxInt64
)

type integer interface {
	~int | ~int16 | ~int32 | ~int64
}

// number is a row for a whole number between low and high. A nil field checks
// the value and leaves it to Config.Get (topic defaults are read that way).
func number[T integer](name string, t ConfigType, def string, low, high int64, unit, text string, field func(*Config) *T) ConfigKey {
	rule := rangeText(low, high)
	return ConfigKey{Name: name, Type: t, Default: def, Range: rule, Unit: unit, Text: text, set: func(c *Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < low || n > high {
			return fmt.Errorf("must be a whole number %s", rule)
		}
		if field != nil {
			*field(c) = T(n)
		}
		return nil
	}}
}

// span is a row for a duration; the text is in unit (time.Millisecond…).
// Negative numbers, where the range allows them, stay negative: "never".
func span(name string, t ConfigType, def string, low, high int64, unit time.Duration, text string, field func(*Config) *time.Duration) ConfigKey {
	row := number[int64](name, t, def, low, high, unitName(unit), text, nil)
	check := row.set
	row.set = func(c *Config, v string) error {
		if err := check(c, v); err != nil {
			return err
		}
		if field == nil {
			return nil
		}
		n, _ := strconv.ParseInt(v, 10, 64)
		*field(c) = durationOf(n, unit)
		return nil
	}
	return row
}

// durationOf multiplies without overflow; MAX64 milliseconds mean "for ever".
func durationOf(n int64, unit time.Duration) time.Duration {
	if n > math.MaxInt64/int64(unit) {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}

func unitName(unit time.Duration) string {
	switch unit {
	case time.Hour:
		return "hours"
	case time.Minute:
		return "minutes"
	case time.Second:
		return "s"
	}
	return "ms"
}

func fraction(name, def string, low, high float64, text string) ConfigKey {
	rule := fmt.Sprintf("from %g to %g", low, high)
	return ConfigKey{Name: name, Type: TypeDouble, Default: def, Range: rule, Text: text, set: func(_ *Config, v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f >= low && f <= high) {
			return fmt.Errorf("must be a number %s", rule)
		}
		return nil
	}}
}

// amount is a row for a number with a fraction, from low up.
func amount(name, def string, low float64, unit, text string, field func(*Config) *float64) ConfigKey {
	rule := fmt.Sprintf("from %g", low)
	return ConfigKey{Name: name, Type: TypeDouble, Default: def, Range: rule, Unit: unit, Text: text, set: func(c *Config, v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f >= low) {
			return fmt.Errorf("must be a number %s", rule)
		}
		*field(c) = f
		return nil
	}}
}

func boolean(name, def, text string, field func(*Config) *bool) ConfigKey {
	return ConfigKey{Name: name, Type: TypeBool, Default: def, Range: "true or false", Text: text, set: func(c *Config, v string) error {
		switch strings.ToLower(v) {
		case "true", "false":
			if field != nil {
				*field(c) = strings.EqualFold(v, "true")
			}
			return nil
		}
		return fmt.Errorf("must be true or false")
	}}
}

// choice is a row that allows a few words.
func choice(name, def, text string, field func(*Config) *string, allowed ...string) ConfigKey {
	rule := "one of " + strings.Join(allowed, ", ")
	return ConfigKey{Name: name, Type: TypeString, Default: def, Range: rule, Text: text, set: func(c *Config, v string) error {
		for _, a := range allowed {
			if v == a {
				if field != nil {
					*field(c) = v
				}
				return nil
			}
		}
		return fmt.Errorf("must be %s", rule)
	}}
}

// words is a row for a comma separated list drawn from a few words.
func words(name, def, text string, allowed ...string) ConfigKey {
	rule := "a list of " + strings.Join(allowed, ", ")
	return ConfigKey{Name: name, Type: TypeList, Default: def, Range: rule, Text: text, set: func(_ *Config, v string) error {
	next:
		for _, w := range splitList(v) {
			for _, a := range allowed {
				if w == a {
					continue next
				}
			}
			return fmt.Errorf("must be %s", rule)
		}
		return nil
	}}
}

// parsed is a row with a reader of its own.
func parsed(name string, t ConfigType, def, rule, text string, set func(*Config, string) error) ConfigKey {
	return ConfigKey{Name: name, Type: t, Default: def, Range: rule, Text: text, set: set}
}

func text(name, def, what string, field func(*Config) *string) ConfigKey {
	return parsed(name, TypeString, def, "", what, func(c *Config, v string) error {
		*field(c) = v
		return nil
	})
}

// inert is a row for a key that Kafka acts on and we, so far, do not.
func inert(name string, t ConfigType, def, why string) ConfigKey {
	return ConfigKey{Name: name, Type: t, Default: def, Text: why, Unsupported: true}
}

func rangeText(low, high int64) string {
	switch {
	case high == maxInt64 && low == math.MinInt64:
		return "of 64 bits"
	case high >= maxInt64:
		return fmt.Sprintf("of at least %d", low)
	}
	return fmt.Sprintf("from %d to %d", low, high)
}

func splitList(v string) []string {
	var out []string
	for _, w := range strings.Split(v, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}
