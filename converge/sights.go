package converge

import (
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// sights is what is known of machines besides their records. It is lost with
// the process and found again by observing.
type sights struct {
	mu sync.Mutex
	m  map[muster.MachineID]*sight
}

type sight struct {
	Sight
	// epoch grows with everything that makes older observations worthless.
	epoch int64
	owner muster.ClusterID
	alive time.Time // last discovered
}

func newSights() *sights { return &sights{m: map[muster.MachineID]*sight{}} }

func (s *sights) at(id muster.MachineID) *sight {
	x := s.m[id]
	if x == nil {
		x = &sight{}
		s.m[id] = x
	}
	return x
}

func (s *sights) get(id muster.MachineID) Sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.m[id]; x != nil {
		return x.Sight
	}
	return Sight{}
}

// change changes what is known of a machine.
func (s *sights) change(id muster.MachineID, f func(*Sight)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.at(id).Sight)
}

// begin starts a call for the machine; false when one is under way.
func (s *sights) begin(id muster.MachineID, f func(*Sight)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(id)
	if x.Busy {
		return false
	}
	x.Busy, x.Known = true, false
	x.epoch++
	if f != nil {
		f(&x.Sight)
	}
	return true
}

// end ends the call: what was observed before is worthless.
func (s *sights) end(id muster.MachineID, f func(*Sight)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(id)
	x.Busy, x.Known = false, false
	x.epoch++
	f(&x.Sight)
}

// ask notes that an observation begins and returns the machine's epoch.
func (s *sights) ask(id muster.MachineID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(id)
	x.Asked = true
	return x.epoch
}

// saw files an observation, unless a call began or ended since it was asked
// for. It reports whether the observation tells something new.
func (s *sights) saw(id muster.MachineID, epoch int64, o provider.Seen, now time.Time) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(id)
	x.Asked = false
	if x.epoch != epoch || x.Busy {
		return true // somebody waits for the truth and must ask again
	}
	news = !x.Known || x.State != o.State || x.Attempt != o.Attempt
	x.Known, x.State, x.Attempt, x.SeenAt = true, o.State, o.Attempt, now
	if o.State == provider.StateOff {
		x.OffTries = 0
	}
	return news
}

// unasked notes that an observation failed.
func (s *sights) unasked(id muster.MachineID) {
	s.change(id, func(x *Sight) { x.Asked = false })
}

func (s *sights) own(id muster.MachineID, c muster.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(id).owner = c
}

func (s *sights) owner(id muster.MachineID) muster.ClusterID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.m[id]; x != nil {
		return x.owner
	}
	return ""
}

func (s *sights) answered(id muster.MachineID, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(id).alive = at
}

func (s *sights) lastAnswer(id muster.MachineID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.m[id]; x != nil {
		return x.alive
	}
	return time.Time{}
}
