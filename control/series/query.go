package series

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// Query says what to read.
type Query struct {
	Owner string // cluster; "" for the site
	Name  string // one node or entry; "" for all
	// From and To bound the time; From is cut to a multiple of Step.
	From, To time.Time
	// Step is the length of one point, cut to seconds; at least 10 s.
	Step time.Duration
}

// Result is what was measured, in points of the same length.
type Result struct {
	From    time.Time
	Step    time.Duration
	Points  int
	Entries []Entry // by name
}

// Entry is one node, or one of the others, over time.
type Entry struct {
	Name string
	// Machines filled the node in that time, in order.
	Machines []MachineSpan
	points   []cell
	all      cell
}

// MachineSpan is a machine and from when on it filled a node.
type MachineSpan struct {
	Machine string
	From    time.Time
}

// Mean of a column at a point. False: a gap.
func (e *Entry) Mean(column, point int) (float64, bool) { return e.points[point].mean(column) }

// Max is the highest figure of a column at a point. False: a gap.
func (e *Entry) Max(column, point int) (float64, bool) {
	p := &e.points[point]
	return p.max[column], p.weight(column) > 0
}

// Total is the mean and the maximum of a column over all of the time that is
// known. False: nothing is.
func (e *Entry) Total(column int) (mean, most float64, ok bool) {
	mean, ok = e.all.mean(column)
	return mean, e.all.max[column], ok
}

// MaxPoints bounds what one query may hold: points times entries.
const MaxPoints = 400_000

