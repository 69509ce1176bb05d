package broker

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/magiconair/properties"
)

// Warning is something in the configuration that does not stop the start but
// that an operator should hear of.
type Warning struct {
	Key     string
	Message string
}

// String is the line for the log.
func (w Warning) String() string { return w.Key + ": " + w.Message }

// ConfigError stops the start. It names the key, the value and the rule broken.
type ConfigError struct {
	Key   string
	Value string
	Rule  string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("configuration: %s = %q: %s", e.Key, e.Value, e.Rule)
}

// LoadConfig reads file (in the format of Java properties; "" for none), then
// the overrides, each "key=value", which win. Unknown keys and keys that Kafka
// knows and Millrace does not act on come back as warnings; the first bad value
// comes back as a *ConfigError.
func LoadConfig(file string, overrides []string) (Config, []Warning, error) {
	given := map[string]string{}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return Config{}, nil, fmt.Errorf("configuration: %w", err)
		}
		// Kafka does not expand ${…}; a password may hold one.
		loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
		p, err := loader.LoadBytes(text)
		if err != nil {
			return Config{}, nil, fmt.Errorf("configuration: %s: %w", file, err)
		}
		for _, key := range p.Keys() {
			given[key], _ = p.Get(key)
		}
	}
	for _, o := range overrides {
		key, value, ok := strings.Cut(o, "=")
		if !ok {
			return Config{}, nil, &ConfigError{Key: o, Rule: "an override must read key=value"}
		}
		given[strings.TrimSpace(key)] = value
	}
	return configFrom(given)
}

func configFrom(given map[string]string) (Config, []Warning, error) {
	c := DefaultConfig()
	var warnings []Warning
	keys := make([]string, 0, len(given))
	for key := range given {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		value := strings.TrimSpace(given[key])
		row := LookupConfigKey(key)
		switch {
		case row == nil:
			warnings = append(warnings, Warning{key, "unknown key, ignored" + suggestKey(key)})
			continue
		case row.Unsupported:
			warnings = append(warnings, Warning{key, "known to Kafka, not acted on by Millrace: " + row.Text})
		}
		if err := c.Set(key, value); err != nil {
			return Config{}, warnings, err
		}
	}
	c.applySynonyms()
	more, err := c.finish()
	c.checked = true
	return c, append(warnings, more...), err
}

// applySynonyms lets the key that Kafka ranks first win where several name one
// setting, whatever the order in the file: ms over minutes over hours, log.dirs
// over log.dir, node.id over broker.id.
func (c *Config) applySynonyms() {
	for _, chain := range configSynonyms {
		for _, key := range chain { // first given wins
			if v, ok := c.values[key]; ok {
				// It was valid when it was set the first time.
				_ = LookupConfigKey(key).set(c, v)
				break
			}
		}
	}
}

// suggestKey names the known key that is nearest to a misspelt one.
func suggestKey(key string) string {
	best, distance := "", 4
	for i := range configTable {
		name := configTable[i].Name
		if d := len(name) - len(key); d > 3 || d < -3 {
			continue
		}
		if d := editDistance(key, name); d < distance {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
