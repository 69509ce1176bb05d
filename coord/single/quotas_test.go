package single

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"millrace/coord"
	"millrace/engine/vfs"
	"millrace/wire"
)

func user(name string) coord.QuotaEntity {
	return coord.QuotaEntity{User: coord.QuotaPart{Given: true, Name: name}}
}

// rate is a change that gives an entity one quota, on top of what it has; 0 takes it.
func rate(e coord.QuotaEntity, key string, value float64) coord.QuotaChange {
	return coord.QuotaChange{Entity: e, Edit: func(before map[string]float64) (map[string]float64, int16, string) {
		after := maps.Clone(before)
		if after == nil {
			after = map[string]float64{}
		}
		if after[key] = value; value == 0 {
			delete(after, key)
		}
		return after, 0, ""
	}}
}

func shownQuotas(img *coord.Image) string {
	var out []string
	for _, e := range slices.SortedFunc(maps.Keys(img.Quotas()), coord.CompareQuotaEntities) {
		out = append(out, fmt.Sprint(e, img.Quotas()[e]))
	}
	return strings.Join(out, "; ")
}

// Claim: quotas that were answered are there after a restart, bit by bit; the images
// before are as they were (C4); a refused edit is nobody else's; the last quota taken
// away leaves nothing behind.
// Method: change, compare, open again.
func TestQuotasSurviveARestart(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	create(s, "a")
	both := user("u")
	both.Client = coord.QuotaPart{Given: true}
	before := s.Image()
	results := s.AlterQuotas(t.Context(), []coord.QuotaChange{
		rate(user("u"), "k", 0.1), rate(user("u"), "l", 2), rate(user(""), "k", math.MaxFloat64), rate(both, "k", 3),
		{Entity: user("x"), Edit: func(map[string]float64) (map[string]float64, int16, string) { return nil, wire.ErrInvalidConfig, "no" }},
	}, false)
	for i, r := range results {
		if refused := i == 4; (r.Code != 0) != refused || refused && r.Message != "no" {
			t.Errorf("%d: %+v", i, r)
		}
	}
	const want = "{{true } {false } {false }} map[k:1.7976931348623157e+308]; {{true u} {false } {false }} map[k:0.1 l:2]; {{true u} {true } {false }} map[k:3]"
	if got := shownQuotas(s.Image()); got != want || len(before.Quotas()) != 0 {
		t.Errorf("%s\nwant %s, and the image before has %v", got, want, before.Quotas())
	}
	if s.Image().Topic("a") != before.Topic("a") {
		t.Error("a topic changed with the quotas")
	}
	s = open(t, disk)
	if got := shownQuotas(s.Image()); got != want {
		t.Errorf("after a restart: %s\nwant %s", got, want)
	}
	s.AlterQuotas(t.Context(), []coord.QuotaChange{rate(user("u"), "k", 0), rate(user("u"), "l", 0), rate(user(""), "k", 0), rate(both, "k", 0)}, false)
	if got := open(t, disk).Image().Quotas(); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

// Claim: a dry run, and an edit that changes nothing, write and publish nothing.
// Method: the trace of the disk.
func TestQuotasThatDoNotChangeAreNotWritten(t *testing.T) {
	disk := newDisk(t)
	s := open(t, disk)
	s.AlterQuotas(t.Context(), []coord.QuotaChange{rate(user("u"), "k", 1)}, false)
	before, ops := s.Image(), disk.Operations()
	s.AlterQuotas(t.Context(), []coord.QuotaChange{rate(user("u"), "k", 1), rate(user("none"), "k", 0)}, false)
	s.AlterQuotas(t.Context(), []coord.QuotaChange{rate(user("u"), "k", 2)}, true)
	if s.Image() != before || disk.Operations() != ops {
		t.Error("something was written or published")
	}
}

// Claim: no more entities than the bound have quotas, and the answer says so.
// Method: fill it up in one request.
func TestQuotaEntitiesAreBounded(t *testing.T) {
	s := open(t, newDisk(t))
	changes := make([]coord.QuotaChange, coord.MaxQuotaEntities+1)
	for i := range changes {
		changes[i] = rate(user(fmt.Sprint(i)), "k", 1)
	}
	results := s.AlterQuotas(t.Context(), changes, false)
	last := results[len(results)-1]
	if results[0].Code != 0 || last.Code != wire.ErrPolicyViolation || !strings.Contains(last.Message, "10000") || len(s.Image().Quotas()) != coord.MaxQuotaEntities {
		t.Errorf("%+v, %+v, %d entities", results[0], last, len(s.Image().Quotas()))
	}
}

// quotaLife changes quotas and stops at the first error, as settingsLife.
func quotaLife(fsys vfs.FS) (answered, attempted string) {
	s, err := Open(Options{FS: fsys, Path: path, BrokerID: 1, Logger: quiet})
	if err != nil {
		return
	}
	for i := range 4 {
		steps := []coord.QuotaChange{rate(user("u"), "k", float64(i+1)), rate(user(""), "l", float64(3-i))}
		answered = shownQuotas(s.Image())
		next := coord.NewImage("", 1, nil, nil).WithQuotas(map[coord.QuotaEntity]map[string]float64{user("u"): {"k": float64(i + 1)}, user(""): {"l": float64(3 - i)}})
		if i == 3 {
			delete(next.Quotas(), user(""))
		}
		attempted = shownQuotas(next)
		if s.AlterQuotas(context.Background(), steps, false)[1].Code != 0 {
			return
		}
		answered = attempted
		if got := shownQuotas(s.Image()); got != answered {
			panic(got) // the script of this test is wrong
		}
	}
	return
}

// Claim: a crash or a failed operation leaves quotas as before or as after the change
// that was cut off, never in between.
// Method: the same short life, failing operation 0, 1, 2 …, then cutting power there.
func TestACrashLeavesQuotasBeforeOrAfter(t *testing.T) {
	crashAnywhere(t, quotaLife, shownQuotas)
}

// Claim: a file whose quotas are for nobody, twice, out of order or no rates stops the
// start.
// Method: write such states.
func TestWrongQuotasStopTheStart(t *testing.T) {
	a, b, one := "a", "b", map[string]float64{"k": 1}
	for _, quotas := range [][]quotaState{
		{{Values: one}},
		{{User: &a}},
		{{User: &a, Values: one}, {User: &a, Values: one}},
		{{User: &b, Values: one}, {User: &a, Values: one}},
		{{User: &a, Values: map[string]float64{"k": 0}}},
		{{User: &a, Values: map[string]float64{"k": -1}}},
	} {
		disk := newDisk(t)
		s := open(t, disk)
		create(s, "a")
		bad := s.mu.state.clone()
		bad.Quotas = quotas
		if _, err := save(disk, path, bad); err != nil {
			t.Fatal(err)
		}
		var damaged *FileError
		if _, err := Open(Options{FS: disk, Path: path, BrokerID: 1, Logger: quiet}); !errors.As(err, &damaged) {
			t.Errorf("%+v: %v", quotas, err)
		}
	}
}
