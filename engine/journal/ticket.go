package journal

// Ticket names a round of one journal: the round that makes what was added durable. The zero Ticket is already durable.
type Ticket struct{ round uint64 }
