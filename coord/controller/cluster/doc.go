// Package cluster is what the controller decides, without any input or output: pure functions over the states of brokers, partitions and replicas. What is
// decided is written and told to brokers by package controller, and only then taken over into the state. All of it holds for any number of brokers.
//
// Reading order: state.go (what is known), partition.go and replica.go (the two state machines, as tables), election.go (who leads), isr.go (what a
// leader may change), reassign.go (moving replicas), deletion.go (the end of a topic).
package cluster
