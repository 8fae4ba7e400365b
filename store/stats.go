package store

import (
	"os"
	"time"
)

// Stats tell how the store is.
type Stats struct {
	Size    int64 // bytes of the database file
	LogSize int64 // bytes of its write-ahead log
	Updates int64 // Updates made durable since Open
	Commits int64 // disk flushes for them
	Largest int   // most Updates that shared one flush
	// LastError is the last trouble with the disk or the file since Open, and
	// LastErrorAt when it was. Refusals of wrong changes do not count.
	LastError   error
	LastErrorAt time.Time
}

// Stats returns present figures. It does not touch the database.
func (db *DB) Stats() Stats {
	size := func(path string) int64 {
		if info, err := os.Stat(path); err == nil {
			return info.Size()
		}
		return 0
	}
	db.counts.mu.Lock()
	defer db.counts.mu.Unlock()
	return Stats{
		Size: size(db.path), LogSize: size(db.path + "-wal"),
		Updates: db.counts.updates, Commits: db.counts.commits, Largest: db.counts.largest,
		LastError: db.counts.last, LastErrorAt: db.counts.lastAt,
	}
}
