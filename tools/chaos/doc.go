// Command chaos attacks the engine and the broker at random for as long as it is told, and says what it did.
//
// A run is made of episodes. An episode is one part and one seed, which decides everything that chance decides in it:
//
//	store     a Store on a disk that fails, runs full and loses power (faultfs), against a model in memory
//	disk      the same on the real disk, without faults
//	kill      a `millrace serve` process with clients, killed with SIGKILL again and again; at the end a byte of a closed segment is
//	          changed, which the scrub has to find
//	together  appends, reads, look-ups, retention, compaction, moves and truncation at the same time; race-built
//
// The parent (run.go) starts children (child.go), each of which runs episodes of one part for some seconds, so that a panic, a hang or
// a report of the race detector costs one child and is told with its seed. `chaos -part store -seed N -once` repeats one episode: the
// same operations with the same arguments; what goroutines do in between is the scheduler's.
//
// Reading order: main.go, run.go, child.go; shape.go (what is drawn at random: here a new option of the Store joins), model.go,
// life.go, deeds.go, verify.go; together.go; kill.go, kill_clients.go, kill_check.go, kill_damage.go.
package main
