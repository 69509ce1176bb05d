// Package single is the coordination of a broker that is alone: coord.Service
// over one JSON file in the data directory.
//
// A change is made in this order: the whole new state goes to a file beside
// the old one, that is synced, renamed over the old one, and the directory is
// synced; then subscribers are called (the broker makes or removes the logs);
// then the new Image is published. So a crash at any moment leaves the state
// before or the state after, never a mixture and never a torn file, and the
// logs follow the state at the next start: what the state has and the disk has
// not is made, and a topic that was being deleted is still noted as such.
//
// A file that cannot be read stops the start with an error naming it. Only a
// file that is not there at all is an empty cluster, and then logs found in
// the data directory (written by Apache Kafka, or left when the file was lost)
// are adopted: see Service.Adopt.
package single
