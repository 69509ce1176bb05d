// Package ring carries out batches of file operations: through io_uring, by raw system calls without cgo ([Ring]), or by plain system calls on a
// bounded number of goroutines ([Pool]). Both do the same, result for result; a test suite holds them to it. [Open] finds out what the kernel allows.
//
// # What a batch is
//
// A slice of Op, in no order among themselves. Do returns when every one of them has ended, each with its own result: bytes, and an
// *fs.PathError that names the operation and the file. Short reads and writes are finished; what a signal or a lack of kernel memory interrupted is done
// again by the plain call. Any number of goroutines may call; a batch has a queue pair of its own for as long as it
// runs, so nothing is locked around completions. If all pairs are in use, the batch is carried out by plain calls.
//
// # How one waits
//
//   - Do waits in the kernel, as the plain call would. The thread, and until the scheduler notices the processor with it, is held: right for what a
//     disk does in some 100 µs.
//   - Park hands the operations to kernel workers and waits in Go's poller (a ring's descriptor can be polled): two wake-ups more, and nobody
//     else is held up however long it takes: right for cold reads.
//
// # What was learnt
//
//   - io_uring_enter returns early when Go preempts the thread by a signal (SIGURG): it is called until all completions are there.
//   - IORING_SETUP_DEFER_TASKRUN and SINGLE_ISSUER want one thread, and a hop to a locked one costs 27-37 µs, more than they save: not used.
//   - A buffered read that io_uring started by itself ends in the thread that submitted it, which may be stuck in another system call by then:
//     Park has kernel workers do all of it (IOSQE_ASYNC).
//   - Memory that the kernel was given must stay where it is. Buffers reach Do through an interface, so they never lie on a stack, and ops is kept
//     alive until the last completion was seen: Do never returns before.
//
// Reading order: op.go, pool.go, ring.go, queue.go, setup.go.
package ring
