package zookeeper

import (
	"testing"
)

// Claim: judge finds the failed tests of each class, also those with parameters, and leaves out only what a pattern names.
// Method: a tree as the launcher prints it.
func TestJudge(t *testing.T) {
	out := `.
+-- JUnit Jupiter [OK]
| +-- ClientTest [OK]
| | +-- testACLs() [OK]
| | '-- testPathValidation() [X] expected: <true> but was: <false>
| '-- RemoveWatchesTest [OK]
|   +-- testRemove(boolean) [OK]
|   | +-- [1] true [X] expect watcher for path /node1
|   | '-- [2] false [X] lost
|   '-- testSkipped() [S]
'-- JUnit Vintage [OK]
[         3 tests successful      ]
`
	failed, left := judge(out, []leftOut{{`ClientTest.testPathValidation`, ""}, {`RemoveWatchesTest.*: expect watcher`, ""}})
	if len(failed) != 1 || failed[0] != "RemoveWatchesTest.testRemove: lost" {
		t.Errorf("failed: %q", failed)
	}
	if left[`ClientTest.testPathValidation`] != 1 || left[`RemoveWatchesTest.*: expect watcher`] != 1 {
		t.Errorf("left out: %v", left)
	}
	if m := successful.FindStringSubmatch(out); m == nil || m[1] != "3" {
		t.Errorf("successful: %q", m)
	}
}
