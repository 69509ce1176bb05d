// Package checkpoint reads and writes Kafka's small text files: the offset
// checkpoints and meta.properties of a data directory, its marker of a clean stop, and
// the topic id and leader-epoch history in the folder of a log.
//
// All are replaced atomically (WriteFile). A file that cannot be understood is an
// error that names file, line and value; none of them is worth refusing to start for,
// so what could be read comes with the error and the caller chooses.
package checkpoint
