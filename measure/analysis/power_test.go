package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/analysis"
)

// What a certificate can see, and how often it errs: by simulation with the code
// that judges. Machines of a class differ by 2 %, what is between two of them by
// 3 % more, and launches by half a percent. One node (or link) lacks a share of one
// figure. docs/users/certificate.md has the table, docs/users/pictures the curves; "make power"
// makes both.

const (
	nodeSpread  = 0.02
	pairNoise   = 0.03
	launchNoise = 0.005
	simFigures  = 10 // of each node: all are tests, and one is low
	simLaunches = 6
)

// world is one way of looking.
type world string

const (
	byPeers   world = "a node by itself, beside its peers"
	byHistory world = "a node by itself, with the history of its class"
	byPairs   world = "a node, by its messages with others"
	byLink    world = "a link between two nodes"
)

func worlds() []world { return []world{byPeers, byHistory, byPairs, byLink} }

// defects are the shares that are missing; the first is what a healthy one shows.
func (w world) defects() []float64 {
	if w == byLink {
		return []float64{0, 0.05, 0.1, 0.15, 0.2}
	}
	return []float64{0, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2}
}

func simNodes() []int { return []int{2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024} }

// simRuns are fewer where one costs more: the intervals say what that means.
func simRuns(nodes int) int {
	switch {
	case nodes <= 64:
		return 200
	case nodes <= 128:
		return 100
	case nodes <= 256:
		return 60
	case nodes <= 512:
		return 40
	}
	return 20
}

// alarmRuns are more: where nothing is wrong there is one case to look at.
func alarmRuns(nodes int) int { return min(400, 3*simRuns(nodes)) }

// outcome is what one run showed: whether the culprit was found, by defect, and
// whether anybody was named where nothing was wrong.
type outcome struct {
	found []bool
	alarm bool
}

// simulate is one run; the first defect is none. The same run with another defect
// has the same luck.
func (w world) simulate(nodes, run int, defects []float64) (outcome, error) {
	var out outcome
	for i, d := range defects {
		r := rand.New(rand.NewPCG(uint64(nodes)<<32|uint64(run), uint64(len(w))))
		found, others, err := w.look(nodes, d, r)
		if err != nil {
			return out, err
		}
		out.found = append(out.found, found)
		if i == 0 {
			out.alarm = found || others
		}
	}
	return out, nil
}

// look measures and judges. The culprit is whoever comes first.
func (w world) look(nodes int, defect float64, r *rand.Rand) (found, others bool, err error) {
	if w == byPeers || w == byHistory {
		list, err := family(analysis.NodeRules).Suspects(simulatedFigures(nodes, defect, w == byHistory, r))
		if err != nil {
			return false, false, err
		}
		for _, j := range list {
			if j.Metric.Verdict == muster.GradeLow {
				if j.Node == 0 && j.Metric.Name == "f0" {
					found = true
				} else {
					others = true
				}
			}
		}
		return found, others, nil
	}
	f, culprit := simulatedFabric(nodes, defect, w == byLink, r)
	j, err := family(analysis.LinkRules).Fabric(f)
	if err != nil {
		return false, false, err
	}
	for _, n := range j.Nodes {
		if n.Metric.Verdict == muster.GradeLow {
			if w == byPairs && n.Node == 0 {
				found = true
			} else {
				others = true
			}
		}
	}
	for _, l := range j.Links {
		if l.Metric.Verdict == muster.GradeLow {
			if w == byLink && l.Pair == culprit {
				found = true
			} else {
				others = true
			}
		}
	}
	return found, others, nil
}

// family are rules for one of the three families of a measurement of a cluster, each of
// which may err for a third.
func family(rules func(muster.Validation) analysis.Rules) analysis.Rules {
	r := rules(muster.ValidateQuick)
	r.Suspicion /= 3
	return r
}

func simulatedLaunches(log float64, r *rand.Rand) []float64 {
	list := make([]float64, simLaunches)
	for i := range list {
		list[i] = 100 * math.Exp(log+launchNoise*r.NormFloat64())
	}
	return list
}

