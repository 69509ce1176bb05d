package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/tools/internal/cli"
)

var version string

// SetVersion is for a main whose linker was told what it builds; "" changes nothing.
// To be called before anything else here.
func SetVersion(v string) { version = v }

// Version is what this build calls itself: SetVersion's word, else the module's
// version, else the commit it was built from, else "devel".
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

// Connect makes a client and makes sure that a broker answers, so that a wrong
// address is an error at once and not a retry that never ends.
func (s *Settings) Connect(ctx context.Context, o []kgo.Opt) (*kgo.Client, error) {
	cl, err := kgo.NewClient(o...)
	if err != nil {
		return nil, &cli.Error{Status: cli.ExitUsage, Err: err}
	}
	if err := s.ping(ctx, cl); err != nil {
		cl.Close()
		return nil, err
	}
	return cl, nil
}

func (s *Settings) ping(ctx context.Context, cl *kgo.Client) error {
	limited, cancel := context.WithTimeout(ctx, s.ConnectTimeout)
	defer cancel()
	err := cl.Ping(limited)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case errors.Is(err, context.DeadlineExceeded):
		return cli.Unreachablef("no broker at %s answered within %v", strings.Join(s.Bootstrap, ","), s.ConnectTimeout)
	}
	return cli.Unreachablef("no broker at %s: %v", strings.Join(s.Bootstrap, ","), err)
}

// Topic is a topic as a command needs to know it before it begins.
type Topic struct {
	Name       string
	Partitions []int32 // sorted
}

// RequireTopic makes sure that a topic exists; the error for one that does not
// says how to make it.
func RequireTopic(ctx context.Context, cl *kgo.Client, name string) (Topic, error) {
	topics, err := kadm.NewClient(cl).ListTopicsWithInternal(ctx, name)
	if err != nil {
		return Topic{}, err
	}
	d, ok := topics[name]
	switch {
	case !ok || errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return Topic{}, cli.NotFoundf("topic %q does not exist; make it with: millrace topic create %s", name, name)
	case d.Err != nil:
		return Topic{}, fmt.Errorf("topic %q: %w", name, d.Err)
	}
	return Topic{Name: name, Partitions: d.Partitions.Numbers()}, nil
}

// RequirePartition makes sure that the topic has this partition.
func (t Topic) RequirePartition(p int32) error {
	for _, have := range t.Partitions {
		if have == p {
			return nil
		}
	}
	return cli.NotFoundf("topic %q has no partition %d; it has %d, numbered from 0", t.Name, p, len(t.Partitions))
}
