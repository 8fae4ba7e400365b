package configure

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/wire"
)

// Reasons that Muster gives to Slurm. A state with another reason is somebody
// else's and stays as it is.
const (
	ours          = "muster: "
	reasonLost    = ours + "machine lost"
	reasonGoes    = ours + "leaving"
	reasonLeft    = ours + "left the cluster"
	reasonReserve = ours + "its speed is measured"
	reasonUnwell  = ours + "something that jobs need does not work there"
	reasonMute    = ours + "no job starts there"
)

// wanted is what the scheduler should think of a node.
type wanted struct {
	line                 wire.NodeLine
	addr                 string
	cpus                 int
	memory               int64
	drain, down, reserve bool
	unwell               bool
	mute                 bool // no job starts there
}

// wantedNodes reads the configuration. On the head, own down marks its own
// node: what ran there before the head was lost is gone, whatever slurmctld
// remembers.
func wantedNodes(cfg *wire.NodeConfig, ownDown bool) map[string]wanted {
	hosts := make(map[string]wire.Host, len(cfg.Hosts))
	for _, h := range cfg.Hosts {
		hosts[h.Name] = h
	}
	m := make(map[string]wanted, len(cfg.Slurm.NodeLines))
	for _, l := range cfg.Slurm.NodeLines {
		h := hosts[l.Name]
		w := wanted{line: l, drain: h.Drain, reserve: h.Reserve, unwell: h.Unwell, down: h.Down || ownDown && l.Name == cfg.Node}
		for _, a := range l.Args {
			name, value, _ := strings.Cut(a, "=")
			switch name {
			case "NodeAddr":
				w.addr = value
			case "CPUs":
				w.cpus, _ = strconv.Atoi(value)
			case "RealMemory":
				w.memory, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		m[l.Name] = w
	}
	return m
}

// plan gives the commands of scontrol that make slurmctld think of its nodes
// what it should; none when it does. is is what it says now. The same plan
// again does no harm, but for create: to repeat that for a name which is there
// makes slurmctld lose it, so is must be fresh.
//
// A node that leaves becomes FUTURE and is not deleted: nobody sees it, its
// slurmd is not needed, and when the name comes back it has its old place, by
// which jobs rank their nodes.
//
// forgive reports a node that Slurm itself took out of use whether it is time to try it
// again; nil for no node. mute are those on which no job starts.
func plan(cfg *wire.NodeConfig, is map[string]slurmNode, ownDown bool, forgive func(node string) bool, mute map[string]bool) [][]string {
	want := wantedNodes(cfg, ownDown)
	for name, w := range want {
		w.mute = mute[name]
		want[name] = w
	}
	p := planner{forgive: forgive}
	for _, l := range cfg.Slurm.NodeLines {
		p.node(l.Name, want[l.Name], is)
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, ok := want[name]; !ok {
			p.left(name, is[name])
		}
	}
	return p.commands()
}

// planner gathers nodes that need the same command.
type planner struct {
	forgive func(node string) bool

	remove, create                                []string
	lines                                         map[string]wire.NodeLine
	lost, leaving, leave, undrain, resume, future []string
	reserve, unwell, mute                         []string
	lostDown, leaveDown                           []string
}

func (p *planner) node(name string, w wanted, is map[string]slurmNode) {
	n, known := is[name]
	switch {
	case !known:
		p.declare(w)
	case n.future():
		if differs(w, n) {
			p.remove = append(p.remove, name)
		}
	case w.down:
		// Drained first: a node that answers after all would otherwise be
		// given the next job at once.
		if n.reason != reasonLost || !n.has("drain") {
			p.lost = append(p.lost, name)
			p.lostDown = append(p.lostDown, name)
		} else if n.busy() && n.base != "down" {
			p.lostDown = append(p.lostDown, name)
		}
	case w.drain:
		if n.base == "down" && n.reason == reasonLost {
			p.resume = append(p.resume, name)
		}
		if !n.has("drain") {
			p.leaving = append(p.leaving, name)
		}
	case w.reserve && n.base != "down":
		if !n.has("drain") {
			p.reserve = append(p.reserve, name)
		}
	case w.unwell:
		if n.base != "down" && !n.has("drain") {
			p.unwell = append(p.unwell, name)
		}
	case w.mute:
		if n.base != "down" && !n.has("drain") {
			p.mute = append(p.mute, name)
		}
	case strings.HasPrefix(n.reason, ours) || p.mayForgive(name, n):
		if n.base == "down" {
			p.resume = append(p.resume, name)
		} else if n.has("drain") {
			p.undrain = append(p.undrain, name)
		}
	}
}

// slurmsOwn are reasons for which Slurm takes a node out of use by itself, and never
// gives it back: a job that could not start or end there. What was the cause (a full disk,
// a server that was away) may be long over.
func slurmsOwn() []string {
	return []string{"kill task failed", "batch job complete failure", "prolog error", "prolog failed", "epilog error", "epilog failed",
		"low tmpdisk", "slurmdspooldir is full", "not responding", "node unexpectedly rebooted", "job env setup error", "launch failure"}
}

// mayForgive reports whether a node that Slurm itself took out of use is to be tried
// again. What a person wrote stays.
func (p *planner) mayForgive(name string, n slurmNode) bool {
	if p.forgive == nil || n.base != "down" && !n.has("drain") || n.has("not_responding") {
		return false
	}
	return n.bySlurm() && p.forgive(name)
}

// bySlurm reports whether Slurm itself took the node out of use.
func (n slurmNode) bySlurm() bool {
	reason := strings.ToLower(n.reason)
	return slices.ContainsFunc(slurmsOwn(), func(r string) bool { return strings.HasPrefix(reason, r) })
}

// left takes a node that is not of the cluster any more from users' eyes.
func (p *planner) left(name string, n slurmNode) {
	switch {
	case n.future():
	case n.base == "down" && !n.busy():
		p.future = append(p.future, name)
	default:
		p.leave = append(p.leave, name)
		p.leaveDown = append(p.leaveDown, name)
		if !n.busy() {
			p.future = append(p.future, name)
		}
	}
}

func (p *planner) declare(w wanted) {
	if p.lines == nil {
		p.lines = map[string]wire.NodeLine{}
	}
	p.create = append(p.create, w.line.Name)
	p.lines[w.line.Name] = w.line
}

func differs(w wanted, n slurmNode) bool {
	return w.addr != "" && n.addr != "" && w.addr != n.addr ||
		w.cpus != 0 && n.cpus != 0 && w.cpus != n.cpus ||
		w.memory != 0 && n.memory != 0 && w.memory != n.memory
}

func (p *planner) commands() [][]string {
	var list [][]string
	update := func(names []string, settings ...string) {
		if len(names) > 0 {
			list = append(list, append([]string{"update", "NodeName=" + fold(names)}, settings...))
		}
	}
	update(p.lost, "State=DRAIN", "Reason="+reasonLost)
	update(p.lostDown, "State=DOWN", "Reason="+reasonLost)
	update(p.leave, "State=DRAIN", "Reason="+reasonLeft)
	update(p.leaveDown, "State=DOWN", "Reason="+reasonLeft)
	update(p.future, "State=FUTURE")
	update(p.leaving, "State=DRAIN", "Reason="+reasonGoes)
	update(p.reserve, "State=DRAIN", "Reason="+reasonReserve)
	update(p.unwell, "State=DRAIN", "Reason="+reasonUnwell)
	update(p.mute, "State=DRAIN", "Reason="+reasonMute)
	update(p.undrain, "State=UNDRAIN")
	update(p.resume, "State=RESUME")
	if len(p.remove) > 0 {
		list = append(list, []string{"delete", "NodeName=" + fold(p.remove)})
	}
	return append(list, p.creation()...)
}

// creation declares nodes in their order, as many at once as have the same
// settings: one message for all leaves no time for one of them to register in
// between.
func (p *planner) creation() [][]string {
	type group struct {
		names, addrs []string
		rest         []string
	}
	var groups []*group
	for _, name := range p.create {
		var addr string
		var rest []string
		for _, a := range p.lines[name].Args {
			switch key, value, _ := strings.Cut(a, "="); key {
			case "NodeName":
			case "NodeAddr":
				addr = value
			default:
				rest = append(rest, a)
			}
		}
		last := len(groups) - 1
		if last < 0 || !slices.Equal(groups[last].rest, rest) || (addr == "") != (len(groups[last].addrs) == 0) {
			groups = append(groups, &group{rest: rest})
			last++
		}
		groups[last].names = append(groups[last].names, name)
		if addr != "" {
			groups[last].addrs = append(groups[last].addrs, addr)
		}
	}
	var list [][]string
	for _, g := range groups {
		args := []string{"create", "NodeName=" + strings.Join(g.names, ",")}
		if len(g.addrs) > 0 {
			args = append(args, "NodeAddr="+strings.Join(g.addrs, ","))
		}
		list = append(list, append(args, g.rest...))
	}
	return list
}

// fold writes names as Slurm reads them: n[01-16].
func fold(names []string) string {
	slices.SortFunc(names, cmp.Compare)
	s, err := nodeset.Of(slices.Compact(names)...)
	if err != nil {
		return strings.Join(names, ",")
	}
	return fmt.Sprint(s)
}
