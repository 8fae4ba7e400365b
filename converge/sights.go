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
	// on and off count the machines with an owner that run, and that went off by
	// themselves.
	on, off int
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

// discovered reports whether a provider ever listed the machine.
func (s *sights) discovered(id muster.MachineID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.m[id]
	return x != nil && !x.alive.IsZero()
}

func (s *sights) get(id muster.MachineID) Sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.m[id]; x != nil {
		return x.Sight
	}
	return Sight{}
}

// of is what is known of a cluster's machines, and notes that they are its own.
func (s *sights) of(id muster.ClusterID, r *clusterRecords, presence func(muster.MachineID) *Report) map[muster.MachineID]Sight {
	if len(r.sights) > len(r.machines) {
		clear(r.sights)
	}
	s.mu.Lock()
	for m := range r.machines {
		s.give(s.at(m), id)
	}
	for i := range r.nodes {
		if n := &r.nodes[i]; n.Phase == muster.NodeReady && n.Machine != "" {
			if x := s.at(n.Machine); x.owner == id && !x.Ran && x.Went.IsZero() && !x.Busy && !x.down(n.Attempt) {
				s.recount(x, func() { x.Ran = true })
			}
		}
	}
	for m := range r.machines {
		x := s.at(m)
		r.sights[m] = x.Sight
	}
	s.mu.Unlock()
	if presence == nil {
		return r.sights
	}
	for m, x := range r.sights {
		if x.Report = presence(m); x.Report != nil {
			r.sights[m] = x
		}
	}
	return r.sights
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
	s.recount(x, func() { x.Busy, x.Known, x.Ran = true, false, false })
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
	x.Known, x.State, x.Attempt, x.Why, x.SeenAt = true, o.State, o.Attempt, o.Err, now
	s.recount(x, func() {
		switch {
		case o.State == provider.StateRunning:
			x.Went = time.Time{}
		case o.State == provider.StateOff && x.Ran:
			x.Ran, x.Went = false, now
		}
	})
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
	s.give(s.at(id), c)
}

// give changes whose a machine is. What it did for another counts no more.
func (s *sights) give(x *sight, c muster.ClusterID) {
	if x.owner != c {
		s.recount(x, func() {
			if x.owner != "" {
				x.Ran, x.Went = false, time.Time{}
			}
			x.owner = c
		})
	}
}

// recount keeps the counts while f changes what a machine counts for.
func (s *sights) recount(x *sight, f func()) {
	s.count(x, -1)
	f()
	s.count(x, 1)
}

func (s *sights) count(x *sight, n int) {
	switch {
	case x.owner == "":
	case !x.Went.IsZero():
		s.off += n
	case x.Ran:
		s.on += n
	}
}

// power is how many machines with an owner went off by themselves, and how many
// run.
func (s *sights) power() (off, on int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off, s.on
}

// wentOff notes that a machine that should run was found off when this server
// looked for the first time.
func (s *sights) wentOff(id muster.MachineID, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.at(id); x.Known && x.State == provider.StateOff && x.Went.IsZero() {
		s.recount(x, func() { x.Went = at })
	}
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
