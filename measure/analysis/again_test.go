package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/analysis"
)

// Suspected links are measured again, within bounds: worst first, nobody twice in a
// round, and beside them only partners that nobody suspects.
func TestConfirmLinks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		places := drawPlaces(r, 3, 60)
		n := len(places)
		seed := rapid.Uint64().Draw(r, "seed")
		var judged analysis.FabricJudged
		for range rapid.IntRange(0, 80).Draw(r, "links") {
			a := rapid.IntRange(0, n-2).Draw(r, "a")
			p := analysis.Pair{A: a, B: rapid.IntRange(a+1, n-1).Draw(r, "b")}
			verdict := rapid.SampledFrom([]muster.Grade{muster.GradeLow, muster.GradePass}).Draw(r, "verdict")
			judged.Links = append(judged.Links, analysis.JudgedLink{Pair: p, Judged: analysis.Judged{Deficit: rapid.Float64Range(0.05, 0.9).Draw(r, "deficit"), Metric: muster.Metric{Verdict: verdict}}})
		}
		links := analysis.SuspectLinks([]analysis.FabricJudged{judged, {}})
		for _, p := range links {
			if !slices.ContainsFunc(judged.Links, func(l analysis.JudgedLink) bool { return l.Pair == p && l.Metric.Verdict == muster.GradeLow }) {
				r.Fatalf("%v is no suspect", p)
			}
		}
		once := map[analysis.Pair]bool{}
		for _, p := range links {
			once[p] = true
		}
		if len(links) > 24 || len(once) != len(links) {
			r.Fatalf("%d links: %v", len(links), links)
		}
		worst := 0.0
		for _, l := range judged.Links {
			if l.Metric.Verdict == muster.GradeLow {
				worst = max(worst, l.Deficit)
			}
		}
		if worst > 0 && !slices.ContainsFunc(judged.Links, func(l analysis.JudgedLink) bool { return l.Deficit == worst && slices.Contains(links, l.Pair) }) {
			r.Fatal("the worst is not measured again")
		}
		var bad []int
		for i := range n {
			if rapid.IntRange(0, 5).Draw(r, "bad") == 0 {
				bad = append(bad, i)
			}
		}
		first := analysis.Plan(places, muster.ValidateQuick, seed, 1)
		runs := analysis.ConfirmLinks(places, links, bad, first, muster.ValidateQuick, seed)
		if !reflect.DeepEqual(runs, analysis.ConfirmLinks(places, links, bad, first, muster.ValidateQuick, seed)) {
			r.Fatal("the same seed gave another plan")
		}
		ends := map[int]bool{}
		for _, l := range links {
			ends[l.A], ends[l.B] = true, true
		}
		good := 0
		for i := range n {
			if !ends[i] && !slices.Contains(bad, i) {
				good++
			}
		}
		want := analysis.Launches(muster.ValidateQuick)
		if len(links) == 0 || good == 0 {
			want = 0
		}
		if len(runs) != want {
			r.Fatalf("%d launches, not %d", len(runs), want)
		}
		for _, run := range runs {
			disjoint(r, len(run.Nodes), run.Rounds)
			times, partners := map[analysis.Pair]int{}, map[int]int{}
			for _, round := range run.Rounds {
				for _, p := range round {
					a, b := run.Nodes[p.A], run.Nodes[p.B]
					pair := analysis.Pair{A: min(a, b), B: max(a, b)}
					times[pair]++
					if slices.Contains(links, pair) {
						continue
					}
					if ends[b] {
						a, b = b, a
					}
					if !ends[a] || ends[b] || slices.Contains(bad, b) {
						r.Fatalf("%v is no end with a good partner", pair)
					}
					partners[a]++
				}
			}
			for _, l := range links {
				if times[l] != 1 || partners[l.A] != 1 || partners[l.B] != 1 {
					r.Fatalf("%v is measured %d times, its ends with %d and %d partners", l, times[l], partners[l.A], partners[l.B])
				}
			}
			if len(run.Nodes) > 2*2*len(links) || run.Mode != analysis.Pairs {
				r.Fatalf("%d nodes for %d links", len(run.Nodes), len(links))
			}
		}
	})
}

