package local

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
)

// exitTime is how long a killed process may take to be gone: it gives its
// memory back meanwhile.
const exitTime = 3 * time.Second

// Clean verifies that nothing of a machine is left. Its root file system was in
// memory and went with its last process.
func (p *Provider) Clean(ctx context.Context, id muster.MachineID) (muster.CleanRecord, error) {
	start := p.cfg.Clock.Now()
	c := muster.CleanRecord{Machine: id, At: start}
	m, err := p.machine(id)
	if err != nil {
		return c, err
	}
	m.op.Lock()
	defer m.op.Unlock()
	alive, err := p.groups.populated(string(id))
	if err != nil {
		return c, err
	}
	if alive {
		return c, muster.Errorf(muster.EConflict, "machine %s runs and cannot be cleaned", id).Because(muster.ReasonMachineInUse).WithHint("switch it off first")
	}
	if err := p.stop(ctx, m); err != nil {
		return c, err
	}
	given, err := p.cleanDevices(ctx, m)
	if err != nil {
		c.Steps = given
		return c, err
	}
	steps, err := p.inspect(m)
	steps = append(steps, given...)
	gone := m.console.remove()
	steps = append(steps, muster.CleanStep{What: "console", Check: "nothing of what it printed is kept", OK: gone == nil})
	c.Steps = steps
	c.Verified = err == nil
	if err != nil {
		return c, err
	}
	for _, s := range steps {
		if !s.OK {
			c.Verified = false
			return c, muster.Errorf(muster.EUnavailable, "machine %s is not clean: not true that %s", id, s.Check).Because(muster.ReasonNotClean)
		}
	}
	if err := p.forget(id); err != nil {
		return c, err
	}
	m.mu.Lock()
	m.rec, m.fault = nil, nil
	m.mu.Unlock()
	if m.gone {
		p.mu.Lock()
		delete(p.machines, id)
		p.mu.Unlock()
	}
	p.releaseImages()
	c.Took = muster.Duration(p.cfg.Clock.Now().Sub(start))
	return c, nil
}

// lastProcess finds a process of the machine whose IDs begin at base, or
// returns 0. A process leaves its control group a moment before it leaves the
// list of processes, so one that is there gets time to go.
func (p *Provider) lastProcess(base int) (int, error) {
	for deadline := time.Now().Add(exitTime); ; time.Sleep(5 * time.Millisecond) {
		pid, err := processOf(p.cfg.name(), base, base+idRange)
		if pid == 0 || err != nil || time.Now().After(deadline) {
			return pid, err
		}
	}
}

// inspect looks for anything that a machine may have left.
func (p *Provider) inspect(m *machine) ([]muster.CleanStep, error) {
	var steps []muster.CleanStep
	add := func(what, check string, ok bool) {
		steps = append(steps, muster.CleanStep{What: what, Check: check, OK: ok})
	}
	groups, err := p.groups.list()
	if err != nil {
		return steps, err
	}
	left := false
	for _, g := range groups {
		left = left || g == string(m.id)
	}
	add("processes", "its control groups are empty and removed", !left)
	base := p.cfg.idBase(m.index)
	pid, err := p.lastProcess(base)
	if err != nil {
		return steps, err
	}
	add("users", fmt.Sprintf("no process has an ID from %d to %d", base, base+idRange-1), pid == 0)
	add("root file system", "it was in memory, and the process that held it is gone", m.firstGone())
	links, err := p.rack.Machines()
	if err != nil {
		return steps, err
	}
	add("network", "no link of it is left", !links[m.index])
	return steps, nil
}