func simulatedFigures(nodes int, defect float64, known bool, r *rand.Rand) []analysis.Figure {
	list := make([]analysis.Figure, simFigures)
	for f := range list {
		list[f] = analysis.Figure{Name: fmt.Sprint("f", f), Unit: "op/s"}
		if known {
			history := make([]float64, 60)
			for i := range history {
				history[i] = nodeSpread * r.NormFloat64()
			}
			s, _ := stat.ScaleOf(history)
			list[f].History = &analysis.History{Median: 100 * math.Exp(stat.Median(history)), Spread: s}
		}
		for n := range nodes {
			level := nodeSpread * r.NormFloat64()
			if f == 0 && n == 0 {
				level += math.Log1p(-defect)
			}
			list[f].Series = append(list[f].Series, analysis.Series{Node: n, Launches: simulatedLaunches(level, r)})
		}
	}
	return list
}

func simulatedFabric(nodes int, defect float64, link bool, r *rand.Rand) (analysis.Fabric, analysis.Pair) {
	places := racks(nodes, 32)
	f := analysis.Fabric{Name: "pair.bandwidth", Unit: "B/s", Size: 1 << 20, Nodes: nodes}
	levels := make([]float64, nodes)
	for i := range levels {
		levels[i] = nodeSpread * r.NormFloat64()
	}
	culprit := analysis.Pair{A: -1, B: -1}
	for _, round := range analysis.Rounds(places, r) {
		for _, p := range round {
			d := analysis.Apart(places[p.A], places[p.B])
			v := levels[p.A] + levels[p.B] + pairNoise*r.NormFloat64()
			if d == analysis.SameSite {
				v -= 0.3
			}
			if culprit.A < 0 {
				culprit = p
			}
			if link && p == culprit || !link && p.A == 0 {
				v += math.Log1p(-defect)
			}
			f.Links = append(f.Links, analysis.Link{Pair: p, Distance: d, Launches: simulatedLaunches(v, r)})
		}
	}
	return f, culprit
}

// shares are how often something was seen, of how many runs, with the interval
// that holds the chance with 95 %.
type shares struct{ seen, runs int }

func (s shares) interval() stat.Interval {
	i, err := stat.ClopperPearson(s.seen, s.runs, 0.95)
	if err != nil {
		panic(err) // the counts are ours
	}
	return i
}

func (s shares) value() float64 { return float64(s.seen) / float64(s.runs) }

// point is what was seen with so many nodes.
type point struct {
	nodes int
	found []shares // by defect
	alarm shares
}

// curve simulates a world with so many nodes, on all processors.
func (w world) curve(nodes, runs, alarms int) (point, error) {
	p := point{nodes: nodes, found: make([]shares, len(w.defects())), alarm: shares{runs: alarms}}
	for i := range p.found {
		p.found[i].runs = runs
	}
	var mu sync.Mutex
	var first error
	next := make(chan int)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for run := range next {
				defects := w.defects()
				if run >= runs {
					defects = defects[:1]
				}
				o, err := w.simulate(nodes, run, defects)
				mu.Lock()
				if err != nil {
					first = err
				}
				for i, found := range o.found {
					if found && run < runs {
						p.found[i].seen++
					}
				}
				if o.alarm {
					p.alarm.seen++
				}
				mu.Unlock()
			}
		})
	}
	for run := range alarms {
		next <- run
	}
	close(next)
	all.Wait()
	return p, first
}

const (
	powerBegin = "<!-- power: made by make power -->\n"
	powerEnd   = "<!-- /power -->\n"
	powerDocs  = "../../docs/users/certificate.md"
)

