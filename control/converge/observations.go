package converge

import (
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// observations is what is known of machines besides their records. It is lost with
// the process and found again by observing.
type observations struct {
	mu sync.Mutex
	m  map[muster.MachineID]*observation
	// on and off count the machines with an owner that run, and that went off by
	// themselves.
	on, off int
}

type observation struct {
	Observation
	// epoch grows with everything that makes older observations worthless.
	epoch int64
	owner muster.ClusterID
	alive time.Time // last discovered
}

func newObservations() *observations { return &observations{m: map[muster.MachineID]*observation{}} }

func (s *observations) at(id muster.MachineID) *observation {
	x := s.m[id]
	if x == nil {
		x = &observation{}
		s.m[id] = x
	}
	return x
}

// discovered reports whether a provider ever listed the machine.
func (s *observations) discovered(id muster.MachineID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.m[id]
	return x != nil && !x.alive.IsZero()
}

func (s *observations) get(id muster.MachineID) Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.m[id]; x != nil {
		return x.Observation
	}
	return Observation{}
}

// of is what is known of a cluster's machines, and notes that they are its own.
func (s *observations) of(id muster.ClusterID, nodes []muster.Node, machines map[muster.MachineID]muster.Machine, presence func(muster.MachineID) *Report) map[muster.MachineID]Observation {
	out := make(map[muster.MachineID]Observation, len(machines))
	s.mu.Lock()
	for m := range machines {
		s.give(s.at(m), id)
	}
	for i := range nodes {
		if n := &nodes[i]; n.Phase == muster.NodeReady && n.Machine != "" {
			if x := s.at(n.Machine); x.owner == id && !x.WasRunning && x.StoppedAt.IsZero() && !x.Busy && !x.down(n.Attempt) {
				s.recount(x, func() { x.WasRunning = true })
			}
		}
	}
	for m := range machines {
		out[m] = s.at(m).Observation
	}
	s.mu.Unlock()
	if presence == nil {
		return out
	}
	for m, x := range out {
		if x.Report = presence(m); x.Report != nil {
			out[m] = x
		}
	}
	return out
}

// frozen reports whether a machine was last seen to stand still.
func (s *observations) frozen(id muster.MachineID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.m[id]
	return x != nil && x.Frozen
}

// change changes what is known of a machine.
func (s *observations) change(id muster.MachineID, f func(*Observation)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.at(id).Observation)
}

// begin starts a call for the machine; false when one is under way.
func (s *observations) begin(id muster.MachineID, f func(*Observation)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(id)
	if x.Busy {
		return false
	}
	s.recount(x, func() { x.Busy, x.Known, x.WasRunning = true, false, false })
	x.epoch++
	if f != nil {
		f(&x.Observation)
	}
	return true
}

// end ends the call: what was observed before is worthless.
func (s *observations) end(id muster.MachineID, f func(*Observation)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(id)
	x.Busy, x.Known = false, false
	x.epoch++
	f(&x.Observation)
}

// ask notes that an observation begins and returns the machine's epoch.
func (s *observations) ask(id muster.MachineID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(id)
	x.Asked = true
	return x.epoch
}

// saw files an observation, unless a call began or ended since it was asked
// for. It reports whether the observation tells something new.
func (s *observations) saw(id muster.MachineID, epoch int64, o provider.Observation, now time.Time) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(id)
	x.Asked = false
	if x.epoch != epoch || x.Busy {
		return true // somebody waits for the truth and must ask again
	}
	news = !x.Known || x.State != o.State || x.Attempt != o.Attempt || x.Frozen != o.Frozen || !sameVM(x.VM, o.VM)
	x.Known, x.State, x.Attempt, x.Frozen, x.VM, x.Why, x.SeenAt = true, o.State, o.Attempt, o.Frozen, o.VM, o.Err, now
	s.recount(x, func() {
		switch {
		case o.State == provider.StateRunning:
			x.StoppedAt = time.Time{}
		case o.State == provider.StateOff && x.WasRunning:
			x.WasRunning, x.StoppedAt = false, now
		}
	})
	if o.State == provider.StateOff {
		x.OffTries = 0
	}
	return news
}

// sameVM reports whether nothing was read back since.
func sameVM(a, b *muster.VMFacts) bool {
	return a == b || a != nil && b != nil && a.At.Equal(b.At)
}

// unasked notes that an observation failed.
func (s *observations) unasked(id muster.MachineID) {
	s.change(id, func(x *Observation) { x.Asked = false })
}

func (s *observations) own(id muster.MachineID, c muster.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.give(s.at(id), c)
}

// give changes whose a machine is. What it did for another counts no more.
func (s *observations) give(x *observation, c muster.ClusterID) {
	if x.owner != c {
		s.recount(x, func() {
			if x.owner != "" {
				x.WasRunning, x.StoppedAt = false, time.Time{}
			}
			x.owner = c
		})
	}
}

// recount keeps the counts while f changes what a machine counts for.
func (s *observations) recount(x *observation, f func()) {
	s.count(x, -1)
	f()
	s.count(x, 1)
}

func (s *observations) count(x *observation, n int) {
	switch {
	case x.owner == "":
	case !x.StoppedAt.IsZero():
		s.off += n
	case x.WasRunning:
		s.on += n
	}
}

// power is how many machines with an owner went off by themselves, and how many
// run.
func (s *observations) power() (off, on int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off, s.on
}

// wentOff notes that a machine that should run was found off when this server
// looked for the first time.
func (s *observations) wentOff(id muster.MachineID, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.at(id); x.Known && x.State == provider.StateOff && x.StoppedAt.IsZero() {
		s.recount(x, func() { x.StoppedAt = at })
	}
}

func (s *observations) owner(id muster.MachineID) muster.ClusterID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.m[id]; x != nil {
		return x.owner
	}
	return ""
}

func (s *observations) answered(id muster.MachineID, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(id).alive = at
}

func (s *observations) lastAnswer(id muster.MachineID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.m[id]; x != nil {
		return x.alive
	}
	return time.Time{}
}