// Read reads a span of time. Spans older than the fine ones are filled from
// the coarse ones, so that a point may be as wide as an hour.
func (s *Store) Read(ctx context.Context, q Query) (Result, error) {
	step := max(int64(q.Step/time.Second), slot)
	from := floor(q.From.Unix(), step)
	points := int((q.To.Unix() - from + step) / step)
	if points <= 0 || points > MaxPoints {
		return Result{}, muster.Errorf(muster.EInvalid, "that time has no or too many points").WithHint("ask for a shorter time or a longer step")
	}
	r := &reader{q: q, from: from, to: from + int64(points)*step, step: step, points: points, index: map[string]int{}}
	if err := s.readAll(ctx, r); err != nil {
		return Result{}, err
	}
	if r.full {
		return Result{}, muster.Errorf(muster.EInvalid, "that is too much to show at once").
			WithHint("ask for one node, a shorter time or a longer step")
	}
	slices.SortFunc(r.list, func(a, b Entry) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
	return Result{From: time.Unix(from, 0).UTC(), Step: time.Duration(step) * time.Second, Points: points, Entries: r.list}, nil
}

type reader struct {
	q        Query
	from, to int64
	step     int64
	points   int
	index    map[string]int
	list     []Entry
	full     bool
}

// add spreads an entry over the points that it covers: it ends with its span,
// and may have begun before it.
func (r *reader) add(at, length int64, e *entry) {
	if r.q.Name != "" && e.name != r.q.Name || at+length <= r.from || at >= r.to {
		return
	}
	i, ok := r.index[e.name]
	if !ok {
		if (len(r.list)+1)*r.points > MaxPoints {
			r.full = true
			return
		}
		i = len(r.list)
		r.index[e.name] = i
		r.list = append(r.list, Entry{Name: e.name, points: make([]cell, r.points)})
	}
	out := &r.list[i]
	r.machine(out, at, e.machine)
	end := at + length
	begin := at
	if w := int64(math.Ceil(max(e.gauge, e.rate))); length == slot && w > length {
		begin = end - w
	}
	whole := float64(end - begin)
	for t := begin; t < end; {
		point := (t - r.from) / r.step
		next := min(r.from+(point+1)*r.step, end)
		if t < r.from {
			next = min(r.from, end)
		}
		if t >= r.from && t < r.to {
			part := e.share(float64(next-t) / whole)
			out.points[point].merge(&part)
			out.all.merge(&part)
		}
		t = next
	}
}

func (r *reader) machine(e *Entry, at int64, machine string) {
	if machine == "" {
		return
	}
	t := time.Unix(max(at, r.from), 0).UTC()
	if n := len(e.Machines); n > 0 && (e.Machines[n-1].Machine == machine || t.Before(e.Machines[n-1].From)) {
		return
	}
	e.Machines = append(e.Machines, MachineSpan{machine, t})
}

// readAll reads the file, and then what is only in memory. Both are looked at
// as of one moment, between two writings.
func (s *Store) readAll(ctx context.Context, r *reader) error {
	var fresh []timed
	s.writing.RLock()
	s.live.peek(r.q.Owner, func(at int64, e *entry) { fresh = append(fresh, timed{r.q.Owner, at, *e}) })
	for i := range s.waiting {
		if s.waiting[i].owner == r.q.Owner {
			fresh = append(fresh, s.waiting[i])
		}
	}
	err := s.readFile(ctx, r, s.writing.RUnlock)
	slices.SortStableFunc(fresh, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	for i := range fresh {
		r.add(fresh[i].at, slot, &fresh[i].entry)
	}
	return err
}

// readFile reads what is written, and calls begun once it is settled what that
// is. Each level is read where the finer one has
// nothing older, and where it is not rolled up yet.
func (s *Store) readFile(ctx context.Context, r *reader, begun func()) error {
	begun = sync.OnceFunc(begun)
	defer begun()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.file == nil {
		return nil
	}
	tx, err := s.file.read.BeginTx(ctx, nil) // one view of all levels
	if err != nil {
		return explain(err)
	}
	defer func() { _ = tx.Rollback() }() // it only read
	var owner int64
	err = tx.QueryRowContext(ctx, `SELECT id FROM owner WHERE name = ?`, r.q.Owner).Scan(&owner)
	begun()
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return explain(err)
	}
	// The level that suits the step is read as far back as it goes; before
	// that the coarser ones, and after it what the finer ones have more.
	suits := levelRaw
	for level := levelRaw + 1; level < levels; level++ {
		if r.step%span(level) == 0 {
			suits = level
		}
	}
	to := r.to
	for level := suits; level < levels; level++ {
		first, err := s.readLevel(ctx, tx, r, owner, level, to, false)
		if err != nil {
			return explain(err)
		}
		if first < to {
			to = floor(first, coarser(level))
		}
	}
	for level := levelRaw; level < suits; level++ {
		if _, err := s.readLevel(ctx, tx, r, owner, level, r.to, true); err != nil {
			return explain(err)
		}
	}
	return nil
}

// readLevel reads one level up to a time, or what of it is not rolled up. It
// returns the oldest time that the level has of any owner.
func (s *Store) readLevel(ctx context.Context, tx *sql.Tx, r *reader, owner int64, level int, to int64, fresh bool) (first int64, err error) {
	first = math.MaxInt64
	if !fresh {
		err := tx.QueryRowContext(ctx, `SELECT at FROM block WHERE level = ? ORDER BY at LIMIT 1`, level).Scan(&first)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return first, err
		}
	}
	length := span(level)
	query := `SELECT at, data FROM block WHERE owner = ? AND level = ? AND at > ? AND at < ? ORDER BY at, id`
	if fresh {
		query = `SELECT at, data FROM block WHERE owner = ? AND level = ? AND at > ? AND at < ? AND rolled = 0 ORDER BY at, id`
	}
	rows, err := tx.QueryContext(ctx, query, owner, level, r.from-length, to)
	if err != nil {
		return first, err
	}
	defer rows.Close()
	var u unpacker
	for rows.Next() {
		var at int64
		var data []byte
		if err := rows.Scan(&at, &data); err != nil {
			return first, err
		}
		if err := u.each(data, func(e *entry) { r.add(at, length, e) }); err != nil {
			s.o.Log.Warn("corrupt sample block skipped", "owner", r.q.Owner, "level", level)
		}
	}
	return first, rows.Err()
}

func explain(err error) error {
	if err == nil {
		return nil
	}
	return muster.Errorf(muster.EUnavailable, "the samples cannot be read").WithHint("see the server's log").Wrap(err)
}
