package agent

import (
	"sync"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// secondsFor is how long processors are sampled after the server last wanted it: one
// that is gone must not have nodes sampled for ever.
const secondsFor = 2 * time.Minute

// seconds samples how busy the processors are in each second, while the node is being
// measured.
type seconds struct {
	mu    sync.Mutex
	until time.Time
	busy  bool // a goroutine samples
	end   time.Time
	kept  wire.UsageSeconds
}

// sampleSeconds begins, goes on or ends sampling, as the server wants.
func (a *agent) sampleSeconds(wanted bool) {
	if a.Seconds == nil {
		return
	}
	s := &a.seconds
	s.mu.Lock()
	defer s.mu.Unlock()
	if !wanted {
		s.until = time.Time{}
		return
	}
	a.mu.Lock()
	life := secondsFor + 2*a.interval
	a.mu.Unlock()
	s.until = a.Clock.Now().Add(life)
	if !s.busy {
		s.busy = true
		s.kept = wire.UsageSeconds{}
		a.jobs.Go(a.takeSeconds)
	}
}

// takeSeconds samples until nobody wants it any more.
func (a *agent) takeSeconds() {
	s := &a.seconds
	sample := a.Seconds()
	last := a.Clock.Now()
	for a.sleep(time.Second) {
		now := a.Clock.Now()
		user, system, wait, ok := sample(now)
		s.mu.Lock()
		if !now.Before(s.until) {
			s.busy = false
			s.mu.Unlock()
			return
		}
		if ok { // of what took longer, each second is like the mean
			n := max(1, min(int(now.Sub(last).Seconds()+0.5), wire.MaxUsageSeconds))
			for range n {
				s.kept.User, s.kept.System, s.kept.Wait = append(s.kept.User, user), append(s.kept.System, system), append(s.kept.Wait, wait)
			}
			last, s.end = now, now
			s.drop(len(s.kept.User) - wire.MaxUsageSeconds)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.busy = false
	s.mu.Unlock()
}

// drop forgets the oldest n.
func (s *seconds) drop(n int) {
	if n = min(n, len(s.kept.User)); n <= 0 {
		return
	}
	k := &s.kept
	k.User, k.System, k.Wait = cut(k.User, n), cut(k.System, n), cut(k.Wait, n)
}

// cut moves the rest to the front: what was sampled before is not kept alive by it.
func cut(list []float64, n int) []float64 { return list[:copy(list, list[n:])] }

// take returns what a report is to tell; nil: nothing.
func (s *seconds) take(now time.Time) *wire.UsageSeconds {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept.User) == 0 {
		return nil
	}
	clone := func(list []float64) []float64 { return append([]float64{}, list...) }
	return &wire.UsageSeconds{Ago: max(0, now.Sub(s.end).Seconds()), User: clone(s.kept.User), System: clone(s.kept.System), Wait: clone(s.kept.Wait)}
}

// settle forgets what has arrived: all but what was sampled since.
func (s *seconds) settle(told *wire.UsageSeconds, at time.Time) {
	if told == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	end := at.Add(-time.Duration(told.Ago * float64(time.Second)))
	fresh := int(s.end.Sub(end).Seconds() + 0.5)
	s.drop(len(s.kept.User) - max(0, fresh))
}