// Partners are those whose link was measured the first time, if there are some: only
// those tell what has changed.
func TestPartnersWereMet(t *testing.T) {
	t.Parallel()
	places := racks(200, 32)
	first := analysis.Plan(places, muster.ValidateQuick, 1, 1)
	known := map[analysis.Pair]bool{}
	for _, run := range first {
		for _, round := range run.Rounds {
			for _, p := range round {
				a, b := run.Nodes[p.A], run.Nodes[p.B]
				known[analysis.Pair{A: min(a, b), B: max(a, b)}] = true
			}
		}
	}
	link := analysis.Pair{A: 3, B: 150}
	for _, run := range analysis.ConfirmLinks(places, []analysis.Pair{link}, nil, first, muster.ValidateQuick, 5) {
		if len(run.Nodes) != 4 {
			t.Errorf("%d nodes", len(run.Nodes))
		}
		for _, round := range run.Rounds {
			for _, p := range round {
				a, b := run.Nodes[p.A], run.Nodes[p.B]
				if pair := (analysis.Pair{A: min(a, b), B: max(a, b)}); pair != link && !known[pair] {
					t.Errorf("%v was not met before", pair)
				}
			}
		}
	}
}

// relook is a fabric that is measured twice: what its links are like stays.
type relook struct {
	places []analysis.Place
	node   []float64
	rest   map[analysis.Pair]float64
	r      *rand.Rand
}

func newRelook(nodes int, r *rand.Rand) *relook {
	w := &relook{places: racks(nodes, 32), rest: map[analysis.Pair]float64{}, r: r}
	for range nodes {
		w.node = append(w.node, nodeSpread*r.NormFloat64())
	}
	return w
}

// measure measures pairs; of all, something is added to the logarithm, and of some more.
func (w *relook) measure(pairs []analysis.Pair, all float64, some map[analysis.Pair]float64) analysis.Fabric {
	f := analysis.Fabric{Name: "pair.bandwidth", Unit: "B/s", Size: 1 << 20, Nodes: len(w.places)}
	for _, p := range pairs {
		if _, ok := w.rest[p]; !ok {
			w.rest[p] = pairNoise * w.r.NormFloat64()
		}
		d := analysis.Apart(w.places[p.A], w.places[p.B])
		v := w.node[p.A] + w.node[p.B] + w.rest[p] + all + some[p]
		if d == analysis.SameSite {
			v -= 0.3
		}
		f.Links = append(f.Links, analysis.Link{Pair: p, Distance: d, Launches: simulatedLaunches(v, w.r)})
	}
	return f
}

// twice looks once and, at what is suspected, again: all that is measured then is a
// tenth faster, because less is on its way. One link lacks a share; lasts: the second
// time it still does. It returns that link, those that were suspected and those that
// are confirmed.
func (w *relook) twice(t *testing.T, missing float64, lasts bool) (slow analysis.Pair, before, after []analysis.Pair) {
	t.Helper()
	seed := w.r.Uint64()
	var pairs []analysis.Pair
	first := analysis.Plan(w.places, muster.ValidateQuick, seed, 1)
	i := slices.IndexFunc(first, func(run analysis.Run) bool { return run.Mode == analysis.Pairs })
	for _, p := range pairsOf(first[i]) {
		if !slices.Contains(pairs, p) {
			pairs = append(pairs, p)
		}
	}
	slow = pairs[0]
	defect := map[analysis.Pair]float64{slow: math.Log1p(-missing)}
	f := w.measure(pairs, 0, defect)
	rules := analysis.LinkRules(muster.ValidateQuick)
	j, err := rules.Fabric(f)
	if err != nil {
		t.Fatal(err)
	}
	low := func(j analysis.FabricJudged) (list []analysis.Pair) {
		for _, l := range j.Links {
			if l.Metric.Verdict == muster.GradeLow {
				list = append(list, l.Pair)
			}
		}
		return list
	}
	before = low(j)
	suspects := analysis.SuspectLinks([]analysis.FabricJudged{j})
	runs := analysis.ConfirmLinks(w.places, suspects, nil, first[i:i+1], muster.ValidateQuick, seed)
	if len(runs) == 0 {
		return slow, before, before
	}
	if !lasts {
		defect = nil
	}
	again := w.measure(pairsOf(runs[0]), math.Log(1.1), defect)
	judged := []analysis.FabricJudged{j}
	if err := rules.LinksAgain([]analysis.Fabric{f}, judged, []analysis.Fabric{again}, suspects); err != nil {
		t.Fatal(err)
	}
	for _, l := range judged[0].Links {
		if l.Again != slices.Contains(suspects, l.Pair) {
			t.Errorf("%v: measured again: %v", l.Pair, l.Again)
		}
		if !l.Again {
			continue
		}
		at := slices.IndexFunc(again.Links, func(o analysis.Link) bool { return o.Pair == l.Pair })
		if m, is := l.Metric, stat.Median(again.Links[at].Launches); math.Abs(m.Median/is-1) > 1e-9 || math.Abs(m.Reference.Value*(1-l.Deficit)/is-1) > 1e-9 || m.ByLaunch[0]/again.Links[at].Launches[0]-1 > 1e-9 {
			t.Errorf("%v: the figure is %v and was %v; %v is normal, %v missing", l.Pair, m.Median, is, m.Reference.Value, l.Deficit)
		}
	}
	return slow, before, low(judged[0])
}

