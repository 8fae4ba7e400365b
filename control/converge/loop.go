package converge

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/backoff"
)

// LoopConfig says how a Loop runs.
type LoopConfig struct {
	// Do brings one object nearer to where it should be. It returns how long
	// to wait until the object is looked at again without being woken; 0 means
	// until it is woken.
	Do    func(ctx context.Context, key string) (next time.Duration, err error)
	Clock muster.Clock
	Log   *slog.Logger
	// Workers limits how many objects run at once. 0: 256.
	Workers int
	// Deadline of one run. 0: a minute.
	Deadline time.Duration
	// BackoffMin and BackoffMax bound the wait after an error, which doubles
	// with each error in a row. 0: 100 ms and 30 s.
	BackoffMin, BackoffMax time.Duration
	// LogEvery limits how often the errors of one object are logged while they
	// go on. 0: 30 s.
	LogEvery time.Duration
	// Seed of the jitter, so that a test can be repeated.
	Seed uint64
}

// Loop runs a function over keyed objects: never twice at once for one key,
// many keys at once, again when woken or when due.
type Loop struct {
	c LoopConfig

	mu    sync.Mutex
	items map[string]*item
	queue []string // keys that are due, in order
	dues  dueHeap
	jit   *rand.Rand
	busy  int
	kick  chan struct{}
	idle  chan task // workers that have nothing to do receive from it
	wg    sync.WaitGroup
}

// item is the state of one key. It exists only while something is to be done.
type item struct {
	queued  bool
	running bool
	again   bool      // woken while running
	due     time.Time // zero: not waiting
	errors  int       // in a row
	logged  time.Time
	muted   int // errors not logged since
	lastRun time.Time
}

// NewLoop makes a Loop. Nothing runs before Run.
func NewLoop(c LoopConfig) *Loop {
	set(&c.Workers, 256)
	set(&c.Deadline, time.Minute)
	set(&c.BackoffMin, 100*time.Millisecond)
	set(&c.BackoffMax, 30*time.Second)
	set(&c.LogEvery, 30*time.Second)
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Loop{
		c: c, items: map[string]*item{}, kick: make(chan struct{}, 1), idle: make(chan task),
		jit: rand.New(rand.NewPCG(c.Seed, c.Seed^0x9e3779b97f4a7c15)),
	}
}

func set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// A run that takes longer than costly, and was woken meanwhile, waits several
// times as long as it took, so that a thousand reports do not cost a thousand
// long runs, and deciding takes a fourth of one processor at most.
const (
	costly     = 3 * time.Millisecond
	gatherFor  = 3
	mostGather = 250 * time.Millisecond
)

// Wake schedules the key to run as soon as possible: at once, or once more when it is
// running now. A key that fails is not woken sooner than its shortest backoff,
// so that a storm of wakes does not become a storm of errors.
func (l *Loop) Wake(keys ...string) {
	l.mu.Lock()
	for _, key := range keys {
		it := l.item(key)
		switch {
		case it.running:
			it.again = true
		case !it.due.IsZero() && it.again: // gathering
		case it.errors > 0:
			l.dueAt(key, it, it.lastRun.Add(l.c.BackoffMin))
		default:
			l.enqueue(key, it)
		}
	}
	l.mu.Unlock()
	l.signal()
}

// Run runs the loop until ctx ends, then waits for the runs under way.
func (l *Loop) Run(ctx context.Context) error {
	defer l.wg.Wait()
	for {
		var timer <-chan time.Time
		l.mu.Lock()
		now := l.c.Clock.Now()
		for l.dues.Len() > 0 {
			first := l.dues.first()
			it := l.items[first.key]
			if it == nil || !it.due.Equal(first.at) { // replaced since
				l.dues.pop()
				continue
			}
			if first.at.After(now) {
				timer = l.c.Clock.After(first.at.Sub(now))
				break
			}
			l.dues.pop()
			it.due = time.Time{}
			l.enqueue(first.key, it)
		}
		for len(l.queue) > 0 && l.busy < l.c.Workers {
			key := l.queue[0]
			l.queue = l.queue[1:]
			it := l.items[key]
			it.queued, it.running, it.again, it.due = false, true, false, time.Time{}
			it.lastRun = now
			l.busy++
			select {
			case l.idle <- task{key, it}:
			default:
				l.wg.Go(func() { l.work(ctx, task{key, it}) })
			}
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.kick:
		case <-timer:
		}
	}
}

