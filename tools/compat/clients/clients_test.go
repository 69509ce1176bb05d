package clients

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Claim: a heading names the version that the module file or the package file asks for.
func TestTitlesNameTheVersionsThatAreBuilt(t *testing.T) {
	asked := map[string]*regexp.Regexp{
		"confluent-kafka-go": regexp.MustCompile(`confluent-kafka-go/v2 v(\S+)`), "sarama": regexp.MustCompile(`IBM/sarama v(\S+)`), "segmentio": regexp.MustCompile(`segmentio/kafka-go v(\S+)`),
		"kafkajs": regexp.MustCompile(`"kafkajs": "(\S+)"`), "@platformatic": regexp.MustCompile(`"@platformatic/kafka": "(\S+)"`),
	}
	var files []byte
	for _, name := range []string{"go/go.mod", "node/package.json"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b...)
	}
	found := 0
	for _, c := range list() {
		for name, re := range asked {
			if !strings.HasPrefix(c.title, name) {
				continue
			}
			found++
			if m := re.FindSubmatch(files); m == nil || !strings.Contains(c.title, " "+string(m[1])) {
				t.Errorf("%q: the version asked for is %q", c.title, m)
			}
		}
	}
	if found < len(asked) {
		t.Errorf("only %d headings were found", found)
	}
}

// Claim: the comparison sees a change of each part of a record, and a record too few or too many.
func TestComparisonSeesEachDifference(t *testing.T) {
	sent := func() []line {
		var out []line
		for _, r := range shapes() {
			out = append(out, shown(r))
		}
		return out
	}
	if err := firstDifference(sent(), sent()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(l []line) []line{
		"a key":             func(l []line) []line { l[0].Key = show([]byte("other")); return l },
		"null became empty": func(l []line) []line { l[0].Value = show([]byte{}); return l },
		"empty became null": func(l []line) []line { l[1].Value = nil; return l },
		"a byte of a long value": func(l []line) []line {
			b := slices.Clone(shapes()[9].Value)
			b[70_000]++
			l[9].Value = show(b)
			return l
		},
		"a header's value":         func(l []line) []line { l[4].Headers[0][1] = show([]byte("x")); return l },
		"a header's null":          func(l []line) []line { l[5].Headers[0][1] = show([]byte{}); return l },
		"headers in another order": func(l []line) []line { slices.Reverse(l[6].Headers); return l },
		"a time":                   func(l []line) []line { l[100].Time++; return l },
		"one too few":              func(l []line) []line { return l[:len(l)-1] },
		"one too many":             func(l []line) []line { return append(l, l[0]) },
		"order":                    func(l []line) []line { l[50], l[51] = l[51], l[50]; return l },
	} {
		if firstDifference(sent(), change(sent())) == nil {
			t.Errorf("%s: no difference was seen", name)
		}
	}
}

// Claim: every page of docs/clients is one that a check runs, and has what the check needs.
func TestEveryPageIsRun(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs", "clients")
	files, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil || len(files) != len(pages)+1 {
		t.Fatalf("%d pages are there beside the README, %d are run: %v", len(files)-1, len(pages), err)
	}
	for _, p := range pages {
		got, err := readPage(filepath.Join(docs, p.page))
		if err != nil {
			t.Error(err)
			continue
		}
		if all := got.script; !strings.Contains(all+strings.Join(slices.Collect(maps.Values(got.files)), ""), printedAddress) {
			t.Errorf("%s does not name %s", p.page, printedAddress)
		}
	}
}
