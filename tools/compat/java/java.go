// Package java holds the checks with Apache Kafka's own tools and Java clients, from the newest line back to 0.8.2.
package java

import (
	"path/filepath"
	"slices"
	"strings"

	"millrace/tools/compat/harness"
)

// Checks are all of the package's.
func Checks() []harness.Check {
	return slices.Concat(toolChecks(), zookeeperChecks(), quickStartChecks(), clientChecks(), oldChecks())
}

// compiled is harness.Classes for the parts of src (joined by +).
func compiled(e *harness.Env, l harness.Libs, parts string) (libs, classes string, err error) {
	var patterns []string
	for part := range strings.SplitSeq(parts, "+") {
		patterns = append(patterns, filepath.Join("java", "src", part, "*.java"))
	}
	return harness.Classes(e, l, patterns...)
}
