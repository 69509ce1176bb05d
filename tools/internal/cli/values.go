package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Size is a flag value in bytes. It reads plain numbers, as Kafka's tools take
// them, and what people write: 64KiB, 1MB, 1.5 GiB.
type Size int64

// ParseSize reads a size in bytes; negative sizes are refused.
func ParseSize(s string) (Size, error) {
	n, err := humanize.ParseBytes(strings.TrimSpace(s))
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size; write bytes (65536) or a number with a unit (64KiB, 1MB)", s)
	}
	return Size(n), nil
}

// Set implements pflag.Value.
func (v *Size) Set(s string) (err error) {
	n, err := ParseSize(s)
	if err == nil {
		*v = n
	}
	return err
}

// String implements pflag.Value.
func (v *Size) String() string { return strconv.FormatInt(int64(*v), 10) }

// Type implements pflag.Value; it is what --help shows.
func (v *Size) Type() string { return "size" }

// Millis is a flag value of time. A bare number is milliseconds, as in Kafka's
// tools and properties; with a unit it is read as Go writes durations: 500ms, 30s, 2m.
type Millis time.Duration

// ParseMillis reads a time; negative ones are refused.
func ParseMillis(s string) (Millis, error) {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 && n <= math.MaxInt64/int64(time.Millisecond) {
		return Millis(n) * Millis(time.Millisecond), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a time; write milliseconds (5000) or a number with a unit (500ms, 30s, 2m)", s)
	}
	return Millis(d), nil
}

// Duration is the value as the standard library counts it.
func (v Millis) Duration() time.Duration { return time.Duration(v) }

// Set implements pflag.Value.
func (v *Millis) Set(s string) error {
	d, err := ParseMillis(s)
	if err == nil {
		*v = d
	}
	return err
}

// String implements pflag.Value.
func (v *Millis) String() string {
	if *v == 0 {
		return "0" // pflag shows no default then
	}
	return time.Duration(*v).String()
}

// Type implements pflag.Value; it is what --help shows.
func (v *Millis) Type() string { return "time" }

// Unescape turns what a shell passes on literally (\n, \t, \0, \x1f, \\) into
// the bytes that are meant. Used for delimiters and separators.
func Unescape(s string) (string, error) {
	quoted := strings.ReplaceAll(s, `\0`, `\x00`)
	quoted = `"` + strings.ReplaceAll(quoted, `"`, `\"`) + `"`
	out, err := strconv.Unquote(quoted)
	if err != nil && !strings.Contains(s, `\`) {
		return s, nil // raw control characters, which Unquote refuses, mean themselves
	}
	if err != nil {
		return "", fmt.Errorf(`%q has an escape that is none of \n \t \r \0 \xNN \\`, s)
	}
	return out, nil
}
