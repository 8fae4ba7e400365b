package converge

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
	"pgregory.net/rapid"
)

// model is a site of one cluster in which everything happens at once and
// nothing is slow: the records, the hardware, the agents, and what the server
// knows.
type model struct {
	t *rapid.T
	v View
	// hardware
	runs map[muster.MachineID]int64 // attempt; 0 is off
	net  bool
	// calls under way
	boots  map[muster.MachineID]int64
	offs   map[muster.MachineID]bool
	looks  map[muster.MachineID]bool
	booted map[string]int64 // newest attempt that the provider was asked for
	joined map[string]int64 // newest attempt whose token is spent

	repairs modelRepairs
}

func newModel(t *rapid.T) *model {
	nodes := rapid.IntRange(1, 5).Draw(t, "nodes")
	before := rapid.Bool().Draw(t, "used before") // by a cluster whose agents still seem to speak
	least := rapid.IntRange(1, nodes).Draw(t, "min")
	separate := rapid.Bool().Draw(t, "separate")
	spec := muster.Spec{Nodes: nodes, Min: least, Scheduler: muster.SchedulerSlurm, Head: muster.HeadShared}
	if rapid.Bool().Draw(t, "none") {
		spec.Scheduler = muster.SchedulerNone
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &model{
		t: t, runs: map[muster.MachineID]int64{}, boots: map[muster.MachineID]int64{}, offs: map[muster.MachineID]bool{},
		looks: map[muster.MachineID]bool{}, booted: map[string]int64{}, joined: map[string]int64{},
		v: View{
			Now: now, Started: now, Machines: map[muster.MachineID]muster.Machine{}, Observations: map[muster.MachineID]Observation{},
			Cluster: muster.Cluster{ID: "c-1", Phase: muster.ClusterBuilding, PhaseSince: now, Spec: spec, Image: "sha256:1"},
		},
	}
	m.repairs = newModelRepairs(rapid.IntRange(0, 2).Draw(t, "spares"))
	if separate {
		m.v.Cluster.Spec.Head = muster.HeadSeparate
		nodes++
	}
	for i := range nodes {
		id := muster.MachineID(fmt.Sprintf("m%d", i))
		n := muster.Node{Cluster: "c-1", Name: fmt.Sprintf("n%02d", i), Index: i, Role: muster.RoleCompute, Head: i == 0, Phase: muster.NodeAssigned, Machine: id}
		if i == 0 && separate {
			n.Role = muster.RoleHead
		}
		m.v.Nodes = append(m.v.Nodes, n)
		m.v.Machines[id] = muster.Machine{ID: id, Provider: "fake", Phase: muster.MachineAllocated, Cluster: "c-1", Node: n.Name}
		if before {
			m.v.Observations[id] = Observation{Report: &Report{Cluster: "c-0", Node: n.Name, Report: wire.Report{Attempt: 1, State: "ready"}, At: now}}
		}
	}
	return m
}

// converge decides and executes until nothing more is to be done now.
func (m *model) converge() {
	for range 50 {
		actions := m.decide()
		if len(actions) == 0 {
			return
		}
		m.execute(actions)
	}
	m.t.Fatalf("does not settle: %+v", m.decide())
}

func (m *model) decide() []Action {
	m.v.Slots = map[string]int{"fake": max(0, 3-booting(m.v)["fake"])}
	m.findSpares()
	actions, _ := Decide(m.v)
	return actions
}

// again decides once more with the places in the boot window that are left: a
// failed boot frees one, which is news.
func (m *model) again(was []Action) []Action {
	for _, a := range was {
		if _, ok := a.(Boot); ok && m.v.Slots["fake"] > 0 {
			m.v.Slots["fake"]--
		}
	}
	actions, _ := Decide(m.v)
	return actions
}

// execute applies the records, checks every rule about them, and begins the
// calls. Deciding again before anything else happens must give nothing.
func (m *model) execute(actions []Action) {
	records := true
	for _, a := range actions {
		if !isRecord(a) {
			records = false
		} else if !records {
			m.t.Fatalf("a record after a call: %+v", actions)
		}
		switch a := a.(type) {
		case SetCluster:
			m.setCluster(a.Cluster)
		case SetNode:
			m.setNode(a.Node)
		case SetMachine:
			m.setMachine(a.Machine)
		case Boot:
			m.boot(a.Node)
		case Off:
			m.busy(a.Machine)
			m.offs[a.Machine] = true
			m.sight(a.Machine, func(s *Observation) { s.Busy, s.Known, s.OffAt = true, false, m.v.Now; s.OffTries++ })
		case Fence:
			m.busy(a.Machine)
			m.repairs.fences[a.Machine] = true
			m.sight(a.Machine, func(s *Observation) { s.Busy, s.Known = true, false })
		case Probe:
			m.repairs.probes[a.Machine] = true
			m.sight(a.Machine, func(s *Observation) {
				if s.Probing = true; s.ProbeTries == 0 || !s.ProbeFirst.After(a.Since) {
					s.ProbeTries, s.ProbeFirst = 0, m.v.Now
				}
			})
		case KeepFence:
			if !a.Record.Proven {
				m.t.Fatalf("%s is let go of without proof", a.Record.Machine)
			}
		case Observe:
			m.looks[a.Machine] = true
			m.sight(a.Machine, func(s *Observation) { s.Asked = true })
		case Prepare:
			m.net = true
			m.v.Prepared = Work{Done: true}
			return // it ended: the cluster is decided again
		case Dismantle:
			for id, at := range m.runs {
				if at != 0 {
					m.t.Fatalf("the network is removed while %s runs", id)
				}
			}
			m.net = false
			m.v.Dismantled = Work{Done: true}
			return
		}
	}
	if again := m.again(actions); len(again) > 0 {
		m.t.Fatalf("not idempotent:\n%+v\nthen\n%+v", actions, again)
	}
}

func (m *model) busy(id muster.MachineID) {
	if m.v.Observations[id].Busy {
		m.t.Fatalf("two calls at once for %s", id)
	}
}

func (m *model) sight(id muster.MachineID, f func(*Observation)) {
	s := m.v.Observations[id]
	f(&s)
	m.v.Observations[id] = s
}

func (m *model) setCluster(c muster.Cluster) {
	if !m.v.Cluster.Phase.CanBecome(c.Phase) {
		m.t.Fatalf("cluster %s -> %s", m.v.Cluster.Phase, c.Phase)
	}
	if c.Phase == muster.ClusterReady && m.v.Cluster.Phase != muster.ClusterReady {
		ready := 0
		for _, n := range m.v.Nodes {
			if n.Role == muster.RoleCompute && n.Phase == muster.NodeReady {
				ready++
			}
		}
		if ready < c.Spec.Min {
			m.t.Fatalf("ready with %d of at least %d nodes", ready, c.Spec.Min)
		}
	}
	if c.Phase == muster.ClusterFailed && c.Reason == nil {
		m.t.Fatal("failed without a reason")
	}
	if c.Phase == muster.ClusterFailed && c.Reason.Hint == "" {
		m.t.Fatal("failed without a hint")
	}
	if c.Phase == muster.ClusterDeleted {
		for _, mc := range m.v.Machines {
			if mc.Phase.Held() {
				m.t.Fatalf("deleted while it holds %s", mc.ID)
			}
		}
		if m.net {
			m.t.Fatal("deleted with its network")
		}
	}
	m.v.Cluster = c
}

func (m *model) setNode(n muster.Node) {
	for i := range m.v.Nodes {
		old := m.v.Nodes[i]
		if old.Name != n.Name {
			continue
		}
		if !old.Phase.CanBecome(n.Phase) {
			m.t.Fatalf("node %s: %s -> %s", n.Name, old.Phase, n.Phase)
		}
		m.moves(old, n)
		if n.Attempt < old.Attempt || n.Attempt > old.Attempt+1 {
			m.t.Fatalf("node %s: attempt %d -> %d", n.Name, old.Attempt, n.Attempt)
		}
		if n.Phase == muster.NodeReady && old.Phase != muster.NodeReady {
			if r := m.v.Observations[n.Machine].Report; r == nil || r.Attempt != n.Attempt || r.Cluster != n.Cluster || r.State != "ready" {
				m.t.Fatalf("node %s became ready by a stale report: %+v", n.Name, r)
			}
		}
		m.v.Nodes[i] = n
	}
}

func (m *model) setMachine(x muster.Machine) {
	old := m.v.Machines[x.ID]
	if old.ID == "" { // a spare
		if !m.repairs.free[x.ID] {
			m.t.Fatalf("machine %s is not free", x.ID)
		}
		old.Phase = muster.MachineFree
		delete(m.repairs.free, x.ID)
	}
	if !old.Phase.CanBecome(x.Phase) {
		m.t.Fatalf("machine %s: %s -> %s", x.ID, old.Phase, x.Phase)
	}
	if x.Phase.Held() != (x.Cluster != "") {
		m.t.Fatalf("machine %s is %s in %q", x.ID, x.Phase, x.Cluster)
	}
	if old.Phase == muster.MachineActive && !x.Phase.Held() && m.runs[x.ID] != 0 {
		m.t.Fatalf("machine %s is given back while it runs", x.ID)
	}
	m.v.Machines[x.ID] = x
}

// boot checks that the intent is on record before the provider is asked.
func (m *model) boot(n muster.Node) {
	m.busy(n.Machine)
	for _, rec := range m.v.Nodes {
		if rec.Name == n.Name && (rec.Attempt != n.Attempt || rec.Phase != muster.NodeBooting) {
			m.t.Fatalf("boot of attempt %d; on record is %d, %s", n.Attempt, rec.Attempt, rec.Phase)
		}
	}
	if x := m.v.Machines[n.Machine]; x.Phase != muster.MachineActive || x.Attempt != n.Attempt {
		m.t.Fatalf("boot of a machine that is %s, attempt %d", x.Phase, x.Attempt)
	}
	if n.Attempt <= m.booted[n.Name] {
		m.t.Fatalf("attempt %d of %s was used before", n.Attempt, n.Name)
	}
	if !m.net {
		m.t.Fatal("boot without a network")
	}
	m.alone(n)
	m.booted[n.Name] = n.Attempt
	m.boots[n.Machine] = n.Attempt
	m.sight(n.Machine, func(s *Observation) {
		*s = Observation{Busy: true, BootIssued: n.Attempt, Report: s.Report}
	})
}

// endCalls lets every call under way end.
func (m *model) endCalls(refuse bool) {
	for id, attempt := range m.boots {
		m.sight(id, func(s *Observation) {
			s.Busy, s.Known = false, false
			if s.BootErr = nil; refuse {
				s.BootErr = errors.New("no power")
			}
		})
		if !refuse {
			m.runs[id] = attempt
			m.repairs.starts(id, m.v.Machines[id].Node)
		}
		delete(m.boots, id)
	}
	for id := range m.offs {
		m.sight(id, func(s *Observation) { s.Busy, s.Known = false, false })
		m.runs[id] = 0
		delete(m.offs, id)
	}
	m.endRepairs(refuse)
	for id := range m.looks {
		m.look(id)
		delete(m.looks, id)
	}
}

func (m *model) look(id muster.MachineID) {
	m.sight(id, func(s *Observation) {
		s.Asked = false
		if s.Busy {
			return
		}
		s.Known, s.Attempt, s.SeenAt, s.State = true, m.runs[id], m.v.Now, provider.StateRunning
		if m.runs[id] == 0 {
			s.State, s.OffTries = provider.StateOff, 0
		}
	})
}

// agent has the agent of a node's machine take its next step: join, then say
// that it is ready. A machine that runs an old attempt can only say stale
// things.
func (m *model) agent(i int, state string) {
	n := &m.v.Nodes[i]
	attempt := m.runs[n.Machine]
	if attempt == 0 || m.repairs.hung[n.Machine] {
		return
	}
	if n.Phase == muster.NodeBooting && n.Attempt == attempt && m.joined[n.Name] < attempt && m.v.Machines[n.Machine].Node == n.Name {
		m.joined[n.Name] = attempt
		n.Phase, n.PhaseSince, n.Deadline, n.NotBefore = muster.NodeConfiguring, m.v.Now, time.Time{}, time.Time{}
		return
	}
	r := wire.Report{Attempt: attempt, State: state}
	if n.Head {
		r.Scheduler = &wire.SchedulerState{Up: true, Nodes: map[string]string{}}
	}
	m.sight(n.Machine, func(s *Observation) {
		s.Report = &Report{Cluster: n.Cluster, Node: n.Name, Report: r, At: m.v.Now, Interval: time.Second}
	})
	if state == "ready" {
		for _, other := range m.v.Nodes { // the head reports who is in the scheduler
			if rep := m.v.Observations[other.Machine].Report; other.Head && rep != nil && rep.Scheduler != nil {
				for _, x := range m.v.Nodes {
					switch {
					case !x.Hold:
						rep.Scheduler.Nodes[x.Name] = "idle"
					case x.Down:
						rep.Scheduler.Nodes[x.Name] = "down*"
					}
				}
			}
		}
	}
}

// restart loses everything that is not on record.
func (m *model) restart() {
	clear(m.boots)
	clear(m.offs)
	clear(m.looks)
	m.repairs.forget()
	m.v.Blind = rapid.Bool().Draw(m.t, "blind")
	m.v.Observations = map[muster.MachineID]Observation{}
	m.v.Prepared, m.v.Dismantled = Work{}, Work{}
	m.v.Started = m.v.Now
}

// event lets something happen.
func (m *model) event() {
	i := rapid.IntRange(0, len(m.v.Nodes)-1).Draw(m.t, "node")
	id := m.v.Nodes[i].Machine
	switch rapid.SampledFrom([]string{"calls", "calls", "agent", "agent", "agent", "refuse", "fail", "die", "time", "restart", "delete", "goodbye", "hang", "hang", "wake", "mass", "clean", "silence"}).Draw(m.t, "event") {
	case "calls":
		m.endCalls(false)
	case "refuse":
		m.endCalls(true)
	case "agent":
		m.agent(i, "ready")
	case "fail":
		m.agent(i, "failed")
	case "goodbye":
		m.goodbye(i)
	case "hang":
		m.repairs.hung[id] = true
	case "silence": // long enough for two probes
		for range 4 {
			m.v.Now = m.v.Now.Add(20 * time.Second)
			m.converge()
			m.endCalls(false)
		}
	case "wake":
		clear(m.repairs.hung)
	case "mass":
		m.v.Silent, m.v.All = 5-m.v.Silent, 5-m.v.All
	case "clean":
		m.cleanOne()
	case "die":
		if m.runs[id] != 0 {
			m.runs[id] = 0
			m.look(id)
		}
	case "time":
		m.v.Now = m.v.Now.Add(time.Duration(rapid.IntRange(1, 200).Draw(m.t, "seconds")) * time.Second)
	case "restart":
		m.restart()
	case "delete":
		if rapid.IntRange(0, 3).Draw(m.t, "really") == 0 && m.v.Cluster.Phase.CanBecome(muster.ClusterDeleting) && m.v.Cluster.Phase != muster.ClusterDeleting {
			m.v.Cluster.Phase, m.v.Cluster.PhaseSince = muster.ClusterDeleting, m.v.Now
			m.v.Dismantled = Work{}
		}
	}
}

// TestDecideKeepsItsPromises lets anything happen to a cluster in any order,
// and checks at every step that intent is recorded before action, no attempt
// is used twice, nothing stale is believed, no cluster starts short, every
// transition is in the table, and that deciding again gives nothing. In the
// end, when nothing bad happens any more, the cluster comes to rest.
func TestDecideKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for range rapid.IntRange(5, 60).Draw(t, "events") {
			m.converge()
			m.event()
		}
		clear(m.repairs.hung)
		m.v.Silent, m.v.All = 0, 0
		for range 400 { // from here on all goes well
			m.converge()
			m.cleanOne()
			if m.rests() {
				return
			}
			m.endCalls(false)
			_, next := Decide(m.v)
			m.v.Now = m.v.Now.Add(min(max(next, time.Millisecond), 5*time.Second))
			for i := range m.v.Nodes { // no agent is silent when it is looked at
				m.agent(i, "ready")
			}
		}
		t.Fatalf("comes to no rest: %s %+v\n%+v\n%+v", m.v.Cluster.Phase, m.v.Cluster.Conditions, m.v.Nodes, m.v.Observations)
	})
}

// rests reports whether the cluster is where it should stay.
func (m *model) rests() bool {
	held := 0
	for _, x := range m.v.Machines {
		if x.Phase.Held() {
			held++
		}
	}
	switch m.v.Cluster.Phase {
	case muster.ClusterReady:
		for _, n := range m.v.Nodes {
			if n.Phase != muster.NodeReady && n.Phase != muster.NodeGone {
				return false
			}
		}
		return true
	case muster.ClusterDeleted:
		return held == 0
	case muster.ClusterFailed:
		return held == 0 && !m.net
	}
	return false
}
