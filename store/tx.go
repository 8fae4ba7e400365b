package store

import (
	"database/sql"
	"errors"
	"hash/crc32"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
)

// Tx is a transaction on behalf of an actor. It is good only inside the
// function that it was given to, and for one goroutine.
type Tx struct {
	s    *session
	who  muster.Actor // whose rights count
	name string       // who is named in the audit
}

// session is what all Tx values of one transaction share.
type session struct {
	db     *DB
	conn   *conn
	write  bool
	done   bool
	broken error // a failure after which SQLite may have undone everything
	lines  []muster.Audit
	// wrote are entries of the cache, by their keys, that the function wrote.
	wrote map[any]any
	seen  int64 // the revision whose records the transaction sees; see cache
	// touched are machines whose place must make sense when the function ends.
	touched map[muster.MachineID]bool
}

// Actor is on whose behalf the transaction runs.
func (tx *Tx) Actor() muster.Actor { return tx.who }

// AsSystem returns the same transaction with the rights of Muster itself, for
// the steps of a user's request that the user may not do directly: giving it
// machines, making its secrets. The audit goes on naming the user.
func (tx *Tx) AsSystem() *Tx {
	return &Tx{s: tx.s, who: muster.System(), name: tx.name}
}

// Now is the time of the store's clock, in UTC.
func (tx *Tx) now() time.Time { return tx.s.db.clock.Now().UTC() }

func (s *session) usable(write bool) error {
	switch {
	case s.done:
		return defect("a transaction was used after its end")
	case s.broken != nil:
		return s.broken
	case write && !s.write:
		return defect("a view tried to change something")
	}
	return nil
}

func (s *session) note(err error) error {
	if err != nil && fatal(err) && s.broken == nil {
		s.broken = explain(err)
	}
	return explain(err)
}

func (s *session) exec(query string, args ...any) (sql.Result, error) {
	if err := s.usable(true); err != nil {
		return nil, err
	}
	r, err := s.conn.exec(query, args...)
	return r, s.note(err)
}

// each runs scan for every row. Rows are closed before it returns, and scan
// must not query.
func (s *session) each(scan func(*sql.Rows) error, query string, args ...any) error {
	if err := s.usable(false); err != nil {
		return err
	}
	rows, err := s.conn.query(query, args...)
	if err != nil {
		return s.note(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return s.note(err)
		}
	}
	return s.note(rows.Err())
}

var errNoRow = errors.New("no row")

// one reads a single row into dest, or returns errNoRow.
func (s *session) one(dest []any, query string, args ...any) error {
	found := false
	err := s.each(func(r *sql.Rows) error {
		found = true
		return r.Scan(dest...)
	}, query, args...)
	if err == nil && !found {
		return errNoRow
	}
	return err
}

// nextRev numbers a change.
func (s *session) nextRev() int64 {
	s.db.rev++
	return s.db.rev
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // made once by the library

func sumOf(b []byte) int64 { return int64(crc32.Checksum(b, castagnoli())) }

// encode makes the document of a record and its sum.
func encode[T any](kind document.Kind[T], v *T) (doc string, sum int64, err error) {
	b, err := kind.Encode(v)
	if err != nil {
		return "", 0, defect("a record cannot be written as JSON: %v", err)
	}
	return string(b), sumOf(b), nil
}

// decode reads a document back and refuses one that is not what was written.
func decode[T any](kind document.Kind[T], what, doc string, sum int64) (v T, err error) {
	b := []byte(doc)
	if sumOf(b) != sum {
		return v, corrupt(what, errors.New("the checksum does not match"))
	}
	v, err = kind.Decode(what, b)
	if muster.CodeOf(err) == muster.ECorrupt {
		err = corrupt(what, err)
	}
	return v, err
}

func null[S ~string](s S) any {
	if s == "" {
		return nil
	}
	return string(s)
}

// marks is "?,?,?" for n values.
func marks(n int) string {
	b := make([]byte, 0, 2*n)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '?')
	}
	return string(b)
}

func nanos(t time.Time) int64 { return t.UnixNano() }

func fromNanos(n int64) time.Time { return time.Unix(0, n).UTC() }

// nanosOrNull keeps the zero time, which has no nanoseconds, as NULL.
func nanosOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

// checkText refuses words that the database and JSON would not both give back
// as they were.
func checkText(words ...string) error {
	for _, w := range words {
		if !utf8.ValidString(w) || strings.ContainsRune(w, 0) {
			return muster.Errorf(muster.EInvalid, "%q is not a text", w).Because(muster.ReasonBadValue).WithHint("use UTF-8 without zero bytes")
		}
	}
	return nil
}

// cleanText makes any text one that can be stored: for remarks, which are
// better kept a little changed than refused.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