// TestPowerCurves makes the pictures and the table.
func TestPowerCurves(t *testing.T) {
	if os.Getenv("MUSTER_POWER") == "" {
		t.Skip("make power simulates for some minutes, and publishes")
	}
	curves := map[world][]point{}
	for _, w := range worlds() {
		for _, n := range simNodes() {
			p, err := w.curve(n, simRuns(n), alarmRuns(n))
			if err != nil {
				t.Fatal(err)
			}
			curves[w] = append(curves[w], p)
		}
		t.Logf("%s: done", w)
	}
	if err := os.MkdirAll("../../docs/users/pictures", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"power": powerPicture(curves), "false-alarms": alarmPicture(curves)} {
		if err := os.WriteFile("../../docs/users/pictures/"+name+".svg", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(powerDocs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), powerBegin)
	_, after, ok2 := strings.Cut(rest, powerEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", powerDocs)
	}
	if err := os.WriteFile(powerDocs, []byte(before+powerBegin+powerTable(curves)+powerEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// powerTable has a line for each number of nodes.
func powerTable(curves map[world][]point) string {
	var b strings.Builder
	for _, w := range worlds() {
		fmt.Fprintf(&b, "\nOf %s:\n\n| nodes | runs |", w)
		for _, d := range w.defects()[1:] {
			fmt.Fprintf(&b, " %.0f %% missing |", 100*d)
		}
		b.WriteString(" false alarm |\n|---|---|" + strings.Repeat("---|", len(w.defects())) + "\n")
		for _, p := range curves[w] {
			fmt.Fprintf(&b, "| %d | %d |", p.nodes, p.found[0].runs)
			for _, s := range append(p.found[1:len(p.found):len(p.found)], p.alarm) {
				i := s.interval()
				fmt.Fprintf(&b, " %.0f (%.0f-%.0f) |", 100*s.value(), 100*i.Low, 100*i.High)
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	return b.String()
}

// What is published is what the code does now: some cells are simulated again, with
// other luck.
func TestPowerIsPublished(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(powerDocs)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \|((?: \d+ \(\d+-\d+\) \|)+)$`)
	for _, w := range worlds() {
		_, part, ok := strings.Cut(string(b), fmt.Sprintf("\nOf %s:\n", w))
		if !ok {
			t.Errorf("nothing is published of %s", w)
			continue
		}
		part, _, _ = strings.Cut(part, "\nOf ")
		rows := row.FindAllStringSubmatch(part, -1)
		if len(rows) != len(simNodes()) {
			t.Errorf("%s: %d rows", w, len(rows))
			continue
		}
		const again, at = 60, 8
		for _, r := range rows {
			cells := regexp.MustCompile(` (\d+) \(`).FindAllStringSubmatch(r[3], -1)
			if r[1] != strconv.Itoa(at) || len(cells) != len(w.defects()) {
				continue
			}
			seen := make([]int, len(w.defects()))
			for run := range again {
				o, err := w.simulate(at, 1_000_000+run, w.defects())
				if err != nil {
					t.Fatal(err)
				}
				for i, found := range o.found[1:] {
					if found {
						seen[i]++
					}
				}
				if o.alarm {
					seen[len(seen)-1]++
				}
			}
			for i, c := range cells {
				published, _ := strconv.Atoi(c[1])
				now, err := stat.ClopperPearson(seen[i], again, 0.9999)
				if err != nil {
					t.Fatal(err)
				}
				// Published shares are rounded, and have an error of their own.
				if v := float64(published) / 100; v < now.Low-0.05 || v > now.High+0.05 {
					t.Errorf("%s, %d nodes, column %d: %d %% is published, and %d of %d are seen", w, at, i, published, seen[i], again)
				}
			}
		}
	}
}

// What a certificate says could have been seen, with a chance of 90 %, is seen that
// often: of nodes beside peers and with a history.
func TestDetectableIsThePower(t *testing.T) {
	t.Parallel()
	const runs = 150
	rules := analysis.NodeRules(muster.ValidateQuick)
	for _, c := range []struct {
		nodes int
		known bool
	}{{8, false}, {32, false}, {2, true}} {
		found, said := 0, 0.0
		for run := range runs {
			luck := func() *rand.Rand { return rand.New(rand.NewPCG(uint64(c.nodes), uint64(run))) }
			healthy, err := rules.Suspects(simulatedFigures(c.nodes, 0, c.known, luck()))
			if err != nil {
				t.Fatal(err)
			}
			quoted := healthy[0].Metric.Detectable
			if quoted == nil {
				t.Fatalf("%d nodes: nothing could be seen: %+v", c.nodes, healthy[0])
			}
			said += *quoted / runs
		}
		for run := range runs {
			list, err := rules.Suspects(simulatedFigures(c.nodes, said, c.known, rand.New(rand.NewPCG(uint64(c.nodes), uint64(1000+run)))))
			if err != nil {
				t.Fatal(err)
			}
			if list[0].Metric.Verdict == muster.GradeLow {
				found++
			}
		}
		i, err := stat.ClopperPearson(found, runs, 0.999)
		if err != nil {
			t.Fatal(err)
		}
		if i.Low > 0.9 || i.High < 0.9 {
			t.Errorf("%d nodes, history %v: %.3f is said to be seen 90 times of 100, and is %d times of %d (%.2f to %.2f)", c.nodes, c.known, said, found, runs, i.Low, i.High)
		}
	}
}
