package series

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"
)

// tendEvery is how often spans are rolled up and old ones dropped.
const (
	tendEvery = time.Minute
	// jump is how far the clock goes ahead between two looks when it was moved.
	// For so many looks nothing is taken for old then: it may be moved back.
	jump        = time.Hour
	doubtPasses = 60
)

// write puts what is closed into the file; with all, what is open too. What
// cannot be written waits, and the oldest of it is dropped when it is too much.
func (s *Store) write(ctx context.Context, all bool) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	now := s.o.Clock.Now()
	taken, lost := s.live.take(now, all)
	s.dropped.Add(lost)
	s.waiting = append(s.waiting, taken...)
	err := s.writeWaiting(ctx, now)
	if err != nil && len(s.waiting) > maxWaiting {
		drop := len(s.waiting) - maxWaiting
		s.dropped.Add(int64(drop))
		s.waiting = slices.Clone(s.waiting[drop:])
	}
	s.behind.Store(int64(len(s.waiting)))
	if ctx.Err() == nil || all {
		s.trouble(err)
	}
	return err
}

func (s *Store) writeWaiting(ctx context.Context, now time.Time) error {
	f, err := s.opened(ctx)
	if err != nil {
		return err
	}
	if len(s.waiting) > 0 {
		err = s.insert(ctx, f)
		if isFull(err) {
			// Either the bound or the disk: dropping the oldest helps with both.
			if terr := s.makeRoom(ctx, f, s.o.MaxBytes/16); terr == nil {
				err = s.insert(ctx, f)
			}
		}
		if err == nil {
			s.waiting = s.waiting[:0]
			if cap(s.waiting) > 1<<16 {
				s.waiting = nil
			}
		}
	}
	if since := now.Sub(s.tended); err == nil && (since >= tendEvery || since < 0) {
		if since > jump && !s.tended.IsZero() {
			s.doubt = doubtPasses
		}
		s.tended = now
		err = s.tend(ctx, f, now)
	}
	if err != nil && isDamage(err) {
		s.damaged(f, err)
	}
	return err
}

// pieceOf is about how many entries go into one transaction. On a disk that is
// full the first of them fails, however many wait behind it.
const pieceOf = 4096

// insert writes what waits. What an error leaves goes on waiting.
func (s *Store) insert(ctx context.Context, f *file) error {
	order := make([]*timed, len(s.waiting)) // far smaller to sort than what it points at
	for i := range order {
		order[i] = &s.waiting[i]
	}
	slices.SortFunc(order, func(a, b *timed) int {
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name))
	})
	for len(order) > 0 {
		n := piece(order)
		if err := s.update(ctx, f, func(w *writer) error { return w.putAll(order[:n]) }); err != nil {
			if len(order) < len(s.waiting) {
				left := make([]timed, len(order))
				for i, e := range order {
					left[i] = *e
				}
				s.waiting = left
			}
			return err
		}
		order = order[n:]
	}
	return nil
}

// piece is how many of sorted entries go into the next transaction: whole
// blocks of them.
func piece(order []*timed) int {
	n := min(pieceOf, len(order))
	for n < len(order) && order[n].owner == order[n-1].owner && order[n].at == order[n-1].at {
		n++
	}
	return n
}

// writer is a transaction of the one who writes.
type writer struct {
	ctx    context.Context
	s      *Store
	f      *file
	tx     *sql.Tx
	insert *sql.Stmt
	owners map[string]int64 // made in this transaction
	blocks int64
}

// update runs do in a transaction.
func (s *Store) update(ctx context.Context, f *file, do func(*writer) error) error {
	tx, err := f.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	w := &writer{ctx: ctx, s: s, f: f, tx: tx, owners: map[string]int64{}}
	if err := do(w); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for name, id := range w.owners {
		f.owner[name] = id
	}
	s.blocks.Add(w.blocks)
	return nil
}

// putAll adds the blocks of sorted entries.
func (w *writer) putAll(order []*timed) error {
	var list []entry
	for i := 0; i < len(order); {
		first := order[i]
		list = list[:0]
		for ; i < len(order) && order[i].owner == first.owner && order[i].at == first.at; i++ {
			if n := len(list); n > 0 && list[n-1].name == order[i].name {
				list[n-1].merge(&order[i].cell)
				continue
			}
			list = append(list, order[i].entry)
		}
		if err := w.put(first.owner, 0, first.at, list); err != nil {
			return err
		}
	}
	return nil
}

// put adds a block.
func (w *writer) put(owner string, level int, at int64, list []entry) error {
	id, err := w.owner(owner)
	if err != nil {
		return err
	}
	data, err := w.s.pack.pack(list)
	if err != nil {
		return err
	}
	if w.insert == nil {
		if w.insert, err = w.tx.PrepareContext(w.ctx, `INSERT INTO block (owner, level, at, rolled, data) VALUES (?, ?, ?, 0, ?)`); err != nil {
			return err
		}
	}
	_, err = w.insert.ExecContext(w.ctx, id, level, at, data)
	w.blocks++
	return err
}

func (w *writer) owner(name string) (int64, error) {
	if id, ok := w.f.owner[name]; ok {
		return id, nil
	}
	if id, ok := w.owners[name]; ok {
		return id, nil
	}
	res, err := w.tx.ExecContext(w.ctx, `INSERT INTO owner (name) VALUES (?)`, name)
	if err != nil {
		return 0, err
	}
	id, err := res.LastInsertId()
	w.owners[name] = id
	return id, err
}
