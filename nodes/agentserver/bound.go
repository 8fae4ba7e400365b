package agentserver

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// slack is what a figure of processors may be above what the machine has.
const slack = 1.05

// possible reports whether a machine, as its agent described it, can be as busy
// as a sample says. One that cannot is a gap, not a spike.
func possible(f *muster.Facts, u wire.Usage) bool {
	if f == nil || max(f.Cores, f.Threads) <= 0 {
		return true // nobody knows
	}
	return u.CPUUser+u.CPUSystem <= float64(max(f.Cores, f.Threads))*slack
}

// possibleSeconds is the same of each second. Of a second more is possible than of three:
// the kernel counts in ticks.
func possibleSeconds(f *muster.Facts, u *wire.UsageSeconds) bool {
	if u == nil || f == nil || max(f.Cores, f.Threads) <= 0 {
		return u != nil
	}
	most := float64(max(f.Cores, f.Threads))*slack + 0.05
	for i := range u.User {
		if u.User[i]+u.System[i] > most {
			return false
		}
	}
	return true
}

// facts are what a machine's agent said of it; nil when it has not.
func (p *presence) facts(id muster.MachineID) *muster.Facts {
	p.mu.RLock()
	e := p.m[id]
	p.mu.RUnlock()
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last.Report.Facts
}

func firstOf(a, b *muster.Facts) *muster.Facts {
	if a != nil {
		return a
	}
	return b
}