// Failing reports which keys failed in their last run, and how often in a row.
func (l *Loop) Failing() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for key, it := range l.items {
		if it.errors > 0 {
			out[key] = it.errors
		}
	}
	return out
}

// task is one run of a key.
type task struct {
	key string
	it  *item
}

// work runs keys until ctx ends. A worker stays for the next key, because the
// stack of a new one has to grow as deep again, which costs as much as a short run.
func (l *Loop) work(ctx context.Context, t task) {
	for {
		l.run(ctx, t.key, t.it)
		select {
		case t = <-l.idle:
		case <-ctx.Done():
			return
		}
	}
}

func (l *Loop) run(ctx context.Context, key string, it *item) {
	runCtx, cancel := context.WithTimeout(ctx, l.c.Deadline)
	begin := time.Now()
	next, err := l.do(runCtx, key)
	took := time.Since(begin)
	cancel()
	now := l.c.Clock.Now()

	l.mu.Lock()
	l.busy--
	it.running = false
	switch {
	case ctx.Err() != nil: // ending: an error now says nothing
	case err != nil:
		it.errors++
		l.logError(key, it, err, now)
		wait := l.backoff(it.errors)
		if it.again {
			wait = l.c.BackoffMin
		}
		l.dueAt(key, it, now.Add(wait))
	default:
		if it.errors > 0 {
			l.c.Log.Info("reconcile recovered", "object", key, "failures", it.errors)
		}
		it.errors, it.muted = 0, 0
		switch {
		case it.again && took > costly:
			// It is woken faster than it runs: let the wakes gather.
			l.dueAt(key, it, now.Add(min(gatherFor*took, mostGather)))
		case it.again:
			l.enqueue(key, it)
		case next > 0:
			l.dueAt(key, it, now.Add(next))
		default:
			delete(l.items, key)
		}
	}
	l.mu.Unlock()
	l.signal()
}

// do runs the function. A defect that panics stops its own object and no other.
func (l *Loop) do(ctx context.Context, key string) (next time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.c.Log.Error("panic", "object", key, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return l.c.Do(ctx, key)
}

func (l *Loop) logError(key string, it *item, err error, now time.Time) {
	if it.errors > 1 && now.Sub(it.logged) < l.c.LogEvery {
		it.muted++
		return
	}
	l.c.Log.Warn("reconcile failed", "object", key, "error", err, "failures", it.errors, "suppressed", it.muted)
	it.logged, it.muted = now, 0
}

// backoff doubles with each error and is spread over half its length, so that
// objects that failed together do not come back together.
func (l *Loop) backoff(errors int) time.Duration {
	d := backoff.Doubled(errors, l.c.BackoffMin, l.c.BackoffMax)
	return d/2 + time.Duration(l.jit.Int64N(int64(d/2)+1))
}

func (l *Loop) item(key string) *item {
	it := l.items[key]
	if it == nil {
		it = &item{}
		l.items[key] = it
	}
	return it
}

func (l *Loop) enqueue(key string, it *item) {
	if !it.queued && !it.running {
		it.queued = true
		it.due = time.Time{}
		l.queue = append(l.queue, key)
	}
}

// dueAt schedules the key for that time, unless it is due sooner.
func (l *Loop) dueAt(key string, it *item, at time.Time) {
	if it.queued || (!it.due.IsZero() && !it.due.After(at)) {
		return
	}
	it.due = at
	l.dues.push(due{key, at})
	if l.dues.Len() > 64+4*len(l.items) { // objects that are woken often leave many behind
		l.dues.keep(func(d due) bool {
			it := l.items[d.key]
			return it != nil && it.due.Equal(d.at)
		})
	}
}

func (l *Loop) signal() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}
