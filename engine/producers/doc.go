// Package producers is the producer state of one log: what is needed to know a
// batch of an idempotent producer again when it is sent twice, and to refuse one
// that leaves a gap or comes from an incarnation that was replaced.
//
// Rules and file format are Kafka's (ProducerAppendInfo, ProducerStateManager): the
// last five batches a producer in memory, of which a snapshot keeps the last.
package producers
