// Package core holds the checks that every change is held against first: a real file in and out through every client,
// stored bytes, values, kill -9, and franz-go's own tests.
package core

import (
	"slices"

	"millrace/tools/compat/harness"
)

// Checks are all of the package's.
func Checks() []harness.Check {
	return slices.Concat(roundTripChecks(), storedBytesChecks(), valueChecks(), killChecks(), franzChecks())
}
