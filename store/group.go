package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// group is a set of Updates that become durable with one COMMIT. Every member
// ran inside its own savepoint, one after the other, on its own goroutine.
//
// There is no goroutine for it: whoever holds db.wmu runs its function, and
// then either leaves the group open because others wait for wmu (each of them
// will do the same), or commits it for everybody. While one group is being
// flushed, the next one gathers before wmu.
type group struct {
	done  chan struct{} // closed when err is final
	err   error
	n     int // members
	kept  int // members whose change is part of the COMMIT
	began time.Time
	lines []muster.Audit
	wrote map[any]any // as of a session
	alone bool        // its one member has no savepoint
}

// A group is committed at the latest when it has so many members or is so old,
// whoever waits: the first member has waited long enough.
const (
	maxGroup    = 256
	maxGroupAge = 20 * time.Millisecond
)

// Update runs fn in a transaction that may change things, on behalf of who,
// and returns once the change is durable. If fn returns an error, its change
// is undone and the error returned; if fn panics, its change is undone and the
// panic goes on. The change of others in the same group is untouched.
//
// fn may run again when its change could not be made: what a run leaves
// outside the transaction, the next one must begin anew.
//
// Functions run one at a time for the whole site: fn must not wait for
// anything outside the store, and must not call Update (it would wait for
// itself) or keep its Tx.
//
// When the commit fails, every Update of the group gets the error and none of
// them has happened.
func (db *DB) Update(ctx context.Context, who muster.Actor, fn func(*Tx) error) error {
	return db.update(ctx, who, false, fn)
}

// UpdateMany is Update for a function that changes many hundreds of records: it
// has a transaction of its own. What SQLite needs to undo one of many functions
// is a list that it walks along with every statement: a thousand statements of
// one function would cost a million steps.
func (db *DB) UpdateMany(ctx context.Context, who muster.Actor, fn func(*Tx) error) error {
	return db.update(ctx, who, true, fn)
}

func (db *DB) update(ctx context.Context, who muster.Actor, alone bool, fn func(*Tx) error) error {
	if err := db.changeable(ctx); err != nil {
		return err
	}
	if who.ReadOnly {
		return muster.Errorf(muster.EForbidden, "a token that only reads changes nothing").Because(muster.ReasonReadOnly).WithHint("use a token of your own")
	}
	arrived := time.Now()
	db.waiting.Add(1)
	db.wmu.Lock()
	db.waiting.Add(-1)
	g, err := db.join(ctx, arrived, who, alone, fn)
	if g == nil {
		return err
	}
	<-g.done
	if g.err != nil {
		// Also for a function that failed by itself: it may have failed because
		// of a change of this group that has not happened now.
		return g.err
	}
	return explain(err)
}

// View runs fn in a transaction that only reads: everything fn sees is of one
// moment. A few Views run at the same time and others wait, so fn must not
// wait for anything either, nor call View.
func (db *DB) View(ctx context.Context, who muster.Actor, fn func(*Tx) error) error {
	if err := db.usable(ctx); err != nil {
		return err
	}
	var c *conn
	select {
	case c = <-db.readers:
	case <-ctx.Done():
		return explain(ctx.Err())
	}
	if c == nil { // closed while waiting
		return db.usable(ctx)
	}
	defer func() { db.readers <- c }()
	s := &session{db: db, conn: c, seen: db.cache.now()}
	if _, err := c.exec(`BEGIN`); err != nil {
		return db.failed(err)
	}
	defer func() {
		s.done = true
		if _, err := c.exec(`ROLLBACK`); err != nil && db.dead.Load() == nil {
			db.log.Error("closing read transaction failed", "error", err)
		}
	}()
	if err := s.date(); err != nil {
		return db.failed(err)
	}
	return db.failed(fn(&Tx{s: s, who: who, name: who.Name}))
}

// date has a view begin to see, and forget what it was to see if something is committed
// just then.
func (s *session) date() error {
	err := s.each(func(*sql.Rows) error { return nil }, `SELECT 1 FROM clusters WHERE 0`)
	if s.db.cache.now() != s.seen {
		s.seen = unknown
	}
	return err
}

// join runs fn as a member of the open group, with wmu held, and lets go of
// wmu. It returns a nil group if there is nothing to wait for.
func (db *DB) join(ctx context.Context, arrived time.Time, who muster.Actor, alone bool, fn func(*Tx) error) (g *group, err error) {
	if err := db.changeable(ctx); err != nil { // it may have waited long
		db.settle()
		return nil, err
	}
	if alone && db.group != nil {
		db.commit(db.group)
	}
	if err := db.begin(arrived); err != nil {
		db.settle()
		return nil, err
	}
	g = db.group
	g.n++
	g.alone = alone
	if err := db.fault(PointBegin); err != nil {
		db.abandon(db.kill(err))
		db.settle()
		return g, err
	}
	if !alone {
		if _, err := db.writer.exec(`SAVEPOINT one`); err != nil {
			db.abandon(db.failed(err))
			db.settle()
			return g, err
		}
	}
	s := &session{db: db, conn: db.writer, write: true, seen: db.cache.now()}
	returned := false
	defer func() { // also when fn panics or ends its goroutine
		s.done = true
		if !returned {
			err = errors.New("the function did not return")
		}
		db.leave(g, s, err)
		db.settle()
	}()
	err = fn(&Tx{s: s, who: who, name: who.Name})
	if db.opts.Again && s.broken == nil {
		if err := db.undo(alone); err != nil {
			return g, err
		}
		s.done = true
		s = &session{db: db, conn: db.writer, write: true, seen: s.seen}
		err = fn(&Tx{s: s, who: who, name: who.Name})
	}
	if err == nil {
		err = s.check()
	}
	returned = true
	return g, err
}

