package store

// where gathers the conditions of a query with their arguments.
type where struct {
	cond string
	args []any
}

// seenBy begins with what an actor may see, in tables of volumes and audit
// lines.
func (tx *Tx) seenBy() *where {
	cond, args := scope(tx.who)
	return &where{cond, args}
}

// usedBy begins with the clusters that an actor may see.
func (tx *Tx) usedBy() *where {
	cond, args := scopeUsed(tx.who, "id")
	return &where{cond, args}
}

// and adds a condition with its arguments.
func (w *where) and(cond string, args ...any) *where {
	w.cond += " AND " + cond
	w.args = append(w.args, args...)
	return w
}

// is compares a column, unless the value is empty.
func (w *where) is(column, value string) *where {
	if value == "" {
		return w
	}
	return w.and(column+" = ?", value)
}

// above takes only what has a greater value in a column, unless the value is empty.
func (w *where) above(column, value string) *where {
	if value == "" {
		return w
	}
	return w.and(column+" > ?", value)
}

// living leaves out what is deleted, if asked to.
func (w *where) living(only bool) *where {
	if !only {
		return w
	}
	return w.and("phase <> 'deleted'")
}

// in compares a column with a list, unless that is empty.
func in[T ~string](w *where, column string, values []T) *where {
	if len(values) == 0 {
		return w
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = string(v)
	}
	return w.and(column+" IN ("+marks(len(values))+")", args...)
}

// by orders the rows and takes at most limit of them; 0: all.
func (w *where) by(order string, limit int) *where {
	w.cond += " ORDER BY " + order
	if limit > 0 {
		w.cond += " LIMIT ?"
		w.args = append(w.args, limit)
	}
	return w
}
