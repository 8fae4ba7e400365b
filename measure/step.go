package measure

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/wire"
)

// step is one launch of the plan.
type step struct {
	name string
	// run is what the probe does; nil: conditions and counters are read.
	run *analysis.Run
	// again: it is one of those that are made because of suspects.
	again bool
}

// steps are all launches, in order. Conditions are read before, between and after:
// what changed meanwhile is known, too.
func (s *subject) steps() []step {
	var list []step
	add := func(runs []analysis.Run, again bool) {
		for i := range runs {
			list = append(list, step{name: fmt.Sprintf("%03d-%s", len(list), runs[i].Mode), run: &runs[i], again: again})
		}
		list = append(list, step{name: fmt.Sprintf("%03d-conditions", len(list)), again: again})
	}
	list = append(list, step{name: "000-conditions"})
	first := analysis.Plan(s.places, s.m.Level, s.m.Seed, s.crowd())
	add(first, false)
	sweeps, _ := s.sweeps()
	if len(sweeps) > 0 {
		add(sweeps, false)
	}
	var again []analysis.Run
	suspects := s.suspects()
	if len(suspects) > 0 {
		again = analysis.Confirm(s.places, suspects, s.m.Level, s.m.Seed+1)
	}
	again = append(again, analysis.ConfirmLinks(s.places, s.suspectLinks(), suspects, first, s.m.Level, s.m.Seed+2)...)
	if len(again) > 0 {
		add(again, true)
	}
	return list
}

// sweeps are the launches that measure over ranges, and what is left out of them.
func (s *subject) sweeps() ([]analysis.Run, []muster.Omission) {
	cores := 0
	for i, m := range s.machines {
		if cores = min(cores, m.Facts.Cores); i == 0 {
			cores = m.Facts.Cores
		}
	}
	return analysis.PlanSweeps(s.places, cores, s.m.Level, s.m.Seed+3, s.crowd())
}

// crowd is how many of the nodes share a processor of their host.
func (s *subject) crowd() int {
	on := map[[2]string]int{}
	most := 1
	for i, m := range s.machines {
		for _, cpu := range m.Facts.CPUs {
			key := [2]string{s.places[i].Host, strconv.Itoa(cpu)}
			on[key]++
			most = max(most, on[key])
		}
	}
	return most
}

// suspects are the numbers of the nodes that are measured again.
func (s *subject) suspects() []int { return s.numbers(s.m.Suspects) }

// numbers are those of nodes.
func (s *subject) numbers(names []string) []int {
	var list []int
	for i, n := range s.nodes {
		if slices.Contains(names, n.Name) {
			list = append(list, i)
		}
	}
	return list
}

// suspectLinks are the numbers of the nodes of links that are measured again.
func (s *subject) suspectLinks() []analysis.Pair {
	var list []analysis.Pair
	number := func(name string) int {
		return slices.IndexFunc(s.nodes, func(n muster.Node) bool { return n.Name == name })
	}
	for _, l := range s.m.SuspectLinks {
		if a, b := number(l.From), number(l.To); a >= 0 && b > a {
			list = append(list, analysis.Pair{A: a, B: b})
		}
	}
	return list
}

// orderFor says how a step is launched.
func (j *job) orderFor(ctx context.Context, s *subject, st step, id string) (*wire.LaunchOrder, error) {
	o := &wire.LaunchOrder{ID: id, Program: "muster-agent", Args: []string{"conditions"}, Hosts: s.names(), Limit: muster.Duration(time.Minute)}
	if st.run == nil {
		if err := together(o); err != nil {
			return nil, err
		}
		o.Env[wire.MeetAtVariable] = meetAt(o)
	} else {
		var err error
		if o.Input, err = probeInput(st.run); err != nil {
			return nil, err
		}
		o.Program, o.Args = "muster-probe", probeArgs(st.run)
		o.Hosts = nil
		for _, n := range st.run.Nodes {
			o.Hosts = append(o.Hosts, s.nodes[n].Name)
		}
		o.PerHost = st.run.PerNode
		switch st.run.Mode {
		case analysis.Alone:
		case analysis.Inside: // ranks choose their processors themselves
			o.Env = yields()
		case analysis.Clients: // there may be more of them than processors
			o.Env = yields()
		case analysis.Disk, analysis.Net, analysis.Streams:
			if err := byTools(o); err != nil {
				return nil, err
			}
		default:
			o.Bind = "core" // a rank that moves has another latency each time
		}
		if files := st.run.Mode == analysis.IO || st.run.Mode == analysis.Clients; files {
			o.Scratch = "/home/.muster-" + id
			o.Args = append(o.Args, "--dir", o.Scratch, "--bytes", strconv.FormatInt(s.files(), 10))
		}
		o.Limit = muster.Duration(longest(*st.run, len(s.nodes)))
		if o.Scratch != "" {
			o.Limit += muster.Duration(4*s.files()/slowestFiles) * muster.Duration(time.Second)
		}
	}
	var err error
	// A little longer than the launch: clocks differ.
	o.Key, o.Certificate, err = j.r.c.Admit(ctx, j.cluster, time.Duration(o.Limit)+5*time.Minute)
	return o, err
}

// yields has ranks of Open MPI give way while they wait: others may be on the same
// processor.
func yields() map[string]string { return map[string]string{"OMPI_MCA_mpi_yield_when_idle": "1"} }