// undo takes back what the open group's last function did so far.
func (db *DB) undo(alone bool) error {
	steps := []string{`ROLLBACK TO one`}
	if alone {
		steps = []string{`ROLLBACK`, `BEGIN IMMEDIATE`}
	}
	for _, step := range steps {
		if _, err := db.writer.exec(step); err != nil {
			return err
		}
	}
	return nil
}

// refusal is the last time that no transaction could be begun.
type refusal struct {
	at  time.Time
	err error
}

// begin opens a group if none is open. When another program holds the lock,
// everybody who was waiting meanwhile is told so at once, rather than each of
// them waiting for the lock in turn.
func (db *DB) begin(arrived time.Time) error {
	if db.group != nil {
		return nil
	}
	if arrived.Before(db.refused.at) {
		return db.refused.err
	}
	if _, err := db.writer.exec(`BEGIN IMMEDIATE`); err != nil {
		db.refused = refusal{time.Now(), db.failed(err)}
		return db.refused.err
	}
	db.group = &group{done: make(chan struct{}), began: time.Now(), wrote: map[any]any{}}
	return nil
}

// leave keeps or undoes what one member did.
func (db *DB) leave(g *group, s *session, err error) {
	if ferr := db.fault(PointChanged); ferr != nil {
		db.abandon(db.kill(ferr))
		return
	}
	if err != nil && g.alone {
		switch {
		case s.broken != nil:
			db.abandon(db.failed(s.broken))
		case fatal(err):
			db.abandon(db.failed(err))
		default:
			db.abandon(nil) // it knows why
		}
		return
	}
	if err == nil {
		if !g.alone {
			if _, rerr := db.writer.exec(`RELEASE one`); rerr != nil {
				db.abandon(db.failed(rerr))
				return
			}
		}
		g.kept++
		g.lines = append(g.lines, s.lines...)
		maps.Copy(g.wrote, s.wrote)
		return
	}
	if _, rerr := db.writer.exec(`ROLLBACK TO one`); rerr != nil {
		// SQLite undid the whole transaction when the statement failed (a full
		// disk does that). The cause is in err; nobody was told of success.
		if !fatal(err) && !fatal(s.broken) {
			err = rerr
		} else if s.broken != nil {
			err = s.broken
		}
		db.abandon(db.failed(err))
		return
	}
	if _, rerr := db.writer.exec(`RELEASE one`); rerr != nil {
		db.abandon(db.failed(rerr))
	}
}

// abandon ends the open group with an error and without a commit.
func (db *DB) abandon(err error) {
	g := db.group
	if g == nil {
		return
	}
	_, _ = db.writer.exec(`ROLLBACK`) // fails when SQLite did it already
	db.relieve(err)
	db.finish(g, err)
}

func (db *DB) finish(g *group, err error) {
	db.group = nil
	db.lastN = g.n
	g.err = err
	db.counts.group(g, err)
	close(g.done)
}

// settle commits the open group unless somebody else is about to, and lets go
// of wmu.
func (db *DB) settle() {
	defer db.wmu.Unlock()
	g := db.group
	if g == nil {
		return
	}
	if !g.alone && g.n < maxGroup && time.Since(g.began) < maxGroupAge {
		// Members of the last group come back for more a moment after they
		// were told: give them that moment, it saves a flush.
		for try := 0; db.waiting.Load() == 0 && try < 3 && db.lastN > 1; try++ {
			runtime.Gosched()
		}
		if db.waiting.Load() > 0 {
			return
		}
	}
	db.commit(g)
}

func (db *DB) commit(g *group) {
	if g.kept == 0 {
		db.abandon(nil) // every member failed by itself, and knows why
		return
	}
	if err := db.fault(PointBeforeCommit); err != nil {
		db.abandon(db.kill(err))
		return
	}
	err := db.cache.commit(db.rev, g.wrote, func() error {
		_, err := db.writer.exec(`COMMIT`)
		return err
	})
	if err != nil {
		db.abandon(db.failed(err))
		return
	}
	if err := db.fault(PointAfterCommit); err != nil {
		db.finish(g, db.kill(err))
		return
	}
	db.feeds.publish(g.lines)
	if err := db.fault(PointPublished); err != nil {
		db.finish(g, db.kill(err))
		return
	}
	db.finish(g, nil)
	db.keepHeadroom()
}

// failed explains an error and remembers it for Stats when it is the disk's.
func (db *DB) failed(err error) error {
	if err == nil {
		return nil
	}
	out := explain(err)
	switch muster.CodeOf(out) {
	case muster.EUnavailable, muster.ECorrupt, muster.EInternal:
		if db.counts.failure(db.clock.Now(), out) {
			db.log.Error("database error", "error", out, "cause", err)
		}
	}
	return out
}

// counts are the numbers behind Stats.
type counts struct {
	mu      sync.Mutex
	updates int64
	commits int64
	largest int
	last    error
	lastAt  time.Time
	logged  time.Time
}

func (c *counts) group(g *group, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && g.kept > 0 {
		c.commits++
		c.updates += int64(g.kept)
		c.largest = max(c.largest, g.kept)
	}
}

// failure remembers an error and reports whether to log it: not every one of a
// disk that refuses thousands of changes.
func (c *counts) failure(at time.Time, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := c.last != nil && c.last.Error() == err.Error() && time.Since(c.logged) < time.Minute
	c.last, c.lastAt = err, at
	if !again {
		c.logged = time.Now()
	}
	return !again
}
