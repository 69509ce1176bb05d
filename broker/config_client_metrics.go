package broker

import (
	"fmt"
	"regexp"
	"strings"

	"millrace/wire"
)

// clientMetricsTable is every setting of a subscription to clients' metrics
// (KIP-714): which metrics, how often, from which clients.
var clientMetricsTable = []topicKey{
	ofClientMetrics(intervalKey()),
	ofClientMetrics(parsed("match", TypeList, "", "a list of selector=pattern", "which clients: all whose "+strings.Join(clientSelectors[:], ", ")+" match these patterns; empty means every client", func(_ *Config, v string) error {
		_, err := parseMatch(v)
		return err
	})),
	ofClientMetrics(parsed("metrics", TypeList, "", "a list of prefixes, or *", "names of the wanted metrics begin with one of these; * means every metric, empty none", func(*Config, string) error { return nil })),
}

// intervalKey is the row of interval.ms. Its range is checked by checkClientMetrics,
// since Kafka has another code for it.
func intervalKey() ConfigKey {
	row := number[int]("interval.ms", TypeInt, "300000", -maxInt32, maxInt32, "ms", "how often clients push their metrics", nil)
	row.Range = rangeText(minPushInterval, maxPushInterval)
	return row
}

func ofClientMetrics(k ConfigKey) topicKey {
	return topicKey{ConfigKey: k, source: sourceClientMetrics}
}

const (
	minPushInterval     = 100       // ms
	maxPushInterval     = 3_600_000 // ms
	defaultPushInterval = 300_000   // ms; what clients without a subscription are told
)

// clientSelectors are what a pattern can be held against.
var clientSelectors = [...]string{"client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address", "client_source_port"}

const selectors = len(clientSelectors)

// clientMatch has a pattern for each selector; nil lets everything pass.
type clientMatch [selectors]*regexp.Regexp

// parseMatch reads the text of match. A pattern must fit the whole value, as with
// Java's matches. What Go's regular expressions do not have is refused: look-ahead,
// look-behind, back references.
func parseMatch(v string) (m clientMatch, err error) {
next:
	for _, entry := range splitList(v) {
		selector, pattern, _ := strings.Cut(entry, "=")
		selector, pattern = strings.TrimSpace(selector), strings.TrimSpace(pattern)
		if pattern == "" || strings.Contains(pattern, "=") {
			return m, fmt.Errorf("illegal client matching pattern: %q; it must read selector=pattern", entry)
		}
		for i, known := range clientSelectors {
			if known != selector {
				continue
			}
			if m[i], err = regexp.Compile("^(?:" + pattern + ")$"); err != nil {
				return m, fmt.Errorf("illegal client matching pattern: %q: %w", entry, err)
			}
			continue next
		}
		return m, fmt.Errorf("illegal client matching pattern: %q; a selector is one of %s", entry, strings.Join(clientSelectors[:], ", "))
	}
	return m, nil
}

// checkClientMetrics says what is wrong with the settings of a subscription. Which
// code stands for what is as in Kafka.
func (c *Config) checkClientMetrics(overrides map[string]string) (code int16, err error) {
	if code, err := checkNamed(clientMetricsTable, overrides, wire.ErrInvalidRequest); err != nil {
		return code, err
	}
	if v, set := overrides["interval.ms"]; set {
		if n := asInt(v); n < minPushInterval || n > maxPushInterval {
			return wire.ErrInvalidRequest, fmt.Errorf("invalid value %d for interval.ms: it must be from %d to %d (1 hour)", n, minPushInterval, maxPushInterval)
		}
	}
	return wire.ErrNone, nil
}
