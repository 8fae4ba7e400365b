package analysis

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// What is measured again of suspected links at most: so many rounds of disjoint
// pairs, with so many of them in each.
const (
	againRounds = 3
	againPairs  = 8
)

// SuspectLinks are the links that are to be measured again: those that are low, of
// which most is missing, as far as they fit into few rounds.
func SuspectLinks(judged []FabricJudged) []Pair {
	worst := map[Pair]float64{}
	for _, f := range judged {
		for _, l := range f.Links {
			if l.Metric.Verdict == muster.GradeLow {
				worst[l.Pair] = max(worst[l.Pair], l.Deficit)
			}
		}
	}
	var all []Pair
	for p := range worst {
		all = append(all, p)
	}
	slices.SortFunc(all, func(p, q Pair) int { return cmp.Or(cmp.Compare(worst[q], worst[p]), p.A-q.A, p.B-q.B) })
	var list []Pair
	for _, round := range pack(all, againRounds, againPairs) {
		list = append(list, round...)
	}
	return list
}

// pack puts pairs into rounds in which nobody is twice, in their order; what does
// not fit is left out. 0 rounds or pairs: any number.
func pack(pairs []Pair, rounds, each int) [][]Pair {
	var out [][]Pair
	for _, p := range pairs {
		at := slices.IndexFunc(out, func(round []Pair) bool {
			return (each == 0 || len(round) < each) && !slices.ContainsFunc(round, func(q Pair) bool { return p.A == q.A || p.A == q.B || p.B == q.A || p.B == q.B })
		})
		switch {
		case at >= 0:
			out[at] = append(out[at], p)
		case rounds == 0 || len(out) < rounds:
			out = append(out, []Pair{p})
		}
	}
	return out
}

// ConfirmLinks says what is launched because some links are suspects: they alone,
// and each of their ends with a partner that is known to be good, which reports what is
// another now than it was. Suspects are nodes that may be bad themselves; first is
// what was launched before: a partner is one that was met in it, if there is one. It
// is as often as the first time. Where no end has a partner nothing is launched.
func ConfirmLinks(places []Place, links []Pair, suspects []int, first []Run, level muster.Validation, seed uint64) []Run {
	r := rand.New(rand.NewPCG(seed, uint64(len(places))))
	var ends, good []int
	for _, l := range links {
		ends = append(ends, l.A, l.B)
	}
	for i := range places {
		if !slices.Contains(suspects, i) && !slices.Contains(ends, i) {
			good = append(good, i)
		}
	}
	if len(links) == 0 || len(good) == 0 {
		return nil
	}
	ends = slices.Compact(slices.Sorted(slices.Values(ends)))
	known := met(first)
	var beside []Pair
	for _, end := range ends {
		r.Shuffle(len(good), func(i, j int) { good[i], good[j] = good[j], good[i] })
		at := max(0, slices.IndexFunc(good, func(g int) bool { return known[pairOf(end, g)] }))
		beside = append(beside, pairOf(end, good[at]))
	}
	rounds := slices.Concat(pack(links, 0, againPairs), pack(beside, 0, againPairs))
	var nodes []int
	for _, p := range slices.Concat(links, beside) {
		nodes = append(nodes, p.A, p.B)
	}
	nodes = slices.Compact(slices.Sorted(slices.Values(nodes)))
	var runs []Run
	for replicate := range Launches(level) {
		run := Run{Mode: Pairs, Seed: r.Uint64(), Budget: budget(level, Pairs), Replicate: replicate}
		rank := map[int]int{}
		for i, at := range r.Perm(len(nodes)) {
			rank[nodes[at]] = i
			run.Nodes = append(run.Nodes, nodes[at])
		}
		for _, at := range r.Perm(len(rounds)) {
			var round []Pair
			for _, p := range rounds[at] {
				round = append(round, pairOf(rank[p.A], rank[p.B]))
			}
			run.Rounds = append(run.Rounds, round)
		}
		runs = append(runs, run)
	}
	return runs
}

// met are the pairs that launches measure.
func met(runs []Run) map[Pair]bool {
	out := map[Pair]bool{}
	for _, run := range runs {
		for _, round := range run.Rounds {
			for _, p := range round {
				out[pairOf(run.Nodes[p.A], run.Nodes[p.B])] = true
			}
		}
	}
	return out
}

