package store

// Version names what a transaction sees of the records: two transactions with the same version see the same. It is not
// the same after every change: the last use of a key and sessions at the gateway have none.
type Version struct {
	change int64 // of clusters, nodes, machines, volumes and users
	line   int64 // of the audit, which says what else changes
}

// Version is that of this transaction. False: it is not known, because another process may write, or a
// commit is on its way.
func (tx *Tx) Version() (v Version, known bool, _ error) {
	v.change = tx.s.seen
	err := tx.s.one([]any{&v.line}, `SELECT coalesce(max(seq), 0) FROM audit`)
	return v, v.change != unknown && err == nil, err
}
