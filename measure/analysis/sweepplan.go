package analysis

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// What a sweep may cost. What is left out for that is told.
const (
	sweepLaunches  = 3    // of everything; one where nodes share processors
	sizeRounds     = 4    // of pairs in a launch, of every size
	streamRounds   = 2    // of pairs in a launch, of which each takes ten seconds
	mostNodeCounts = 6    // numbers of nodes
	mostSweepRanks = 4096 // in a launch with all cores
	fileClients    = 16   // that use one file
)

// sweepBudget is how long each metric of a mode may take in one launch, at all sizes
// together.
func sweepBudget(m Mode) time.Duration {
	return map[Mode]time.Duration{
		Sizes: 1200 * time.Millisecond, Inside: 1200 * time.Millisecond, Scale: 200 * time.Millisecond, Clients: 2 * time.Second, Streams: time.Second,
	}[m]
}

// PlanSweeps says what is launched to measure over ranges, at level full only, and what
// of it is left out and why. Cores is how many each node has, 0 if that is not known.
// The same seed gives the same plan.
func PlanSweeps(places []Place, cores int, level muster.Validation, seed uint64, crowd int) ([]Run, []muster.Omission) {
	if level != muster.ValidateFull || len(places) == 0 {
		return nil, nil
	}
	p := sweepPlan{places: places, crowd: max(1, crowd), r: rand.New(rand.NewPCG(seed, uint64(len(places)))), seen: map[Mode]int{}}
	single, together := p.counts(cores)
	replicates := sweepLaunches
	if p.crowd > 1 {
		replicates = 1
	}
	var between [][]Pair
	if len(places) > 1 {
		between = Rounds(places, p.r)
	}
	for replicate := range replicates {
		from := len(p.runs)
		if len(places) > 1 {
			p.rounds(Sizes, between, replicate, sizeRounds)
			p.rounds(Streams, between, replicate, streamRounds)
		}
		p.add(Run{Mode: Inside, Nodes: p.r.Perm(len(places)), PerNode: 2})
		for _, n := range single {
			p.add(Run{Mode: Scale, Nodes: p.r.Perm(len(places))[:n]})
		}
		for _, n := range together {
			p.add(Run{Mode: Scale, Nodes: p.r.Perm(len(places))[:n], PerNode: cores})
		}
		n := 1
		for 2*n <= min(len(places), fileClients) {
			n *= 2
		}
		p.add(Run{Mode: Clients, Nodes: p.r.Perm(len(places))[:n], PerNode: fileClients / n})
		some := p.runs[from:]
		p.r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		for i := range some {
			some[i].Replicate = p.seen[some[i].Mode]
			p.seen[some[i].Mode]++
		}
	}
	return p.runs, p.omitted
}

// sweepPlan is a plan in the making.
type sweepPlan struct {
	places  []Place
	crowd   int
	r       *rand.Rand
	runs    []Run
	seen    map[Mode]int
	omitted []muster.Omission
}

func (p *sweepPlan) add(run Run) {
	run.Seed, run.Budget = p.r.Uint64(), max(sweepBudget(run.Mode)/time.Duration(p.crowd), leastBudget)
	p.runs = append(p.runs, run)
}

// rounds adds a launch with some of the rounds, other ones in each replicate. Ranks are
// in the order of the nodes, so that rounds mean the same in all of them.
func (p *sweepPlan) rounds(m Mode, all [][]Pair, replicate, most int) {
	most = min(most, len(all))
	if p.crowd > 1 {
		most = min(most, crowdedRounds)
	}
	run := Run{Mode: m}
	for i := range p.places {
		run.Nodes = append(run.Nodes, i)
	}
	for i := range most {
		run.Rounds = append(run.Rounds, all[(replicate*most+i)%len(all)])
	}
	p.add(run)
}

// counts are the numbers of nodes on which pairs and rings are measured, with one rank
// on each and with all cores.
func (p *sweepPlan) counts(cores int) (single, together []int) {
	left := func(format string, args ...any) {
		p.omitted = append(p.omitted, muster.Omission{What: "scale", Text: fmt.Sprintf(format, args...)})
	}
	n := len(p.places)
	var all, out []int
	for k := 1; k < n; k *= 2 {
		all = append(all, k)
	}
	all = append(all, n)
	if len(all) > mostNodeCounts+1 {
		var some []int
		for i, k := range all {
			if i == 0 || i == 1 || (len(all)-1-i)%2 == 0 {
				some = append(some, k)
			} else {
				out = append(out, k)
			}
		}
		all = some
		left("pairs and rings of %s nodes were left out, to save time", numbers(out))
	}
	for _, k := range all {
		if k > 1 {
			single = append(single, k)
		}
	}
	switch {
	case p.crowd > 1:
		left("pairs and rings of all cores were left out, because nodes share them")
	case cores == 0:
		left("pairs and rings of all cores were left out, because nobody knows how many there are")
	case cores > 1:
		out = nil
		for _, k := range all {
			if k*cores > mostSweepRanks {
				out = append(out, k)
			} else {
				together = append(together, k)
			}
		}
		if len(out) > 0 {
			left("rings of all cores of %s nodes were left out: at most %d processes are started", numbers(out), mostSweepRanks)
		}
	}
	return single, together
}

func numbers(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = fmt.Sprint(n)
	}
	return strings.Join(words, ", ")
}

// mostNamed are the pairs that are named where many were left out.
const mostNamed = 40

// LeftOut names the pairs of nodes of which nothing was measured over a range, though
// others were.
func LeftOut(nodes []Node, launches []Launch) []muster.Omission {
	var list []muster.Omission
	for _, of := range []struct {
		metric, what, text string
	}{
		{"size.latency", "size", "by size of the message"},
		{"scale.pingpong.latency", "scale.pingpong", "by ping-pong of one pair at a time"},
		{"streams.tcp.bandwidth", "streams", "by connections and rates"},
	} {
		met := pairsOf(nodes, launches, of.metric)
		all := len(nodes) * (len(nodes) - 1) / 2
		if len(met) == 0 || len(met) == all {
			continue
		}
		var names []string
		for a := 0; a < len(nodes) && len(names) < mostNamed; a++ {
			for b := a + 1; b < len(nodes) && len(names) < mostNamed; b++ {
				if !met[Pair{a, b}] {
					names = append(names, nodes[a].Name+"-"+nodes[b].Name)
				}
			}
		}
		text := fmt.Sprintf("%d of %s were not measured %s: %s", all-len(met), plaintext.Count(all, "pair"), of.text, strings.Join(names, ", "))
		if more := all - len(met) - len(names); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		list = append(list, muster.Omission{What: of.what, Text: text})
	}
	return list
}

// pairsOf are the pairs of nodes that a metric was measured of.
func pairsOf(nodes []Node, launches []Launch, metric string) map[Pair]bool {
	met, at := map[Pair]bool{}, map[string]int{}
	for i, n := range nodes {
		at[n.Name] = i
	}
	for _, l := range launches {
		for _, s := range l.Samples {
			if s.Metric != metric || s.Peer == "" {
				continue
			}
			a, one := at[s.Host]
			b, other := at[s.Peer]
			if one && other && a != b {
				met[pairOf(a, b)] = true
			}
		}
	}
	return met
}
