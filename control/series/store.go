package series

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
)

// Options of a Store. Zero values are the defaults.
type Options struct {
	Clock muster.Clock
	Log   *slog.Logger
	// MaxBytes bounds the file. What it pushes out is the oldest of the finest
	// first. 0: 1 GiB; at least 1 MiB.
	MaxBytes int64
	// Raw, Minutes and Hours are how long spans of ten seconds, five minutes
	// and an hour are kept. 0: 6 hours, 14 days, 400 days.
	Raw, Minutes, Hours time.Duration
	// Census tells, about every ten seconds, what is counted and not reported.
	// It runs beside the reports. Nil: nothing.
	Census func(ctx context.Context) ([]Count, error)
}

// Count is one entry of a census.
type Count struct {
	Owner  string // cluster; "" for the site
	Name   string // an Entry name
	Values []float64
}

// Stats tell how a store is doing, since it was opened.
type Stats struct {
	Samples int64 // taken
	Dropped int64 // that could not be written
	Blocks  int64 // written
	Bytes   int64 // in use in the file
	Bound   int64 // of the file
	// Failing is the trouble of the last writing; nil when it went well.
	Failing error
	Waiting int64 // entries that wait to be written
}

// Store keeps samples. It is safe for concurrent use.
type Store struct {
	path string
	o    Options
	live *live

	mu      sync.RWMutex // guards file
	file    *file
	writing sync.RWMutex // held for reading while what is written must not move
	pack    packer
	unpack  unpacker
	waiting []timed
	tended  time.Time // when old spans were last looked at
	doubt   int       // looks for which nothing is too old: the clock jumped

	samples, dropped, blocks, bytes, behind atomic.Int64
	failing                                 atomic.Pointer[error]
	complained                              time.Time
}

// maxWaiting bounds the entries that wait for a disk: ten minutes of 10,000
// nodes.
const maxWaiting = 200_000

// Open opens the store in the file path. A file that cannot be used is set
// aside, or left and tried again with every writing: samples are no reason to
// stop a server.
func Open(ctx context.Context, path string, o Options) *Store {
	if o.Clock == nil {
		o.Clock = muster.SystemClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 1 << 30
	}
	o.MaxBytes = max(o.MaxBytes, 1<<20)
	def := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	def(&o.Raw, 6*time.Hour)
	def(&o.Minutes, 14*24*time.Hour)
	def(&o.Hours, 400*24*time.Hour)
	s := &Store{path: path, o: o, live: newLive()}
	s.writing.Lock()
	defer s.writing.Unlock()
	if _, err := s.opened(ctx); err != nil {
		s.trouble(err)
	}
	return s
}

// opened is the file, opened if it is not. The caller holds s.writing.
func (s *Store) opened(ctx context.Context) (*file, error) {
	s.mu.RLock()
	f := s.file
	s.mu.RUnlock()
	if f != nil {
		return f, nil
	}
	f, err := openFile(ctx, s.path, s.o.MaxBytes)
	if err != nil && isDamage(err) {
		if f, err = s.anew(ctx, err); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.file = f
	s.mu.Unlock()
	return f, nil
}

// anew sets a bad file aside and makes a new one.
func (s *Store) anew(ctx context.Context, why error) (*file, error) {
	aside, err := setAside(s.path, s.o.Clock.Now())
	if err != nil {
		return nil, errors.Join(why, err)
	}
	s.o.Log.Warn("sample file unusable, starting a new one", "file", s.path, "aside", aside, "error", why)
	return openFile(ctx, s.path, s.o.MaxBytes)
}

// damaged closes a file that proved to be bad: the next writing makes another.
func (s *Store) damaged(f *file, why error) {
	s.mu.Lock()
	if s.file == f {
		s.file = nil
	}
	s.mu.Unlock()
	_ = f.close()
	aside, err := setAside(s.path, s.o.Clock.Now())
	s.o.Log.Warn("sample file corrupt, moved aside", "file", s.path, "aside", aside, "error", errors.Join(why, err))
}

// trouble remembers an error and complains of it once a minute.
func (s *Store) trouble(err error) {
	if err == nil {
		s.failing.Store(nil)
		return
	}
	s.failing.Store(&err)
	if now := s.o.Clock.Now(); now.Sub(s.complained) > time.Minute || now.Before(s.complained) {
		s.complained = now
		s.o.Log.Warn("saving samples failed", "file", s.path, "error", err)
	}
}

// Run writes what comes until ctx ends, and then the rest.
func (s *Store) Run(ctx context.Context) error {
	const every = 5 * time.Second
	var census int64
	for {
		select {
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_ = s.write(end, true) // told in the log
			return nil
		case <-s.o.Clock.After(every):
		}
		if at := s.o.Clock.Now().Unix() / slot; at != census {
			census = at
			s.count(ctx)
		}
		_ = s.write(ctx, false) // told by Stats and in the log
	}
}

// count takes a census.
func (s *Store) count(ctx context.Context) {
	if s.o.Census == nil {
		return
	}
	list, err := s.o.Census(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.o.Log.Debug("metrics snapshot failed", "error", err)
		}
		return
	}
	now := s.o.Clock.Now()
	busy := s.live.present(now)
	all := 0.0
	for _, p := range busy {
		all += p.CoresBusy
	}
	for _, c := range list {
		var v [columns]float64
		copy(v[:], c.Values)
		if c.Name == "" || c.Name[0] != '~' {
			continue
		}
		if c.Name == EntryCores {
			v[CoresBusy] = busy[c.Owner].CoresBusy
			if c.Owner == "" {
				v[CoresBusy] = all
			}
		}
		s.live.gauges(now, key{c.Owner, c.Name}, slot, &v)
	}
}

// Present sums what nodes said lately, by cluster.
func (s *Store) Present() map[string]Present { return s.live.present(s.o.Clock.Now()) }

// Stats returns present figures.
func (s *Store) Stats() Stats {
	out := Stats{Samples: s.samples.Load(), Dropped: s.dropped.Load(), Blocks: s.blocks.Load(), Bytes: s.bytes.Load(), Bound: s.o.MaxBytes, Waiting: s.behind.Load()}
	if err := s.failing.Load(); err != nil {
		out.Failing = *err
	}
	return out
}

// Close writes the rest and lets go of the file.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.write(ctx, true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		err = errors.Join(err, s.file.close())
		s.file = nil
	}
	return err
}