// LinksAgain judges links that were measured again, and puts what they showed in the
// place of what made them suspects. They are held against what their nodes and their
// distance promised the first time, corrected by how the good pairs beside them
// changed since. That any link is called low which is like the others has the chance
// Rules.Condemn, over all figures: suspects are those that looked worst, so every test
// of the first time counts.
func (r Rules) LinksAgain(fabrics []Fabric, judged []FabricJudged, again []Fabric, links []Pair) error {
	tests := 0
	for _, j := range judged {
		tests += j.tests()
	}
	for i, f := range fabrics {
		at := slices.IndexFunc(again, func(o Fabric) bool { return o.Name == f.Name && o.Size == f.Size })
		if at < 0 {
			continue
		}
		if err := r.linksAgain(f, &judged[i], again[at], links, tests); err != nil {
			return err
		}
	}
	return nil
}

func (r Rules) linksAgain(f Fabric, judged *FabricJudged, again Fabric, links []Pair, tests int) error {
	change, ok := f.change(again, links)
	if !ok {
		return nil
	}
	as := Figure{Less: f.Less}
	now := f
	now.Links = slices.Clone(f.Links)
	replaced := map[Pair]bool{}
	for i, l := range now.Links {
		at := again.link(l.Pair)
		if at < 0 || !slices.Contains(links, l.Pair) {
			continue
		}
		l.Launches, l.Which = slices.Clone(again.Links[at].Launches), nil
		for k, v := range l.Launches {
			l.Launches[k] = as.value(as.better(v) + change)
		}
		now.Links[i], replaced[l.Pair] = l, true
	}
	var out FabricJudged
	named := Figure{Name: f.Name, Unit: f.Unit, Size: f.Size, Less: f.Less}
	pairs, tiers, err := r.links(now, named, &out)
	if err != nil {
		return err
	}
	if err := out.blame(r, now, named, pairs, tiers); err != nil {
		return err
	}
	var list []Judged
	var at []int
	for i, l := range out.Links {
		if replaced[l.Pair] && !math.IsNaN(l.P) {
			list, at = append(list, l.Judged), append(at, i)
		}
	}
	if len(list) == 0 {
		return nil
	}
	for len(list) < tests { // the others of the first time, none of which is asked now
		other := list[0]
		other.P, other.Deficit = 1, 0
		list = append(list, other)
	}
	if err := decide(r.tests(list), stat.Holm, r.Condemn); err != nil {
		return err
	}
	for k, i := range at {
		p := out.Links[i].Pair
		to := slices.IndexFunc(judged.Links, func(l JudgedLink) bool { return l.Pair == p })
		list[k].times(as.value(as.better(1) - change))
		judged.Links[to] = JudgedLink{Pair: p, Judged: list[k], Again: true}
	}
	return nil
}

// tests are how many there were.
func (out *FabricJudged) tests() int {
	n := 0
	count := func(j Judged) {
		if !math.IsNaN(j.P) {
			n++
		}
	}
	for _, j := range out.Nodes {
		count(j)
	}
	for _, l := range out.Links {
		count(l.Judged)
	}
	for _, t := range out.Tiers {
		count(t.Judged)
	}
	return n
}

// link is the number of a pair; -1 if it was not measured.
func (f Fabric) link(p Pair) int {
	return slices.IndexFunc(f.Links, func(l Link) bool { return l.Pair == p && len(l.Launches) > 0 })
}

// change is how much better, as a logarithm, good pairs were the first time than
// again: fewer work at once now. False if there are none that were measured both times.
func (f Fabric) change(again Fabric, links []Pair) (float64, bool) {
	as := Figure{Less: f.Less}
	var list []float64
	for _, l := range again.Links {
		if i := f.link(l.Pair); i >= 0 && len(l.Launches) > 0 && !slices.Contains(links, l.Pair) {
			list = append(list, as.better(stat.Median(f.Links[i].Launches))-as.better(stat.Median(l.Launches)))
		}
	}
	if len(list) == 0 {
		return 0, false
	}
	return stat.Median(list), true
}

// times multiplies every value of a figure: in the units of
// another time.
func (j *Judged) times(factor float64) {
	m := &j.Metric
	m.Median, m.Min, m.Max = m.Median*factor, m.Min*factor, m.Max*factor
	for i := range m.ByLaunch {
		m.ByLaunch[i] *= factor
	}
	if m.Interval != nil {
		m.Interval = &muster.Interval{Low: m.Interval.Low * factor, High: m.Interval.High * factor, Level: m.Interval.Level}
	}
	if m.Reference != nil {
		ref := *m.Reference
		ref.Value *= factor
		m.Reference = &ref
	}
}