// byTools makes the agents measure, with programs of others.
func byTools(o *wire.LaunchOrder) error {
	o.Program, o.Args = "muster-agent", append(o.Args, "--meet", meetAt(o))
	return together(o)
}

// meetAt is where the agents of a launch meet.
func meetAt(o *wire.LaunchOrder) string { return fmt.Sprintf("%s:%d", o.Hosts[0], wire.MeetPort) }

// together lets the agents of a launch meet. They know each other by a word that is in no
// argument: everybody on a node can read those.
func together(o *wire.LaunchOrder) error {
	word := make([]byte, 16)
	if _, err := rand.Read(word); err != nil {
		return err
	}
	o.Env = map[string]string{wire.MeetVariable: hex.EncodeToString(word)}
	return nil
}

// Of files that all nodes share: how much is written in all, which fits into memory
// and says so, because what is more would take hours of every delivery; and how many
// bytes a second the slowest file system takes that is waited for. They are written
// and read twice.
const (
	usualFiles   = 256 << 20
	slowestFiles = 5_000_000
)

// files is how many bytes are written to files.
func (s *subject) files() int64 {
	switch {
	case s.m.Files > 0:
		return s.m.Files
	case s.m.Files == muster.FilesBeyondMemory:
		var memory int64
		for _, m := range s.machines {
			memory += m.Facts.Shaped(s.cluster.Spec.Shape).Memory
		}
		return memory + memory/10
	}
	return usualFiles
}

// probeArgs are the arguments of the probe.
func probeArgs(r *analysis.Run) []string {
	args := []string{string(r.Mode), "--seed", strconv.FormatUint(r.Seed, 10), "--seconds", strconv.FormatFloat(r.Budget.Seconds(), 'g', -1, 64)}
	if len(r.Only) > 0 {
		args = append(args, "--only", strings.Join(r.Only, ","))
	}
	if len(r.Sizes) > 0 {
		sizes := make([]string, len(r.Sizes))
		for i, n := range r.Sizes {
			sizes[i] = strconv.FormatInt(n, 10)
		}
		args = append(args, "--sizes", strings.Join(sizes, ","))
	}
	if len(r.Rounds) > 0 {
		args = append(args, "--rounds", "-")
	}
	return args
}

// probeInput is what the probe reads: who meets whom, in one line. Of a thousand
// nodes that is more than an argument may be long.
func probeInput(r *analysis.Run) (string, error) {
	if len(r.Rounds) == 0 {
		return "", nil
	}
	var b strings.Builder
	for i, pairs := range r.Rounds {
		if i > 0 {
			b.WriteByte('/')
		}
		for k, p := range pairs {
			if k > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%d-%d", p.A, p.B)
		}
	}
	b.WriteByte('\n')
	if b.Len() > wire.MaxLaunchInput {
		return "", muster.Errorf(muster.EUnavailable, "the pairs of %d nodes are more than a launch can be given", len(r.Nodes)).
			WithHint("measure some of the nodes: `muster certificate run CLUSTER --nodes ...`")
	}
	return b.String(), nil
}

// longest is when a launch is ended: far above what it should take, because a
// machine that shares its processors with ten others takes ten times as long.
func longest(r analysis.Run, nodes int) time.Duration {
	const metrics = 30 // that have a budget each, about
	rounds := max(1, len(r.Rounds))
	return time.Minute + 10*time.Duration(metrics*rounds)*r.Budget + time.Duration(nodes)*time.Second
}

// verify reads what a step printed on these hosts, in the order of ranks. EInvalid: it
// is no measurement, or one of others.
func (st step) verify(path string, hosts []string) error {
	if st.run == nil {
		_, err := readConditions(path)
		return err
	}
	l, err := readLaunch(path)
	switch {
	case err != nil:
		return err
	case l.Mode != st.run.Mode:
		return muster.Errorf(muster.EInvalid, "mode %s was measured, not %s", l.Mode, st.run.Mode)
	case len(l.Ranks) != len(hosts)*max(1, st.run.PerNode):
		return muster.Errorf(muster.EInvalid, "%d ranks measured, not %d", len(l.Ranks), len(hosts)*max(1, st.run.PerNode))
	case st.run.PerNode > 1: // mpirun has an order of its own
		return eachHas(l.Ranks, hosts, st.run.PerNode)
	}
	for i, r := range l.Ranks {
		if r.Host != hosts[i] {
			return muster.Errorf(muster.EInvalid, "rank %d measured on %s, not on %s", i, r.Host, hosts[i])
		}
	}
	return nil
}

// eachHas verifies that every host has as many ranks as it should.
func eachHas(ranks []analysis.RankFacts, hosts []string, each int) error {
	on := map[string]int{}
	for _, r := range ranks {
		on[r.Host]++
	}
	for _, h := range hosts {
		if on[h] != each {
			return muster.Errorf(muster.EInvalid, "%d ranks measured on %s, not %d", on[h], h, each)
		}
	}
	return nil
}

func readLaunch(path string) (analysis.Launch, error) {
	f, err := os.Open(path)
	if err != nil {
		return analysis.Launch{}, err
	}
	defer func() { _ = f.Close() }()
	return analysis.Read(f, analysis.DefaultLimits())
}
