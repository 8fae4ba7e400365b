package measure

import (
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/wire"
)

type nodeConditions = wire.NodeConditions

// candidates are the nodes with the conditions under which they were measured.
func (s *subject) candidates(said measured) []analysis.Candidate {
	ranks, library, transport := map[string]analysis.RankFacts{}, "", map[string][]string{}
	var build analysis.Launch
	for _, l := range said.first {
		if l.Mode == analysis.Disk || l.Mode == analysis.Net || l.Mode.Sweeps() {
			continue // by programs of others, without MPI; or with other ranks than usual
		}
		library = l.MPI
		if build.Source == "" {
			build = l
		}
		for _, r := range l.Ranks {
			if l.Mode == analysis.Pairs || ranks[r.Host].Host == "" {
				ranks[r.Host] = r
			}
		}
		for _, t := range l.Transports {
			if l.Mode == analysis.Pairs && t.Rank < len(l.Ranks) {
				transport[l.Ranks[t.Rank].Host] = append(t.PML, t.BTL...)
			}
		}
	}
	nodes := s.validated()
	list := make([]analysis.Candidate, len(nodes))
	for i, n := range nodes {
		m := s.machines[i]
		var c muster.TestEnvironment
		for _, read := range said.conditions {
			if x, ok := read[n.Name]; ok {
				c = x.Conditions.Bounded() // the newest word
			}
		}
		c.Provider, c.Image, c.Oversubscribed, c.MPI = m.Provider, s.cluster.Image, m.Facts.Oversubscribed, library
		c.Shape, c.LinkRate = s.cluster.Spec.Shape, s.cluster.Spec.LinkRate
		if f := s.nodes[i].VM; f != nil {
			c.VM, c.VMSettings, c.Steal = f.Condition(), f.Settings, stolen(said, n.Name)
		}
		if c.Processor == "" {
			c.Processor = m.Facts.Processor
		}
		if r, ok := ranks[n.Name]; ok {
			c.Pinning = "cpus " + r.CPUs
			if r.BLAS != "" {
				c.BLAS = &muster.Library{File: r.BLAS, Config: r.BLASConfig}
			}
		}
		c.Transport = strings.Join(transport[n.Name], " ")
		if build.Source != "" {
			c.Probe = &muster.Probe{Source: build.Source, Compiler: build.Compiler, Flags: build.Flags}
		}
		neighbours := s.neighbours[i]
		c.Neighbours, c.Shared = &neighbours, neighbours > 0
		list[i] = analysis.Candidate{Node: n, Machine: m.ID, Conditions: c, Simulated: s.providers.Of(m.Provider).Simulated}
	}
	return list
}

// stolen is the share of its processors' time that a virtual machine did not get while it was measured; nil if nobody counted.
func stolen(said measured, name string) *float64 {
	lost, all := 0.0, 0.0
	for k := 1; k < len(said.conditions); k++ {
		before, a := said.conditions[k-1][name]
		after, b := said.conditions[k][name]
		if !a || !b {
			continue
		}
		m := after.Counters.Since(before.Counters)
		if span := m.Seconds * float64(m.Cores); span > 0 && m.Steal >= 0 && m.Steal < 1e9 && span < 1e12 {
			lost, all = lost+m.Steal, all+span
		}
	}
	if all == 0 {
		return nil
	}
	return new(min(lost/all, 1))
}

// began is when the first launch was made.
func (s *subject) began() time.Time {
	if s.m.Began.IsZero() {
		return s.m.Wanted
	}
	return s.m.Began
}

func formatSeed(n uint64) string { return strconv.FormatUint(n, 10) }

// witnesses are what is known of the nodes beside their figures: their conditions,
// and what they counted between two readings.
func (s *subject) witnesses(said measured, candidates []analysis.Candidate, past past) []analysis.Witness {
	list := make([]analysis.Witness, len(candidates))
	for i, c := range candidates {
		list[i].Conditions, list[i].Usual = c.Conditions, past.usual(c.Class, c.Conditions.Image)
		for k := 1; k < len(said.conditions); k++ {
			before, a := said.conditions[k-1][c.Name]
			after, b := said.conditions[k][c.Name]
			if a && b {
				list[i].Meanwhile = append(list[i].Meanwhile, after.Counters.Since(before.Counters))
			}
		}
	}
	return list
}
