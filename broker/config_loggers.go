package broker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/wire"
)

// The loggers whose levels can be changed while the broker runs. All write where
// Config.Logger does.
const (
	logRoot = iota
	logBroker
	logCoord
	logEngine
	logGroup
	loggers
)

var loggerNames = [loggers]string{logRoot: "root", logBroker: "millrace.broker", logCoord: "millrace.coord", logEngine: "millrace.engine", logGroup: "millrace.coord.group"}

// logLevelNames are Kafka's names of levels, in slog's numbers.
var logLevelNames = []struct {
	name  string
	level slog.Level
}{
	{"TRACE", slog.LevelDebug - 4}, {"DEBUG", slog.LevelDebug}, {"INFO", slog.LevelInfo},
	{"WARN", slog.LevelWarn}, {"ERROR", slog.LevelError}, {"FATAL", slog.LevelError + 4},
}

// logLevels are the levels of all loggers of a broker. They are not kept over a
// restart, as in Kafka. Unset ones are the root's.
type logLevels struct {
	sink slog.Handler
	own  [loggers]atomic.Pointer[slog.Level]
}

// newLogLevels begins with the level that the logger underneath has.
func newLogLevels(base *slog.Logger) *logLevels {
	l := &logLevels{sink: base.Handler()}
	begins := logLevelNames[len(logLevelNames)-1].level
	for _, known := range logLevelNames {
		if l.sink.Enabled(context.Background(), known.level) {
			begins = known.level
			break
		}
	}
	l.own[logRoot].Store(&begins)
	return l
}

func (l *logLevels) logger(which int) *slog.Logger { return slog.New(levelHandler{l.sink, l, which}) }

func (l *logLevels) level(which int) slog.Level {
	if own := l.own[which].Load(); own != nil {
		return *own
	}
	return *l.own[logRoot].Load()
}

// levelHandler lets through what its logger's level allows.
type levelHandler struct {
	slog.Handler
	levels *logLevels
	which  int
}

// Enabled is slog.Handler's.
func (h levelHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.levels.level(h.which)
}

// WithAttrs is slog.Handler's.
func (h levelHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelHandler{h.Handler.WithAttrs(attrs), h.levels, h.which}
}

// WithGroup is slog.Handler's.
func (h levelHandler) WithGroup(name string) slog.Handler {
	return levelHandler{h.Handler.WithGroup(name), h.levels, h.which}
}

// checkLoggerID refuses the name of a broker that is not this one.
func (b *Broker) checkLoggerID(name string) (code int16, wrong string) {
	if name == "" {
		return wire.ErrInvalidRequest, "the name of a broker's loggers is the broker's id; it must not be empty"
	}
	return b.checkOwnID(name)
}

// describeLoggers tells the level of each logger.
func (b *Broker) describeLoggers(asked *kmsg.DescribeConfigsRequestResource) (out []kmsg.DescribeConfigsResponseResourceConfig, code int16, wrong string) {
	if code, wrong := b.checkLoggerID(asked.ResourceName); code != wire.ErrNone {
		return nil, code, wrong
	}
	d := describer{keys: asked.ConfigNames}
	for which, name := range loggerNames {
		if !d.wants(name) {
			continue
		}
		c := kmsg.NewDescribeConfigsResponseResourceConfig()
		c.Name, c.Source, c.ConfigType = name, kmsg.ConfigSource(sourceLogger), kmsg.ConfigTypeString
		c.Value = kmsg.StringPtr(levelName(b.levels.level(which)))
		out = append(out, c)
	}
	return out, wire.ErrNone, ""
}

// levelName is the name of the highest level that lets this one through.
func levelName(level slog.Level) string {
	name := logLevelNames[0].name
	for _, known := range logLevelNames {
		if known.level <= level {
			name = known.name
		}
	}
	return name
}

// alterLoggers sets levels, or takes them back to the root's: all that are asked
// for, or none.
func (b *Broker) alterLoggers(e *configEdit, validateOnly bool) {
	if code, wrong := b.checkLoggerID(e.name); code != wire.ErrNone {
		e.refuse(code, "%s", wrong)
		return
	}
	if e.replace {
		e.refuse(wire.ErrInvalidRequest, "levels of loggers are changed by IncrementalAlterConfigs only")
		return
	}
	next := map[int]*slog.Level{}
	for i := range e.ops {
		op := &e.ops[i]
		which := slices.Index(loggerNames[:], op.key)
		switch {
		case op.op != kmsg.IncrementalAlterConfigOpSet && op.op != kmsg.IncrementalAlterConfigOpDelete:
			e.refuse(wire.ErrInvalidRequest, "%s: logger %s: a level can be set and deleted, not appended to or subtracted from", e.title(), op.key)
		case which < 0:
			e.refuse(wire.ErrInvalidConfig, "%s: logger %s does not exist; there are %s", e.title(), op.key, strings.Join(loggerNames[:], ", "))
		case op.op == kmsg.IncrementalAlterConfigOpDelete && which == logRoot:
			e.refuse(wire.ErrInvalidRequest, "%s: removing the log level of the root logger is not allowed", e.title())
		case op.op == kmsg.IncrementalAlterConfigOpDelete:
			next[which] = nil
		default:
			var err error
			if next[which], err = parseLevel(*op.value); err != nil {
				e.refuse(wire.ErrInvalidConfig, "%s: cannot set the log level of %s to %s: %v", e.title(), op.key, *op.value, err)
			}
		}
		if e.code != wire.ErrNone {
			return
		}
	}
	if validateOnly {
		return
	}
	for which, level := range next {
		b.levels.own[which].Store(level)
	}
}

func parseLevel(name string) (*slog.Level, error) {
	var names []string
	for _, known := range logLevelNames {
		if known.name == name {
			return &known.level, nil
		}
		names = append(names, known.name)
	}
	return nil, fmt.Errorf("valid log levels are %s", strings.Join(names, ", "))
}
