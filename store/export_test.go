package store

// WithoutMemory has views that begin in f read the database.
func (db *DB) WithoutMemory(f func()) {
	db.moment.Add(1) // as if a commit were on its way
	defer db.moment.Add(1)
	f()
}

// Forget forgets the durations that are remembered.
func (db *DB) Forget() {
	db.recall.mu.Lock()
	defer db.recall.mu.Unlock()
	db.recall.durations = nil
}
