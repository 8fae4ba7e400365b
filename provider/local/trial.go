package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local/network"
	"golang.org/x/sys/unix"
)

// trial is the order to a first process to try its machine instead of becoming
// an image's init.
type trial struct {
	CPUs []int `json:"cpus"` // each of them computes
	// Compute is how long.
	Compute muster.Duration `json:"compute_seconds"`
	Memory  int64           `json:"memory_bytes"` // bytes to write and read back
	Disk    int64           `json:"disk_bytes"`   // bytes to write and read back
	Room    int64           `json:"room_bytes"`   // bytes of the file system for that
	Server  string          `json:"server"`       // who must answer over the management link: host:port
	Frames  int             `json:"frames"`       // to send over the message link
}

const (
	trialTime    = 15 * time.Second // all of it, at most
	trialCompute = 300 * time.Millisecond
	trialMemory  = 256 << 20
	trialDisk    = 32 << 20
	trialFrames  = 64
)

// Test starts the machine by itself, in the groups and with the links that it
// always has, but attached to no cluster. The program that tries it is this
// one; nothing of any image runs.
func (p *Provider) Test(ctx context.Context, id muster.MachineID, effort int) (muster.TestRecord, error) {
	r := muster.TestRecord{Machine: id, At: p.cfg.Clock.Now()}
	m, err := p.machine(id)
	if err != nil {
		return r, err
	}
	if err := m.lock(ctx); err != nil {
		return r, err
	}
	defer m.op.Unlock()
	alive, err := p.groups.populated(string(id))
	if err != nil {
		return r, err
	}
	if alive {
		return r, muster.Errorf(muster.EConflict, "machine %s is running", id).Because(muster.ReasonMachineInUse).WithHint("only a machine that is off can be tested")
	}
	begin := time.Now()
	ctx, done := m.abortable(ctx)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, trialTime*time.Duration(max(effort, 1)))
	defer cancel()
	r.Steps, err = p.try(ctx, m, effort)
	after, left := p.endTrial(context.WithoutCancel(ctx), m)
	r.Steps = append(r.Steps, after...)
	r.Took = muster.Duration(time.Since(begin))
	if left != nil {
		return r, left
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return r, muster.Errorf(muster.EUnavailable, "the test of machine %s was broken off", id).Wrap(ctx.Err())
	}
	if err != nil {
		r.Steps = append(r.Steps, muster.CleanStep{What: "start", Check: err.Error()})
	}
	r.Passed = true
	for _, s := range r.Steps {
		r.Passed = r.Passed && s.OK
	}
	return r, nil
}

// try starts the trial and collects what it says. An error means that it did
// not come to its end, which speaks against the machine.
func (p *Provider) try(ctx context.Context, m *machine, effort int) ([]muster.CleanStep, error) {
	if err := p.stop(ctx, m); err != nil {
		return nil, err
	}
	rec := &record{Machine: m.id, Index: m.index, Trial: true, Since: p.cfg.Clock.Now()}
	if err := p.save(rec); err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.rec, m.ended = rec, false
	m.mu.Unlock()
	proc, err := p.spawn(m, part{m.facts.CPUs, m.facts.Memory})
	if err != nil {
		return nil, err
	}
	defer proc.end()
	proc.leave()
	if err := p.equipTrial(m, rec, proc); err != nil {
		return nil, err
	}
	cfg := p.trialConfig(m, effort)
	if p.tamper != nil {
		p.tamper(m.id, cfg.Trial)
	}
	steps, err := proc.try(ctx, cfg)
	if err != nil {
		return steps, err
	}
	if p.tried != nil {
		p.tried()
	}
	return append(steps, p.frames(m.index)...), nil
}

// equipTrial gives the process its groups and links.
func (p *Provider) equipTrial(m *machine, rec *record, proc *process) error {
	if err := m.runs(rec, proc.pid()); err != nil {
		return err
	}
	if err := p.save(rec); err != nil {
		return err
	}
	if err := p.groups.enter(string(m.id), proc.pid()); err != nil {
		return err
	}
	if err := proc.raise(); err != nil {
		return err
	}
	ns, err := proc.namespace("net")
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	if err := p.rack.AddMachine(m.index, ns); err != nil {
		return err
	}
	return p.rack.AddMessageLink(m.index, ns)
}

func (p *Provider) trialConfig(m *machine, effort int) *initConfig {
	disk := min(m.facts.Disk/4, m.facts.Memory/8, trialDisk)
	return &initConfig{
		Hostname: "test", Open: p.cfg.Open, Links: []initLink{
			{Name: network.ManagementLink, Address: hostPrefix(m.addr), Gateway: network.Gateway()},
			{Name: network.MessageLink, Address: trialAddress()},
		},
		Trial: &trial{
			CPUs: m.facts.CPUs, Compute: muster.Duration(trialCompute * time.Duration(max(effort, 1))), Memory: min(m.facts.Memory/2, min(m.facts.Memory/4, trialMemory)*int64(max(effort, 1))),
			Disk: disk, Room: disk + 1<<20, Frames: trialFrames,
			Server: fmt.Sprintf("%s:%d", network.Gateway(), network.AgentPort),
		},
	}
}

// frames compares what left the machine over its message link with what came.
func (p *Provider) frames(index int) []muster.CleanStep {
	s := muster.CleanStep{What: "message link", Check: fmt.Sprintf("all of %d frames that it sent arrived", trialFrames)}
	for range 200 { // it may take a moment until all have come
		port, err := p.rack.PortState(index, network.MessagePort)
		if s.OK = err == nil && port.Up && port.Received >= trialFrames; s.OK || err != nil || !port.Up {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return []muster.CleanStep{s}
}

// endTrial switches the machine off again and verifies that it is.
func (p *Provider) endTrial(ctx context.Context, m *machine) ([]muster.CleanStep, error) {
	if err := p.stop(ctx, m); err != nil {
		return nil, err
	}
	m.mu.Lock()
	if m.rec != nil {
		m.rec.PID, m.ended = 0, true
	}
	m.mu.Unlock()
	steps, err := p.inspect(m)
	for i := range steps {
		steps[i].What = "off again: " + steps[i].What
	}
	return steps, err
}

// try hands the order over and reads one step a line until the process ends.
func (p *process) try(ctx context.Context, cfg *initConfig) ([]muster.CleanStep, error) {
	stop := context.AfterFunc(ctx, func() { _ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0) })
	defer stop()
	if err := sendInit(p.sock, cfg, nil); err != nil {
		return nil, err
	}
	var steps []muster.CleanStep
	in := bufio.NewScanner(p.sock)
	in.Buffer(nil, 1<<16)
	last := "it started"
	for in.Scan() {
		var t trialReport
		if err := json.Unmarshal(in.Bytes(), &t); err != nil {
			return steps, err
		}
		switch {
		case t.Done:
			return steps, nil
		case t.Error != "":
			return steps, fmt.Errorf("%s: %s", t.Step, t.Error)
		case t.What == "":
			last = t.Step
		default:
			last = "it had tried its " + t.What
			steps = append(steps, muster.CleanStep{What: t.What, Check: t.Check, OK: t.OK})
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return steps, fmt.Errorf("it did not end within %s; the last thing known is that %s", trialTime, last)
	case ctx.Err() != nil:
		return steps, ctx.Err()
	}
	return steps, fmt.Errorf("the program that tries it was killed after %s", last)
}
