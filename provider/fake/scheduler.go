package fake

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/wire"
)

// schedulers pretends one slurmctld for each cluster: daemons of nodes register
// with it, administrators (the head's agent) set nodes aside, jobs hold nodes,
// and the head's agent tells the server what it sees.
type schedulers struct {
	now          func() time.Time
	notice, down time.Duration

	mu      sync.Mutex
	m       map[muster.ClusterID]*scheduler
	machine map[muster.MachineID]*daemon // of nodes, by where they run
}

type scheduler struct {
	nodes   map[string]*slurmNode
	jobs    []wire.Job
	ended   bool
	frozen  map[string]bool // jobs that were suspended for a pause, by ID
	pausing bool            // no job starts, and it has ended once none runs
	changed chan struct{}   // closed with the next change
}

// slurmNode is a node that has registered at some time.
type slurmNode struct {
	of     *scheduler
	by     *daemon   // that registered it last
	silent time.Time // since when its daemon does not answer; zero: it does
	drain  bool
	down   bool // by an administrator, until it registers again
}

// daemon is the slurmd of one machine, for one boot.
type daemon struct{ node *slurmNode }

func newSchedulers(o *Options) *schedulers {
	s := &schedulers{now: o.Clock.Now, notice: o.SlurmNotice, down: o.SlurmDown,
		m: map[muster.ClusterID]*scheduler{}, machine: map[muster.MachineID]*daemon{}}
	if s.notice <= 0 {
		s.notice = 12 * time.Second
	}
	if s.down <= 0 {
		s.down = time.Minute
	}
	return s
}

func (s *schedulers) of(c muster.ClusterID) *scheduler {
	x := s.m[c]
	if x == nil {
		x = &scheduler{nodes: map[string]*slurmNode{}, changed: make(chan struct{})}
		s.m[c] = x
	}
	return x
}

// told wakes who waits for a change; the mutex is held.
func (x *scheduler) told() {
	close(x.changed)
	x.changed = make(chan struct{})
}

// register is what a daemon does when it starts: its node is used again,
// whatever it was.
func (s *schedulers) register(c muster.ClusterID, node string, on muster.MachineID) *daemon {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of(c)
	n := x.nodes[node]
	if n == nil {
		n = &slurmNode{of: x}
		x.nodes[node] = n
	}
	d := &daemon{n}
	n.by, n.silent, n.down = d, time.Time{}, false
	s.machine[on] = d
	x.told()
	return d
}

// silent says that nothing on a machine answers any more.
func (s *schedulers) silent(on muster.MachineID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hush(s.machine[on])
}

func (s *schedulers) hush(d *daemon) {
	if d != nil && d.node.by == d && d.node.silent.IsZero() {
		d.node.silent = s.now()
	}
}

// speaks says that what runs on a machine answers again.
func (s *schedulers) speaks(on muster.MachineID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.machine[on]; d != nil && d.node.by == d && !d.node.silent.IsZero() {
		d.node.silent = time.Time{}
		d.node.of.told()
	}
}

// gone forgets a daemon, which ended with its machine. The node stays known,
// and does not answer.
func (s *schedulers) gone(on muster.MachineID, d *daemon) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machine[on] == d {
		delete(s.machine, on)
	}
	s.hush(d)
}

// forget ends a cluster's scheduler.
func (s *schedulers) forget(c muster.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, c)
}

// apply is what the head's agent does with a new configuration.
func (s *schedulers) apply(c muster.ClusterID, hosts []wire.Host, ending bool, pause muster.OnPause, lose bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of(c)
	listed := make(map[string]bool, len(hosts))
	changed := false
	for _, h := range hosts {
		listed[h.Name] = true
		n := x.nodes[h.Name]
		if n == nil {
			if !h.Compute || !h.Down {
				continue
			}
			n = &slurmNode{of: x, silent: s.now()} // declared, and never seen
			x.nodes[h.Name] = n
		}
		if drain := h.Drain || h.Reserve; n.drain != drain {
			n.drain, changed = drain, true
		}
		if h.Down && !n.down {
			n.down, changed = true, true
			x.requeue(h.Name)
		}
	}
	for name := range x.nodes {
		if !listed[name] {
			delete(x.nodes, name)
			x.requeue(name)
			changed = true
		}
	}
	switch {
	case ending && !x.ended:
		x.ended, x.jobs, changed = true, nil, true
	case !ending && x.pausing != (pause != ""):
		x.pausing, x.ended, changed = pause != "", false, true
	}
	if pause == muster.PauseRequeue && (lose || !slices.ContainsFunc(x.jobs, func(j wire.Job) bool { return j.State != "pending" && j.WouldBeLost() != "" })) {
		for i := range x.jobs {
			if x.jobs[i].State == "running" {
				x.jobs[i].State, x.jobs[i].Nodes, x.jobs[i].Reason, changed = "pending", "", "BeginTime", true
			}
		}
	}
	changed = x.suspend(pause == muster.PauseFreeze) || changed
	changed = x.end() || changed
	if changed {
		x.told()
	}
}

