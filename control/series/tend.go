package series

import (
	"context"
	"time"
)

// levels of spans, finest first.
const (
	levelRaw = iota
	levelMinutes
	levelHours
	levels
)

// span of a level in seconds.
func span(level int) int64 {
	switch level {
	case levelRaw:
		return slot
	case levelMinutes:
		return 300
	}
	return 3600
}

// grace is how long after its end a span is rolled up: what is open in memory
// is written by then.
const grace = 30

// tend rolls up what is complete and drops what is too old or too much.
func (s *Store) tend(ctx context.Context, f *file, now time.Time) error {
	for level := levelRaw; level < levels-1; level++ {
		if err := s.roll(ctx, f, level, now); err != nil {
			if !isFull(err) {
				return err
			}
			if err := s.makeRoom(ctx, f, s.o.MaxBytes/16); err != nil {
				return err
			}
		}
	}
	if s.doubt > 0 {
		s.doubt--
	} else if err := s.expire(ctx, f, now); err != nil {
		return err
	}
	return s.makeRoom(ctx, f, 0)
}

// roll makes blocks of the next level from the complete spans of this one, a
// span in a transaction.
func (s *Store) roll(ctx context.Context, f *file, level int, now time.Time) error {
	length := span(level + 1)
	for range 10_000 {
		if err := ctx.Err(); err != nil {
			return err
		}
		var first *int64
		err := f.write.QueryRowContext(ctx, `SELECT min(at) FROM block WHERE rolled = 0 AND level = ?`, level).Scan(&first)
		if err != nil || first == nil {
			return err
		}
		from := floor(*first, length)
		if from+length+grace > now.Unix() {
			return nil
		}
		if err := s.rollSpan(ctx, f, level, from, from+length); err != nil {
			return err
		}
	}
	return nil
}

func floor(at, length int64) int64 {
	m := at % length
	if m < 0 {
		m += length
	}
	return at - m
}

func (s *Store) rollSpan(ctx context.Context, f *file, level int, from, to int64) error {
	return s.update(ctx, f, func(w *writer) error {
		rows, err := w.tx.QueryContext(ctx, `SELECT b.owner, o.name, b.data FROM block b JOIN owner o ON o.id = b.owner
			WHERE b.rolled = 0 AND b.level = ? AND b.at >= ? AND b.at < ? ORDER BY b.owner, b.at, b.id`, level, from, to)
		if err != nil {
			return err
		}
		defer rows.Close()
		// One owner at a time: the blocks of all may be many.
		type done struct {
			owner string
			list  []entry
		}
		var all []done
		var index map[string]int
		var last int64 = -1
		for rows.Next() {
			var id int64
			var name string
			var data []byte
			if err := rows.Scan(&id, &name, &data); err != nil {
				return err
			}
			if id != last {
				last, index = id, map[string]int{}
				all = append(all, done{owner: name})
			}
			d := &all[len(all)-1]
			err := s.unpack.each(data, func(e *entry) {
				i, ok := index[e.name]
				if !ok {
					index[e.name] = len(d.list)
					d.list = append(d.list, *e)
					return
				}
				d.list[i].merge(&e.cell)
				d.list[i].machine = e.machine
			})
			if err != nil {
				s.o.Log.Warn("corrupt sample block skipped", "owner", name, "level", level)
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for _, d := range all {
			if len(d.list) == 0 {
				continue
			}
			if err := w.put(d.owner, level+1, from, d.list); err != nil {
				return err
			}
		}
		_, err = w.tx.ExecContext(ctx, `UPDATE block SET rolled = 1 WHERE rolled = 0 AND level = ? AND at >= ? AND at < ?`, level, from, to)
		return err
	})
}

func (s *Store) age(level int) time.Duration {
	switch level {
	case levelRaw:
		return s.o.Raw
	case levelMinutes:
		return s.o.Minutes
	}
	return s.o.Hours
}

// coarser is the span at whose bounds a level is cut, so that what is older can
// be read from the next level without counting anything twice.
func coarser(level int) int64 { return span(min(level+1, levels-1)) }

// expire drops what is too old, a little at a time: a clock that jumps ahead
// for a moment does not cost the past.
func (s *Store) expire(ctx context.Context, f *file, now time.Time) error {
	for level := range levels {
		step := coarser(level)
		limit := floor(now.Add(-s.age(level)).Unix(), step)
		var first *int64
		if err := f.write.QueryRowContext(ctx, `SELECT min(at) FROM block WHERE level = ?`, level).Scan(&first); err != nil {
			return err
		}
		if first == nil || *first >= limit {
			continue
		}
		limit = min(limit, floor(*first, step)+2*step)
		if _, err := f.write.ExecContext(ctx, `DELETE FROM block WHERE level = ? AND at < ?`, level, limit); err != nil {
			return err
		}
		if level == levels-1 {
			if err := f.forgetOwners(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetOwners drops the names of which nothing is left.
func (f *file) forgetOwners(ctx context.Context) error {
	_, err := f.write.ExecContext(ctx, `DELETE FROM owner WHERE NOT EXISTS (SELECT 1 FROM block WHERE block.owner = owner.id)`)
	clear(f.owner)
	if err != nil {
		return err
	}
	return f.loadOwners(ctx)
}

// makeRoom drops the oldest of the finest level until the file has room for
// the given bytes below its bound, and gives what is free back to the disk.
func (s *Store) makeRoom(ctx context.Context, f *file, want int64) error {
	// A sixteenth stays free for what comes before the next look.
	bound := s.o.MaxBytes - max(want, s.o.MaxBytes/16)
	for range 10_000 {
		used, free, err := f.pages(ctx)
		if err != nil {
			return err
		}
		s.bytes.Store(used * pageSize)
		if used*pageSize <= bound {
			if (used+free)*pageSize > s.o.MaxBytes || free > used && free > 1024 {
				_, err = f.write.ExecContext(ctx, `PRAGMA incremental_vacuum(1024)`)
			}
			return err
		}
		dropped := false
		for level := range levels {
			var first *int64
			if err := f.write.QueryRowContext(ctx, `SELECT min(at) FROM block WHERE level = ?`, level).Scan(&first); err != nil {
				return err
			}
			if first == nil {
				continue
			}
			step := coarser(level)
			if _, err := f.write.ExecContext(ctx, `DELETE FROM block WHERE level = ? AND at < ?`, level, floor(*first, step)+step); err != nil {
				return err
			}
			dropped = true
			break
		}
		if !dropped {
			return nil
		}
	}
	return nil
}

// pages in use and free.
func (f *file) pages(ctx context.Context) (used, free int64, err error) {
	var all int64
	if err := f.write.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&all); err != nil {
		return 0, 0, err
	}
	err = f.write.QueryRowContext(ctx, `PRAGMA freelist_count`).Scan(&free)
	return all - free, free, err
}
