package index

import (
	"errors"
	"io/fs"
)

// What both kinds of index offer alike.

// Load does what the opening deferred. After a nil result nothing that the file
// held before can make a later call fail.
func (t *table) Load() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.load()
}

func (t *table) openNow(active bool) error {
	if !active {
		return nil
	}
	return t.Load()
}

// Entries returns the number of entries; 0 of an index that cannot be read.
func (t *table) Entries() int { return t.entries() }

// Limit returns how many entries the index may hold.
func (t *table) Limit() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.limit
}

// Mapped tells whether entries are in the operating system's hands as soon as they are added.
func (t *table) Mapped() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.state == mapped
}

// Reset drops every entry, whatever the file holds, and makes the index active.
func (t *table) Reset() error { return t.reset() }

// Seal trims the file to its entries and makes the index read-only. Not synced.
func (t *table) Seal() error { return t.seal() }

// Write hands the entries that are only in memory to the operating system, so that
// they outlive the process; no sync. An index that is mapped has none.
func (t *table) Write() error { return t.write() }

// Flush brings the entries to the disk.
func (t *table) Flush() error { return t.flush() }

// Close trims an active index to its entries and ends its use. Not synced. An
// index that nobody used since it was opened deferred costs nothing.
func (t *table) Close() error { return t.close(true) }

// Discard ends the use of an index whose file is to be deleted: nothing is written.
func (t *table) Discard() { _ = t.close(false) }

// Path returns the present name of the file.
func (t *table) Path() string { return t.getPath() }

// Rename renames the file and tells of it in one, so that no look-up opens it by a name that is gone. A missing file is no error here: who
// opens it finds out.
func (t *table) Rename(path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.fs.Rename(t.path, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.path = path
	return nil
}

// SetPath tells that the file was renamed (itself or a folder above it).
func (t *table) SetPath(path string) { t.setPath(path) }
