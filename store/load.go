package store

import (
	"database/sql"
	"errors"

	"github.com/muster-hpc/muster/internal/document"
)

// head is the part of a row that is read every time.
type head struct {
	id, owner, project, phase string
	rev                       int64
}

// table tells load how rows of one kind are checked.
type table[K ~string, V any] struct {
	name string
	doc  document.Kind[V]
	// same reports whether a decoded document agrees with its row.
	same func(head, V) bool
	// known returns a record at a revision without its document; nil: none is known.
	known func(K, int64) (V, bool)
}

// chunk is how many documents are fetched with one statement.
const chunk = 64

// load reads the rows that meet cond, in its order: the head of each row, and
// the documents of only those that are not known at this revision. each, if not
// nil, is told the head that belongs to every result.
func load[K ~string, V any](s *session, t table[K, V], each func(int, head), cond string, args ...any) ([]V, error) {
	var heads []head
	err := s.each(func(r *sql.Rows) error {
		var h head
		err := r.Scan(&h.id, &h.owner, &h.project, &h.phase, &h.rev)
		heads = append(heads, h)
		return err
	}, `SELECT id, owner, project, phase, rev FROM `+t.name+` WHERE `+cond, args...)
	if err != nil {
		return nil, err
	}
	out := make([]V, len(heads))
	var missing []int
	for i, h := range heads {
		known := false
		if t.known != nil {
			out[i], known = t.known(K(h.id), h.rev)
		}
		if !known {
			missing = append(missing, i)
		}
		if each != nil {
			each(i, h)
		}
	}
	for len(missing) > 0 {
		n := min(chunk, len(missing))
		if err := loadDocs(s, t, heads, missing[:n], out); err != nil {
			return nil, err
		}
		missing = missing[n:]
	}
	return out, nil
}

func loadDocs[K ~string, V any](s *session, t table[K, V], heads []head, missing []int, out []V) error {
	where := make(map[string]int, len(missing))
	args := make([]any, 0, chunk)
	for _, i := range missing {
		where[heads[i].id] = i
		args = append(args, heads[i].id)
	}
	if len(args) > 1 { // two texts in all: for one row, and for a chunk
		for len(args) < chunk {
			args = append(args, args[0])
		}
	}
	err := s.each(func(r *sql.Rows) error {
		var id, doc string
		var sum int64
		if err := r.Scan(&id, &sum, &doc); err != nil {
			return err
		}
		h := heads[where[id]]
		v, err := decode(t.doc, "the record of "+id, doc, sum)
		if err != nil {
			return err
		}
		if !t.same(h, v) {
			return corrupt("the record of "+id, errors.New("row and document disagree"))
		}
		out[where[id]] = v
		delete(where, id)
		return nil
	}, `SELECT id, sum, doc FROM `+t.name+` WHERE id IN (`+marks(len(args))+`)`, args...)
	if err == nil && len(where) > 0 {
		return corrupt("a table of the store", errors.New("a row has no document"))
	}
	return err
}
