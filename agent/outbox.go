package agent

import (
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Bounds of what is kept for the server while it does not answer, and of what
// one report carries. Figures and checks are few; the journal is not.
const (
	maxLines       = 4000
	maxLineBytes   = 512 << 10
	reportLines    = 500
	reportBytes    = 128 << 10
	maxStages      = 64
	maxChecks      = 64
	lineOverhead   = 64 // of a line beside its texts
	maxCheckText   = 300
	maxStageLength = 64
)

// outbox gathers what the server has not yet heard. Everything is sent at
// least once: after a lost answer the same lines may come again.
type outbox struct {
	mu          sync.Mutex
	kick        chan struct{} // something is to be sent before the interval ends
	urgent      bool
	state       string
	generation  int64
	stages      []muster.Stage
	sent        int // stages the server has
	checks      []pendingCheck
	facts       *muster.Facts
	topology    *muster.Topology
	topologyNew bool
	factsNew    bool
	scheduler   *wire.SchedulerState
	schedNew    bool

	reach []wire.Reach // not yet sent

	lines   []pendingLine
	bytes   int
	seq     int64
	cursor  string // after the last line that the server has
	dropped int64  // since the start
	told    int64  // of these, known to the server
}

type pendingCheck struct {
	wire.Check
	fresh bool
}

type pendingLine struct {
	wire.JournalLine
	seq    int64
	cursor string
}

// receipt remembers what a report held, to settle it when it has arrived.
type receipt struct {
	stages    int
	checks    []wire.Check
	facts     *muster.Facts
	topology  *muster.Topology
	scheduler *wire.SchedulerState
	seq       int64
	cursor    string
	dropped   int64
	more      bool // there are lines that did not fit
}

func newOutbox() *outbox {
	return &outbox{kick: make(chan struct{}, 1), state: StateConfiguring}
}

// wake asks for a report soon; the lock is held.
func (o *outbox) wake(urgent bool) {
	o.urgent = o.urgent || urgent
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// soon sends a report now: the server has something to say to it.
func (o *outbox) soon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wake(true)
}

// setState changes state and the generation in force.
func (o *outbox) setState(state string, generation int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != state || o.generation != generation {
		o.state, o.generation = state, generation
		o.wake(true)
	}
}

// stage adds a stage unless its name is there already.
func (o *outbox) stage(name string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if name == "" || len(name) > maxStageLength || len(o.stages) >= maxStages ||
		slices.ContainsFunc(o.stages, func(s muster.Stage) bool { return s.Name == name }) {
		return
	}
	o.stages = append(o.stages, muster.Stage{Name: name, At: at})
	o.wake(false)
}

// check notes a result; the same result again is not sent again.
func (o *outbox) check(c wire.Check) {
	c.Text = short(c.Text, maxCheckText)
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.checks, func(p pendingCheck) bool { return p.Name == c.Name })
	switch {
	case i < 0 && len(o.checks) >= maxChecks:
		return
	case i < 0:
		o.checks = append(o.checks, pendingCheck{c, true})
	case o.checks[i].Check == c:
		return
	default:
		o.checks[i] = pendingCheck{c, true}
	}
	o.wake(false)
}

func (o *outbox) setFacts(f muster.Facts) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.facts, o.factsNew = &f, true
	o.wake(false)
}

func (o *outbox) setTopology(t *muster.Topology) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.topology, o.topologyNew = t, t != nil
	o.wake(false)
}

// reached notes which nodes answered.
func (o *outbox) reached(list []wire.Reach) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reach = list
	o.wake(true)
}

func (o *outbox) setScheduler(s wire.SchedulerState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.scheduler, o.schedNew = &s, true
	o.wake(true)
}

// line adds a journal line and drops the oldest when there are too many: what
// happened last explains most.
func (o *outbox) line(l wire.JournalLine, cursor string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seq++
	o.lines = append(o.lines, pendingLine{l, o.seq, cursor})
	o.bytes += size(l)
	if len(o.lines) > maxLines || o.bytes > maxLineBytes {
		// An eighth at once, so that a flood does not move the rest each time.
		drop := 0
		for len(o.lines)-drop > maxLines*7/8 || o.bytes > maxLineBytes*7/8 {
			o.bytes -= size(o.lines[drop].JournalLine)
			drop++
		}
		o.dropped += int64(drop)
		o.lines = slices.Delete(o.lines, 0, drop)
	}
	if o.bytes > maxLineBytes/2 || len(o.lines) > maxLines/2 {
		o.wake(false)
	}
}

func size(l wire.JournalLine) int { return len(l.Message) + len(l.Unit) + lineOverhead }

// again marks everything as unsent, for a server that may have forgotten it.
func (o *outbox) again() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent, o.factsNew, o.schedNew, o.topologyNew = 0, o.facts != nil, o.scheduler != nil, o.topology != nil
	for i := range o.checks {
		o.checks[i].fresh = true
	}
	o.wake(false)
}

// take puts what is to be said into a report.
func (o *outbox) take() (wire.Report, receipt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.urgent = false
	r := wire.Report{State: o.state, Generation: o.generation}
	r.Stages = slices.Clone(o.stages[o.sent:])
	k := receipt{stages: len(o.stages), dropped: o.dropped}
	for _, c := range o.checks {
		if c.fresh {
			r.Checks = append(r.Checks, c.Check)
		}
	}
	k.checks = r.Checks
	if o.factsNew {
		r.Facts, k.facts = o.facts, o.facts
	}
	if o.topologyNew {
		r.Topology, k.topology = o.topology, o.topology
	}
	if o.schedNew {
		r.Scheduler, k.scheduler = o.scheduler, o.scheduler
	}
	// Sent once: the server asks again if it did not hear.
	r.Reached, o.reach = o.reach, nil
	r.Dropped = o.dropped - o.told
	n := 0
	for i, l := range o.lines {
		if n += size(l.JournalLine); i >= reportLines || n > reportBytes {
			k.more = true
			break
		}
		r.Journal = append(r.Journal, l.JournalLine)
		k.seq, k.cursor = l.seq, l.cursor
	}
	return r, k
}

// settle forgets what has arrived and keeps what changed meanwhile.
func (o *outbox) settle(k receipt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent, o.told = max(o.sent, k.stages), k.dropped
	for i := range o.checks {
		if slices.Contains(k.checks, o.checks[i].Check) {
			o.checks[i].fresh = false
		}
	}
	if k.facts != nil && k.facts == o.facts {
		o.factsNew = false
	}
	if k.topology != nil && k.topology == o.topology {
		o.topologyNew = false
	}
	if k.scheduler != nil && k.scheduler == o.scheduler {
		o.schedNew = false
	}
	n := 0
	for n < len(o.lines) && o.lines[n].seq <= k.seq {
		o.bytes -= size(o.lines[n].JournalLine)
		n++
	}
	o.lines = slices.Delete(o.lines, 0, n)
	if len(o.lines) == 0 {
		o.lines = nil // a flood leaves nothing behind
	}
	if k.cursor != "" {
		o.cursor = k.cursor
	}
	if k.more {
		o.wake(false)
	}
}

func (o *outbox) isUrgent() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.urgent
}

// resumeAt is the cursor after which the journal is to be read.
func (o *outbox) resumeAt() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cursor
}
