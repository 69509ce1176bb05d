// Package tidy holds the rules of the tree that a compiler does not check: who may import whom, what documents link to,
// which invariants have their checks and tests, and what may not be named in the repository. They run as tests.
package tidy
