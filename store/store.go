package store

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/lockfile"
	_ "modernc.org/sqlite" // the driver
)

// Options of a store. The zero value is good for all but a server, which sets
// Headroom.
type Options struct {
	Clock muster.Clock // nil: the system's
	Log   *slog.Logger // nil: nothing is logged
	// Fault is called at each of Points. An error there acts like a crash: what
	// was not committed is gone, nobody is told, and every later call fails
	// until the store is closed and opened again. Nil in production.
	Fault func(point string) error
	// BusyTimeout is how long to wait for another program's lock. Zero: 5 s.
	BusyTimeout time.Duration
	// Headroom is how many bytes to keep free inside the database file and its
	// log, so that changes commit although others filled the disk. Zero: none.
	Headroom int64
	// NoCache has everything read from the database: for where not only this
	// process changes it. It is slower, and nothing else differs.
	NoCache bool
	// Again has each Update run its function twice and undo the first run, for
	// tests of functions: see Update.
	Again bool
}

// cheapCheck is the size up to which the structure of the file is checked at
// every Open, in about 10 ms; larger ones only after an unclean end.
const cheapCheck = 8 << 20

// readers is the number of Views that run at the same time; others wait.
const readers = 4

// DB is an open store. It is safe for concurrent use.
type DB struct {
	path  string
	opts  Options
	clock muster.Clock
	log   *slog.Logger

	sqlWrite *sql.DB
	sqlRead  *sql.DB
	lock     *lockfile.Lock
	readers  chan *conn

	// The one writer and the group that it is filling; see group.go.
	wmu      sync.Mutex
	waiting  atomic.Int64
	writer   *conn
	group    *group
	lastN    int
	rev      int64
	refused  refusal
	headroom headroom

	feeds feeds
	cache cache

	frozen atomic.Pointer[muster.Error] // why nothing may be changed any more
	dead   atomic.Pointer[muster.Error] // set once: by a crash in a test, or Close
	closed sync.Once
	counts counts
}

// Open opens the store in the file path, makes it if there is none, and brings
// its schema up to date. One process at a time may have it open.
//
// Errors: EUnavailable if another process has it open or the disk refuses,
// ECorrupt if the file is damaged, EConflict if a program of another version wrote it.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	if path == "" || path == ":memory:" {
		return nil, muster.Errorf(muster.EInvalid, "the store needs a file").Because(muster.ReasonRequired).
			WithHint("give a path below the state directory")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, explain(err)
	}
	db := &DB{path: path, opts: o, clock: o.Clock, log: o.Log}
	if db.clock == nil {
		db.clock = muster.SystemClock{}
	}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	if db.opts.BusyTimeout == 0 {
		db.opts.BusyTimeout = 5 * time.Second
	}
	db.cache.open(o.NoCache)
	if err := db.open(ctx); err != nil {
		db.release()
		return nil, explain(err)
	}
	return db, nil
}

func (db *DB) open(ctx context.Context) (err error) {
	if db.lock, err = lockFile(ctx, db.path+".lock"); err != nil {
		return err
	}
	unclean, size, err := prepareFile(db.path)
	if err != nil {
		return err
	}
	if db.sqlWrite, err = sql.Open("sqlite", source(db.path, db.opts.BusyTimeout, true)); err != nil {
		return err
	}
	db.sqlWrite.SetMaxOpenConns(1)
	if unclean || size <= cheapCheck+db.opts.Headroom {
		start := time.Now()
		if err := quickCheck(ctx, db.sqlWrite); err != nil {
			return err
		}
		db.log.Debug("database checked", "unclean", unclean, "took", time.Since(start))
	}
	if err := checkDocuments(ctx, db.sqlWrite, db.path); err != nil {
		return err
	}
	if err := migrate(ctx, db.sqlWrite); err != nil {
		return err
	}
	if db.writer, err = newConn(ctx, db.sqlWrite); err != nil {
		return err
	}
	db.openHeadroom()
	if db.sqlRead, err = sql.Open("sqlite", source(db.path, db.opts.BusyTimeout, false)); err != nil {
		return err
	}
	db.sqlRead.SetMaxOpenConns(readers)
	db.sqlRead.SetMaxIdleConns(readers)
	db.readers = make(chan *conn, readers)
	for range readers {
		c, err := newConn(ctx, db.sqlRead)
		if err != nil {
			return err
		}
		db.readers <- c
	}
	if err := db.loadRevision(); err != nil {
		return err
	}
	db.cache.at.Store(db.rev)
	return nil
}

// loadRevision continues the count of changes where the last process ended.
// Numbers of changes that were rolled back are used again only by the next
// process, which has an empty cache.
func (db *DB) loadRevision() error {
	rows, err := db.writer.query(`SELECT max(
		(SELECT coalesce(max(rev), 0) FROM clusters),
		(SELECT coalesce(max(rev), 0) FROM nodes),
		(SELECT coalesce(max(rev), 0) FROM machines),
		(SELECT coalesce(max(rev), 0) FROM volumes),
		(SELECT coalesce(max(rev), 0) FROM users))`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&db.rev); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Close waits for the running Updates and Views, closes the feeds, and folds
// the log into the file so that the next Open is quick. A second Close does
// nothing.
func (db *DB) Close() error {
	var err error
	db.closed.Do(func() {
		db.wmu.Lock()
		if g := db.group; g != nil { // its members wait for somebody to commit
			db.commit(g)
		}
		crashed := !db.dead.CompareAndSwap(nil, muster.Errorf(muster.EUnavailable, "the database is closed").Because(muster.ReasonServerStopping).
			WithHint("the server is stopping: try again when it runs"))
		db.wmu.Unlock()
		db.feeds.close()
		for range readers {
			c := <-db.readers
			_ = c.close() // it only read
		}
		close(db.readers) // wakes Views that came too late
		switch {
		case crashed:
		case db.free() < 4*db.opts.Headroom:
			err = db.keepLog()
		default:
			_, err = db.writer.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
		}
		db.release()
		err = explain(err)
	})
	return err
}

// release closes what is open, in whatever state Open or Close left it.
func (db *DB) release() {
	if db.writer != nil {
		_ = db.writer.close() // every commit was flushed when it was made
	}
	for _, pool := range []*sql.DB{db.sqlRead, db.sqlWrite} {
		if pool != nil {
			_ = pool.Close() // as above
		}
	}
	if db.lock != nil {
		_ = db.lock.Close() // lets go of the lock
	}
}

// usable returns why the store cannot be used, or nil.
func (db *DB) usable(ctx context.Context) error {
	if e := db.dead.Load(); e != nil {
		return e
	}
	return explain(ctx.Err())
}

// Freeze refuses every change with why from now on, until the store is opened again.
// What is on its way to the disk arrives there. Views go on.
func (db *DB) Freeze(why *muster.Error) { db.frozen.Store(why) }

// changeable returns why the store cannot be changed, or nil.
func (db *DB) changeable(ctx context.Context) error {
	if e := db.frozen.Load(); e != nil {
		return e
	}
	return db.usable(ctx)
}

// kill acts like a crash of the process: see Options.Fault.
func (db *DB) kill(cause error) *muster.Error {
	e := muster.Errorf(muster.EUnavailable, "the database has stopped").Because(muster.ReasonStoreUnusable).WithHint("restart the server").Wrap(cause)
	db.dead.CompareAndSwap(nil, e)
	return db.dead.Load()
}

func (db *DB) fault(point string) error {
	if db.opts.Fault == nil {
		return nil
	}
	return db.opts.Fault(point)
}
