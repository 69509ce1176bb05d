package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// lineReader makes records of lines as the LineMessageReader of Kafka's console
// producer does, by the properties that it has.
type lineReader struct {
	topic        string
	parseKey     bool
	parseHeaders bool
	ignoreError  bool

	keySeparator       string
	headersDelimiter   string // between the headers and the rest
	headersSeparator   string // between headers
	headerKeySeparator string // between a header's key and its value
	nullMarker         *string

	splitHeaders *regexp.Regexp // Kafka takes headers.separator for a pattern
	line         int64
}

func newLineReader(topic string, given map[string]string) (*lineReader, error) {
	r := &lineReader{topic: topic, keySeparator: "\t", headersDelimiter: "\t", headersSeparator: ",", headerKeySeparator: ":"}
	for name, set := range map[string]func(string){
		"parse.key":             func(v string) { r.parseKey = isTrue(v) },
		"parse.headers":         func(v string) { r.parseHeaders = isTrue(v) },
		"ignore.error":          func(v string) { r.ignoreError = isTrue(v) },
		"key.separator":         func(v string) { r.keySeparator = v },
		"headers.delimiter":     func(v string) { r.headersDelimiter = v },
		"headers.separator":     func(v string) { r.headersSeparator = v },
		"headers.key.separator": func(v string) { r.headerKeySeparator = v },
		"null.marker":           func(v string) { r.nullMarker = &v },
	} {
		if value, ok := given[name]; ok {
			set(value)
		}
	}
	for _, pair := range [][4]string{
		{"headers.delimiter", r.headersDelimiter, "headers.separator", r.headersSeparator},
		{"headers.delimiter", r.headersDelimiter, "headers.key.separator", r.headerKeySeparator},
		{"headers.separator", r.headersSeparator, "headers.key.separator", r.headerKeySeparator},
	} {
		if pair[1] == pair[3] {
			return nil, fmt.Errorf("%s and %s may not be equal", pair[0], pair[2])
		}
	}
	for name, value := range map[string]string{"key.separator": r.keySeparator, "headers.separator": r.headersSeparator, "headers.delimiter": r.headersDelimiter, "headers.key.separator": r.headerKeySeparator} {
		if r.isNull(value) {
			return nil, fmt.Errorf("null.marker and %s may not be equal", name)
		}
	}
	var err error
	if r.splitHeaders, err = regexp.Compile(r.headersSeparator); err != nil {
		return nil, fmt.Errorf("headers.separator: %w", err)
	}
	return r, nil
}

// isTrue reads a boolean as Kafka's console tools do: anything else is false.
func isTrue(v string) bool { return strings.EqualFold(strings.TrimSpace(v), "true") }

func (r *lineReader) isNull(field string) bool { return r.nullMarker != nil && field == *r.nullMarker }

// bytes is the field, or nil if it is the null marker.
func (r *lineReader) bytes(field string) []byte {
	if r.isNull(field) {
		return nil
	}
	return []byte(field)
}

// record reads one line: headers, key and value, as far as they are to be parsed.
func (r *lineReader) record(line string) (*kgo.Record, error) {
	r.line++
	rest := line
	record := &kgo.Record{Topic: r.topic}
	headers, hasHeaders, err := r.cut(r.parseHeaders, &rest, r.headersDelimiter, "headers delimiter", line)
	if err != nil {
		return nil, err
	}
	key, hasKey, err := r.cut(r.parseKey, &rest, r.keySeparator, "key separator", line)
	if err != nil {
		return nil, err
	}
	if hasKey {
		record.Key = r.bytes(key)
	}
	record.Value = r.bytes(rest)
	if hasHeaders && !r.isNull(headers) {
		record.Headers, err = r.headers(headers)
	}
	return record, err
}

func (r *lineReader) cut(wanted bool, rest *string, mark, name, line string) (field string, ok bool, err error) {
	if !wanted {
		return "", false, nil
	}
	field, after, found := strings.Cut(*rest, mark)
	switch {
	case found:
		*rest = after
		return field, true, nil
	case r.ignoreError:
		return "", false, nil
	}
	return "", false, fmt.Errorf("No %s found on line number %d: '%s'", name, r.line, line) //nolint:staticcheck // Kafka's words
}

func (r *lineReader) headers(text string) ([]kgo.RecordHeader, error) {
	var out []kgo.RecordHeader
	for _, pair := range r.splitHeaders.Split(text, -1) {
		key, value, found := strings.Cut(pair, r.headerKeySeparator)
		switch {
		case !found && r.ignoreError:
			out = append(out, kgo.RecordHeader{Key: pair})
			continue
		case !found:
			return nil, fmt.Errorf("No header key separator found in pair '%s' on line number %d", pair, r.line) //nolint:staticcheck // Kafka's words
		case r.isNull(key):
			return nil, fmt.Errorf("Header keys should not be equal to the null marker '%s' as they can't be null", key) //nolint:staticcheck // Kafka's words
		}
		out = append(out, kgo.RecordHeader{Key: key, Value: r.bytes(value)})
	}
	return out, nil
}
