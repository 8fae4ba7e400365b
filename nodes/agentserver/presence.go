package agentserver

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// Samples of a node's usage are remembered for usageFor, between leastUsage and
// mostUsage of them: what is older is in the store of series.
const (
	usageFor   = 3 * time.Minute
	leastUsage = 6
	mostUsage  = 120
)

// presence is what agents said last. It is memory only: after a restart the
// agents come back by themselves and say it again.
type presence struct {
	mu sync.RWMutex
	m  map[muster.MachineID]*entry
}

type entry struct {
	mu     sync.Mutex
	last   LastReport
	bootID string       // of the attempt's first report
	usage  []wire.Usage // oldest first
}

// LastReport is the newest word of a machine's agent: its reports since it
// joined, merged.
type LastReport struct {
	Cluster  muster.ClusterID // for which it spoke: machines change hands
	Node     string
	Report   wire.Report
	At       time.Time
	Interval time.Duration // in which it should report again
	Rebooted bool          // the boot ID changed within the attempt
}

func newPresence() *presence { return &presence{m: map[muster.MachineID]*entry{}} }

func (p *presence) entry(id muster.MachineID) *entry {
	p.mu.RLock()
	e := p.m[id]
	p.mu.RUnlock()
	if e != nil {
		return e
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e = p.m[id]; e == nil {
		e = &entry{}
		p.m[id] = e
	}
	return e
}

func (p *presence) count() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.m)
}

func (p *presence) forget(id muster.MachineID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.m, id)
}

// begin notes that the agent of an attempt has joined.
func (p *presence) begin(id pki.NodeIdentity, now time.Time, interval time.Duration) {
	e := p.entry(id.Machine)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reset(id)
	e.last.At, e.last.Interval = now, interval
}

// is reports whether what was heard is of this attempt of this node.
func (e *entry) is(id pki.NodeIdentity) bool {
	return e.last.Cluster == id.Cluster && e.last.Node == id.Node && e.last.Report.Attempt == id.Attempt
}

func (e *entry) reset(id pki.NodeIdentity) {
	e.last = LastReport{Cluster: id.Cluster, Node: id.Node, Report: wire.Report{Attempt: id.Attempt}}
	e.bootID = ""
	e.usage = nil
}

// heard files a report. It reports whether it says something that a cluster may
// be waiting for, and which stages are new.
func (p *presence) heard(id pki.NodeIdentity, q wire.Report, now time.Time, interval time.Duration) (news bool, stages []muster.Stage) {
	e := p.entry(id.Machine)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.is(id) {
		e.reset(id)
		news = true
	}
	r := &e.last.Report
	news = news || q.State != r.State
	r.State, r.Generation, r.Probe = q.State, q.Generation, q.Probe
	if e.last.At.Add(3 * e.last.Interval).Before(now) {
		news = true // it was silent
	}
	e.last.At, e.last.Interval = now, interval
	if q.BootID != "" {
		if e.bootID == "" {
			e.bootID = q.BootID
		}
		if q.BootID != e.bootID && !e.last.Rebooted {
			e.last.Rebooted, news = true, true
		}
		r.BootID = q.BootID
	}
	for _, st := range q.Stages {
		if len(r.Stages) < maxStages && !slices.ContainsFunc(r.Stages, func(x muster.Stage) bool { return x.Name == st.Name }) {
			stages = append(stages, st)
		}
	}
	if len(stages) > 0 { // never in place: readers hold the old one
		r.Stages = append(slices.Clip(r.Stages), stages...)
	}
	if q.Facts != nil {
		r.Facts = q.Facts
	}
	if q.Topology != nil {
		r.Topology = q.Topology
	}
	if checks := mergeChecks(r.Checks, q.Checks); !slices.Equal(checks, r.Checks) {
		news, r.Checks = true, checks
	}
	if q.Scheduler != nil {
		news = news || r.Scheduler == nil || r.Scheduler.Up != q.Scheduler.Up || !maps.Equal(r.Scheduler.Nodes, q.Scheduler.Nodes) ||
			!maps.Equal(r.Scheduler.Reasons, q.Scheduler.Reasons) || r.Scheduler.Ended != q.Scheduler.Ended
		r.Scheduler = q.Scheduler
	}
	if q.Usage != nil {
		r.Usage = q.Usage
		e.sample(*q.Usage, interval)
	}
	if q.Goodbye != r.Goodbye { // taken back by a report without one
		r.Goodbye, news = q.Goodbye, true
	}
	if len(q.Reached) > 0 {
		for i := range q.Reached {
			q.Reached[i].At = now
		}
		r.Reached, news = q.Reached, true
	}
	r.Dropped += q.Dropped
	return news, stages
}

// mergeChecks is what is known of checks after some were told anew, by their names. The
// lists given are not changed.
func mergeChecks(known, told []wire.Check) []wire.Check {
	out := slices.Clone(known)
	for _, c := range told {
		i := slices.IndexFunc(out, func(o wire.Check) bool { return o.Name == c.Name })
		switch {
		case i >= 0:
			out[i] = c
		case len(out) < maxChecks:
			out = append(out, c)
		}
	}
	return out
}

func (e *entry) sample(u wire.Usage, interval time.Duration) {
	most := min(max(int(usageFor/max(interval, time.Second)), leastUsage), mostUsage)
	if extra := len(e.usage) + 1 - most; extra > 0 {
		n := copy(e.usage, e.usage[extra:])
		e.usage = e.usage[:n]
	}
	if len(e.usage) == cap(e.usage) || cap(e.usage) > 2*most { // not twice as much as there is
		e.usage = append(make([]wire.Usage, 0, min(len(e.usage)+leastUsage, most)), e.usage...)
	}
	e.usage = append(e.usage, u)
}

// Last is the newest word of a machine's agent; false when it has not spoken
// since this server started. What it returns is not changed afterwards.
func (s *Server) Last(id muster.MachineID) (LastReport, bool) {
	s.presence.mu.RLock()
	e := s.presence.m[id]
	s.presence.mu.RUnlock()
	if e == nil {
		return LastReport{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last, true
}

// Reported is when a machine's agent last reported; zero: not since the server started.
func (s *Server) Reported(id muster.MachineID) time.Time {
	last, _ := s.Last(id)
	return last.At
}

// Usage is the newest samples of a machine's usage, oldest first.
func (s *Server) Usage(id muster.MachineID) []wire.Usage {
	s.presence.mu.RLock()
	e := s.presence.m[id]
	s.presence.mu.RUnlock()
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.usage)
}
