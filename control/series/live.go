package series

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	// slot is the length of the finest span in seconds.
	slot = 10
	// maxGap is the longest silence over which a counter makes a rate.
	maxGap = 3 * time.Minute
	// minGap is the shortest time over which one is made; a sample that comes
	// sooner is told by the next one.
	minGap = 900 * time.Millisecond
	// idle is how long an entry is remembered that says nothing.
	idle = 10 * time.Minute
	// maxLive bounds the entries that are remembered.
	maxLive = 200_000
	shards  = 32
	// keepClosed is how much room a shard keeps for the next slots.
	keepClosed = 1024
	// lately is how old a sample may be to count for the present.
	lately = 45 * time.Second
)

type key struct{ owner, name string }

// live is what was measured and not written yet.
type live struct {
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu     sync.Mutex
	m      map[key]*state
	closed []timed // of slots that were left
	lost   int64
}

// state of one entry: what the last sample said, and the open slot.
type state struct {
	machine string
	boot    string
	last    [columns]float64 // counters as they were
	at      time.Time        // of the last sample; zero: none to compare with
	slot    int64            // start of the open slot, seconds since 1970
	open    cell
	busy    float64 // cores, by the last sample
}

// timed is an entry with its owner and time.
type timed struct {
	owner string
	at    int64
	entry
}

func newLive() *live {
	l := &live{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].m = map[key]*state{}
	}
	return l
}

func (l *live) shard(k key) *shard {
	return &l.shards[maphash.Comparable(l.seed, k)%shards]
}

// gauges takes figures that hold now, for a span of seconds.
func (l *live) gauges(now time.Time, k key, seconds float64, v *[columns]float64) {
	s := l.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state(k)
	if st == nil {
		return
	}
	s.turn(k, st, now)
	st.at = now
	st.open.add(seconds, true, v)
}

// node takes a sample of a node: its counters become rates.
func (l *live) node(now time.Time, k key, machine, boot string, v *[columns]float64) {
	s := l.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state(k)
	if st == nil {
		return
	}
	var passed time.Duration
	if !st.at.IsZero() && st.machine == machine && (boot == "" || st.boot == boot) {
		passed = now.Sub(st.at)
		if passed >= 0 && passed < minGap {
			return
		}
	}
	rates := passed > 0 && passed <= maxGap
	for c := firstRate; c <= lastRate && rates; c++ {
		rates = v[c] >= st.last[c] // else it began anew
	}
	seconds := float64(slot)
	if passed > 0 && passed <= maxGap {
		seconds = passed.Seconds()
	}
	counters := *v
	for c := firstRate; c <= lastRate; c++ {
		v[c] = (v[c] - st.last[c]) / seconds
	}
	s.turn(k, st, now)
	st.machine, st.at, st.last, st.busy = machine, now, counters, sane(v[CPUUser])+sane(v[CPUSystem])
	if boot != "" {
		st.boot = boot
	}
	st.open.add(seconds, rates, v)
}

// state of an entry; nil when there are too many.
func (s *shard) state(k key) *state {
	st := s.m[k]
	if st == nil {
		if len(s.m) >= maxLive/shards {
			s.lost++
			return nil
		}
		st = &state{}
		s.m[k] = st
	}
	return st
}

// turn closes the open slot when now is in another.
func (s *shard) turn(k key, st *state, now time.Time) {
	at := now.Unix() - now.Unix()%slot
	if at != st.slot {
		s.shut(k, st)
		st.slot = at
	}
}

func (s *shard) shut(k key, st *state) {
	if st.open.empty() {
		return
	}
	if len(s.closed) >= 4*maxLive/shards {
		s.lost++
	} else {
		s.closed = append(s.closed, timed{k.owner, st.slot, entry{k.name, st.machine, st.open}})
	}
	st.open = cell{}
}

// take returns what is closed, and what is open in slots other than now's;
// with all, everything.
func (l *live) take(now time.Time, all bool) (list []timed, lost int64) {
	present := now.Unix() - now.Unix()%slot
	n := 0
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for k, st := range s.m {
			if all || st.slot != present {
				s.shut(k, st)
			}
			if away := now.Sub(st.at); away > idle || away < -idle {
				delete(s.m, k)
			}
		}
		n += len(s.closed)
		s.mu.Unlock()
	}
	list = make([]timed, 0, n)
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		list = append(list, s.closed...)
		if clear(s.closed); cap(s.closed) > keepClosed {
			s.closed = nil
		}
		s.closed = s.closed[:0]
		lost += s.lost
		s.lost = 0
		s.mu.Unlock()
	}
	return list, lost
}

// peek shows what an owner has that was not taken yet.
func (l *live) peek(owner string, f func(at int64, e *entry)) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for j := range s.closed {
			if s.closed[j].owner == owner {
				f(s.closed[j].at, &s.closed[j].entry)
			}
		}
		for k, st := range s.m {
			if k.owner == owner && !st.open.empty() {
				f(st.slot, &entry{k.name, st.machine, st.open})
			}
		}
		s.mu.Unlock()
	}
}

// Present sums what the nodes of one cluster use now.
type Present struct {
	Nodes       int // that spoke lately
	CoresBusy   float64
	MemoryUsed  float64 // bytes
	MemoryTotal float64 // bytes
}

// present sums by owner what nodes that spoke lately said last.
func (l *live) present(now time.Time) map[string]Present {
	out := map[string]Present{}
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for k, st := range s.m {
			if k.name[0] == '~' || now.Sub(st.at) >= lately {
				continue
			}
			p := out[k.owner]
			p.Nodes++
			p.CoresBusy += st.busy
			p.MemoryUsed += sane(st.last[MemoryUsed])
			p.MemoryTotal += sane(st.last[MemoryTotal])
			out[k.owner] = p
		}
		s.mu.Unlock()
	}
	return out
}
