package main

import _ "embed"

// causes are the hand-written reasons that docs/performance.md shows beside what was lost.
//
//go:embed causes.md
var causes string