// suspend suspends what runs, or lets go on what it suspended: not what somebody else did.
func (x *scheduler) suspend(on bool) (changed bool) {
	for i := range x.jobs {
		switch j := &x.jobs[i]; {
		case on && j.State == "running":
			if x.frozen == nil {
				x.frozen = map[string]bool{}
			}
			j.State, x.frozen[j.ID], changed = "suspended", true, true
		case !on && j.State == "suspended" && x.frozen[j.ID]:
			j.State, changed = "running", true
		}
	}
	if !on {
		x.frozen = nil
	}
	return changed
}

// end ends a scheduler that is being paused once no job runs. It reports whether it did.
func (x *scheduler) end() bool {
	if !x.pausing || x.ended || slices.ContainsFunc(x.jobs, func(j wire.Job) bool { return j.State == "running" }) {
		return false
	}
	x.ended = true
	return true
}

// requeue makes the jobs of a node wait again.
func (x *scheduler) requeue(node string) {
	for i := range x.jobs {
		if slices.Contains(jobNodes(&x.jobs[i]), node) {
			x.jobs[i].State, x.jobs[i].Nodes, x.jobs[i].Reason = "pending", "", "BeginTime"
		}
	}
}

func jobNodes(j *wire.Job) []string {
	if j.State != "running" || j.Nodes == "" {
		return nil
	}
	names, err := nodeset.Expand(j.Nodes)
	if err != nil {
		return nil
	}
	return names
}

// setJobs says what runs and waits in a cluster.
func (s *schedulers) setJobs(c muster.ClusterID, jobs []wire.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of(c)
	x.jobs = slices.Clone(jobs)
	x.end()
	x.told()
}

// state is what slurmctld would say, and a channel closed when it says
// something else. What only time brings, who looks now and then sees.
func (s *schedulers) state(c muster.ClusterID) (*wire.SchedulerState, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of(c)
	out := &wire.SchedulerState{Up: true, Nodes: make(map[string]string, len(x.nodes)), Ended: x.ended}
	busy := map[string]bool{}
	for i := range x.jobs {
		switch x.jobs[i].State {
		case "running":
			out.Jobs++
			for _, n := range jobNodes(&x.jobs[i]) {
				busy[n] = true
			}
		default:
			out.Queue++
		}
	}
	out.List = slices.Clone(x.jobs[:min(len(x.jobs), wire.MaxJobs)])
	now := s.now()
	for name, n := range x.nodes {
		out.Nodes[name] = s.word(n, busy[name], now)
	}
	return out, x.changed
}

// word is the state of a node as slurmctld writes it.
func (s *schedulers) word(n *slurmNode, busy bool, now time.Time) string {
	var star string
	quiet := time.Duration(0)
	if !n.silent.IsZero() {
		quiet = now.Sub(n.silent)
	}
	if quiet >= s.notice || n.down && quiet > 0 {
		star = "*"
	}
	word := "idle"
	switch {
	case n.down || quiet >= s.down:
		word = "down"
	case n.drain && busy:
		word = "draining"
	case n.drain:
		word = "drained"
	case busy:
		word = "allocated"
	}
	return strings.TrimSpace(word + star)
}

// SetJobs says which jobs run and wait in a cluster's pretended scheduler. A
// running one holds the nodes that its Nodes name, and waits again when one of
// them is marked down.
func (w *World) SetJobs(c muster.ClusterID, jobs []wire.Job) { w.sched.setJobs(c, jobs) }

// SchedulerState is what the pretended scheduler of a cluster says now.
func (w *World) SchedulerState(c muster.ClusterID) wire.SchedulerState {
	s, _ := w.sched.state(c)
	return *s
}