func pairsOf(run analysis.Run) []analysis.Pair {
	var list []analysis.Pair
	for _, round := range run.Rounds {
		for _, p := range round {
			a, b := run.Nodes[p.A], run.Nodes[p.B]
			list = append(list, analysis.Pair{A: min(a, b), B: max(a, b)})
		}
	}
	return list
}

// The second look takes false alarms away: nearly all of those that were a moment's,
// and most of those that are what links differ by. Slow links stay found.
func TestSecondLookAtLinks(t *testing.T) {
	t.Parallel()
	var once, twice, all int
	for _, nodes := range []int{6, 8, 16, 64} {
		runs := 150
		if nodes == 64 {
			runs = 40
		}
		if n, err := strconv.Atoi(os.Getenv("MUSTER_SECOND_LOOKS")); err == nil {
			runs = n
		}
		var alarms, stay, moments, remain, seen, kept int
		for run := range runs {
			look := func(of uint64, missing float64, lasts bool) (slow analysis.Pair, before, after []analysis.Pair) {
				w := newRelook(nodes, rand.New(rand.NewPCG(uint64(nodes)<<32|uint64(run), of)))
				return w.twice(t, missing, lasts)
			}
			_, before, after := look(1, 0, true)
			alarms, stay = alarms+some(before), stay+some(after)
			_, before, after = look(2, 0.25, false)
			moments, remain = moments+some(before), remain+some(after)
			slow, before, after := look(3, 0.25, true)
			if slices.Contains(before, slow) {
				seen++
				if slices.Contains(after, slow) {
					kept++
				}
			}
		}
		share := func(n int) string {
			i, _ := stat.ClopperPearson(n, runs, 0.95)
			return fmt.Sprintf("%.1f %% (%.1f-%.1f)", 100*float64(n)/float64(runs), 100*i.Low, 100*i.High)
		}
		t.Logf("%d nodes: false alarms %s, after the second look %s; where a quarter is missing for a moment %s, %s; for ever %s, %s",
			nodes, share(alarms), share(stay), share(moments), share(remain), share(seen), share(kept))
		once, twice, all = once+alarms, twice+stay, all+runs
		// Those that remain are false alarms, too.
		if i, _ := stat.ClopperPearson(remain, runs, 0.999); moments < runs*8/10 || i.Low > 0.03 {
			t.Errorf("%d nodes: of %d links that were slow for a moment %d were seen, and %d confirmed", nodes, runs, moments, remain)
		}
		if seen < runs*8/10 || kept < seen*8/10 {
			t.Errorf("%d nodes: of %d slow links %d were seen, and %d of them confirmed", nodes, runs, seen, kept)
		}
	}
	if twice > once*2/3 {
		t.Errorf("in %d runs without any defect there was a false alarm in %d, and after the second look in %d", all, once, twice)
	}
}

func some(list []analysis.Pair) int { return min(1, len(list)) }
