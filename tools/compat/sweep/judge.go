package sweep

import (
	"fmt"
	"strings"

	"millrace/wire"
)

// judge collects what must be told.
type judge struct {
	found     []string
	codesOnly int
	alone     int // answers to what Kafka does not serve: decoded, not compared
	intended  int
	matched   []bool // entries of the table that occurred
	apis      map[int16]bool
	versions  map[[2]int16]bool
}

func newJudge() *judge {
	return &judge{matched: make([]bool, len(intended)), apis: map[int16]bool{}, versions: map[[2]int16]bool{}}
}

func (j *judge) tell(format string, args ...any) {
	j.found = append(j.found, fmt.Sprintf(format, args...))
}

// coverage demands an answer in every version that Millrace advertises, and that what Kafka advertises and Millrace does not is in
// the table.
func (j *judge) coverage(ours, kafka map[int16]span, told []outcome) {
	for _, o := range told {
		if o.resp != nil {
			j.apis[o.key] = true
			j.versions[[2]int16{o.key, o.version}] = true
		}
	}
	for key, r := range ours {
		for v := r.min; v <= r.max; v++ {
			if !j.versions[[2]int16{key, v}] {
				j.tell("%s v%d is advertised and no story got an answer in it", apiName(key), v)
			}
		}
	}
	for key, r := range kafka {
		mine, ok := ours[key]
		_, listed := NotBuilt[key]
		switch {
		case !ok && !listed:
			j.tell("%s: Kafka advertises it, Millrace does not, and it is not in the table of what is not built", apiName(key))
		case ok && listed:
			j.tell("%s: it is in the table of what is not built, and Millrace advertises it", apiName(key))
		case ok && mine.min > r.min:
			j.tell("%s: Millrace's oldest version is %d, Kafka's %d", apiName(key), mine.min, r.min)
		case ok && mine.max != r.max:
			j.tell("%s: Millrace's newest version is %d, Kafka's %d", apiName(key), mine.max, r.max)
		}
	}
	for key := range NotBuilt {
		if _, ok := kafka[key]; !ok {
			j.tell("%s: it is in the table of what is not built, and Kafka does not advertise it either", apiName(key))
		}
	}
}

// pair compares one step's two outcomes.
func (j *judge) pair(ours, kafka outcome, sides [2]*side) {
	where := fmt.Sprintf("%s v%d, %s: %s", apiName(ours.key), ours.version, ours.story, ours.step)
	if strings.HasPrefix(ours.what, "malformed") {
		j.tell("%s: %s", where, ours.what)
		return
	}
	if kafka.what == notServed {
		j.alone++
		return
	}
	codesOnly := ours.version != kafka.version
	if codesOnly {
		j.codesOnly++
		where += fmt.Sprintf(" (Kafka: v%d)", kafka.version)
	}
	if ours.what != kafka.what {
		d := difference{"outcome", ours.what + brief(ours), kafka.what + brief(kafka)}
		if !j.excused(ours, d) {
			j.tell("%s: Millrace %s, Kafka %s", where, d.ours, d.kafka)
		}
		return
	}
	if ours.resp == nil {
		return
	}
	for _, d := range differences(flatten(ours.resp, sides[0].topics()), flatten(kafka.resp, sides[1].topics()), codesOnly) {
		if !j.excused(ours, d) {
			j.tell("%s: %s: Millrace %s, Kafka %s", where, d.path, short(d.ours), short(d.kafka))
		}
	}
}

func brief(o outcome) string {
	if o.resp == nil {
		return ""
	}
	return fmt.Sprintf(" (codes %d)", codes(o.resp))
}

// excused looks for the difference in the table.
func (j *judge) excused(o outcome, d difference) bool {
	for i, in := range intended {
		if in.covers(o, d) {
			j.matched[i] = true
			j.intended++
			return true
		}
	}
	return false
}

// stale tells of entries that no difference needed.
func (j *judge) stale() {
	for i, in := range intended {
		if !j.matched[i] {
			j.tell("the intended difference no longer occurs: %s, %s: %s", apiName(in.API), in.Step, in.Path)
		}
	}
}

func (s *side) topics() map[[16]byte]string {
	names := map[[16]byte]string{}
	for name, id := range s.ids {
		names[id] = name
	}
	return names
}

func apiName(key int16) string {
	if a, ok := wire.Lookup(key); ok {
		return a.Name
	}
	return fmt.Sprintf("API %d (%s)", key, kafkaName(key))
}

func short(s string) string {
	if len(s) > 120 {
		return s[:120] + "…"
	}
	return s
}
