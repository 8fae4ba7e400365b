package store

// Uncached is the same transaction, which reads everything from the database.
func (tx *Tx) Uncached() *Tx {
	s := *tx.s
	s.db = &DB{clock: s.db.clock}
	s.db.cache.open(true)
	s.seen, s.write = unknown, false
	return &Tx{s: &s, who: tx.who, name: tx.name}
}
