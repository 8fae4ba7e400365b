package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/measure/compare"
)

// How often something is found of two slices of a host that is never as fast as an hour
// ago, by simulation with the code that judges: histories as compare.Class makes them,
// and everything that a measurement is judged by.
//
// What a host does is three walks that come back to their middle (Ornstein and
// Uhlenbeck), with half of what was forgotten after driftTime. Its processors and its
// memory change by drift, and slices have that in common. Messages need both, and change
// by half of drift by themselves: no figure of a node shows that.

const (
	driftTime  = 2 * time.Hour
	driftNode  = 0.01 // of a figure of a node, from measurement to measurement
	driftPairs = 0.02 // of a figure of messages
)

// drifting is a host with two slices.
type drifting struct {
	drift float64
	r     *rand.Rand
	at    time.Time
	walks [3]float64 // of processors, of memory, of messages: deviations of 1
}

func newDrifting(drift float64, r *rand.Rand) *drifting {
	h := &drifting{drift: drift, r: r, at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range h.walks {
		h.walks[i] = r.NormFloat64()
	}
	return h
}

// wait lets time pass.
func (h *drifting) wait(d time.Duration) {
	h.at = h.at.Add(d)
	keep := math.Exp2(-float64(d) / float64(driftTime))
	for i := range h.walks {
		h.walks[i] = keep*h.walks[i] + math.Sqrt(1-keep*keep)*h.r.NormFloat64()
	}
}

// driftFigure is a figure with what it needs of processors, memory and messages.
type driftFigure struct {
	name, unit           string
	size                 int64
	cores, memory, wires float64
}

func driftNodeFigures() []driftFigure {
	return []driftFigure{
		{"dgemm", "flop/s", 0, 1, 0.1, 0},
		{"mix.O2", "flop/s", 0, 1, 0, 0},
		{"core.int.add", "op/s", 0, 1, 0, 0},
		{"core.int.mul", "op/s", 0, 1, 0, 0},
		{"core.fp.add", "op/s", 0, 1, 0, 0},
		{"core.fp.mul", "op/s", 0, 1, 0, 0},
		{"noise.median", "s", 0, 1, 0, 0},
		{"core.mem.gather", "op/s", 0, 0.3, 0.8, 0},
		{"stream.copy", "B/s", 0, 0.2, 1, 0},
		{"stream.triad", "B/s", 0, 0.2, 1, 0},
		{"latency", "s", 256 << 20, 0.1, 0.8, 0},
	}
}

func driftPairFigures() []driftFigure {
	return []driftFigure{
		{"pair.latency", "s", 8, 1, 0.2, 0.5},
		{"pair.bandwidth", "B/s", 1024, 1, 0.2, 0.5},
		{"pair.bandwidth", "B/s", 65536, 0.8, 0.6, 0.5},
		{"pair.bandwidth", "B/s", 2_000_000, 0.7, 0.8, 0.5},
		{"pair.both", "B/s", 2_000_000, 0.7, 0.8, 0.5},
	}
}

func driftWholeFigures() []driftFigure {
	return []driftFigure{
		{"ring.natural.latency", "s", 8, 1, 0.2, 0.5},
		{"ring.natural.bandwidth", "B/s", 2_000_000, 0.7, 0.8, 0.5},
		{"ring.random.latency", "s", 8, 1, 0.2, 0.5},
		{"ring.random.bandwidth", "B/s", 2_000_000, 0.7, 0.8, 0.5},
	}
}

// launches are those of one figure, of which a share is missing now.
func (h *drifting) launches(f driftFigure, own, missing float64) []float64 {
	log := own*h.r.NormFloat64() + math.Log1p(-missing) + h.drift*(f.cores*h.walks[0]+f.memory*h.walks[1]+f.wires*h.walks[2])
	if analysis.LessIsBetter(f.unit) {
		log = -log
	}
	return simulatedLaunches(log, h.r)
}

// measure measures both slices and what is between them, of which a share is missing:
// of large messages, and a tenth of that of small ones.
func (h *drifting) measure(missing float64) analysis.Collected {
	var c analysis.Collected
	for _, f := range driftNodeFigures() {
		figure := analysis.Figure{Name: f.name, Unit: f.unit, Size: f.size, Less: analysis.LessIsBetter(f.unit)}
		for n := range 2 {
			figure.Series = append(figure.Series, analysis.Series{Node: n, Launches: h.launches(f, driftNode, 0)})
		}
		c.Nodes = append(c.Nodes, figure)
	}
	lacks := func(f driftFigure) float64 {
		if f.size < 64<<10 {
			return missing / 10
		}
		return missing
	}
	for _, f := range driftPairFigures() {
		list := h.launches(f, driftPairs, lacks(f))
		which := make([]int, len(list))
		for i := range which {
			which[i] = i
		}
		c.Fabrics = append(c.Fabrics, analysis.Fabric{
			Name: f.name, Unit: f.unit, Size: f.size, Less: analysis.LessIsBetter(f.unit), Nodes: 2,
			Links: []analysis.Link{{Pair: analysis.Pair{A: 0, B: 1}, Distance: analysis.SameHost, Launches: list, Which: which}},
		})
	}
	for _, f := range driftWholeFigures() {
		c.Whole = append(c.Whole, analysis.Figure{
			Name: f.name, Unit: f.unit, Size: f.size, Less: analysis.LessIsBetter(f.unit),
			Series: []analysis.Series{{Node: -1, Launches: h.launches(f, driftPairs, lacks(f))}},
		})
	}
	return c
}

func driftNodes() []analysis.Node {
	var list []analysis.Node
	for i := range 2 {
		list = append(list, analysis.Node{Name: fmt.Sprint("n", i), Class: "c", Place: analysis.Place{Host: "h"}})
	}
	return list
}

// certificates are those of a measurement.
func (h *drifting) certificates(c analysis.Collected) []muster.Certificate {
	metric := func(name, unit string, size int64, launches []float64) muster.Metric {
		return muster.Metric{Name: name, Unit: unit, Size: size, Less: analysis.LessIsBetter(unit), Median: stat.Median(launches), Verdict: muster.GradeUnknown}
	}
	blank := muster.Certificate{Class: "c", Cluster: "c-1", Certified: true, Verdict: muster.GradeUnknown, Began: h.at, Made: h.at}
	whole := blank
	whole.Kind, whole.Pairs = muster.CertifiesCluster, &muster.Pairs{Measured: 1, Possible: 1}
	var list []muster.Certificate
	for n, node := range driftNodes() {
		one := blank
		one.Kind, one.Node, one.Machine = muster.CertifiesNode, node.Name, muster.MachineID(fmt.Sprint("m", n))
		for _, f := range c.Nodes {
			one.Metrics = append(one.Metrics, metric(f.Name, f.Unit, f.Size, f.Series[n].Launches))
		}
		whole.Nodes = append(whole.Nodes, muster.CertifiedNode{Node: one.Node, Machine: one.Machine})
		list = append(list, one)
	}
	for _, f := range c.Fabrics {
		m := metric(f.Name, f.Unit, f.Size, f.Links[0].Launches)
		m.Distance = string(analysis.SameHost)
		whole.Pairs.Metrics = append(whole.Pairs.Metrics, m)
	}
	for _, f := range c.Whole {
		whole.Metrics = append(whole.Metrics, metric(f.Name, f.Unit, f.Size, f.Series[0].Launches))
	}
	return append(list, whole)
}

// judge reports the codes of what is found, as measure does.
func judgeDrifting(c analysis.Collected, past []muster.Certificate) (map[string]bool, error) {
	nodes := driftNodes()
	like := past[len(past)-1]
	c.Remember(nodes, func(string) map[compare.Key]compare.ClassFigure {
		return compare.Class(past, like, []muster.MachineID{"m0", "m1"})
	})
	r, err := analysis.Judge(muster.ValidateQuick, c)
	if err != nil {
		return nil, err
	}
	if err := analysis.Share(nodes, r.Nodes); err != nil {
		return nil, err
	}
	var findings []muster.Finding
	for i := range r.Fabrics {
		analysis.ShareFabric(nodes, r.Nodes, &r.Fabrics[i])
		findings = append(findings, analysis.FabricFindings(nodes, r.Fabrics[i])...)
	}
	analysis.ShareWhole(nodes, r.Nodes, r.Whole)
	findings = append(findings, analysis.WholeFindings(r.Whole)...)
	findings = append(findings, analysis.Findings(nodes, r.Nodes, nil)...)
	codes := map[string]bool{}
	for _, f := range findings {
		codes[f.Code] = true
	}
	return codes, nil
}

// pace is how a history came to be: so many measurements, so far apart.
type pace struct {
	text  string
	times int
	apart time.Duration
}

func paces() []pace {
	return []pace{
		{"8 within half an hour", 8, 4 * time.Minute},
		{"8 in two sittings, a day apart", 8, 0}, // four and four
		{"8 on 8 days", 8, 24 * time.Hour},
		{"30 on 30 days", 30, 24 * time.Hour},
	}
}

// history measures at that pace; nothing is wrong.
func (h *drifting) history(p pace) []muster.Certificate {
	var past []muster.Certificate
	for i := range p.times {
		past = append(past, h.certificates(h.measure(0))...)
		switch {
		case p.apart > 0:
			h.wait(p.apart)
		case i == p.times/2-1:
			h.wait(24 * time.Hour)
		default:
			h.wait(4 * time.Minute)
		}
	}
	return past
}

// driftLacks are the shares that a link lacks; 0 is a link with which nothing is wrong.
func driftLacks() []float64 { return []float64{0, 0.25, 0.5, 0.9} }

// driftRow is in how many runs messages were blamed, by what the link lacked, and in
// how many nodes or the host were although nothing was wrong.
type driftRow struct {
	runs           int
	blamed         []int
	node, slowHost int
}

// simulateDrift measures some hours after a history, again and again.
func simulateDrift(drift float64, p pace, runs int) (driftRow, error) {
	row := driftRow{runs: runs, blamed: make([]int, len(driftLacks()))}
	for run := range runs {
		for i, missing := range driftLacks() {
			h := newDrifting(drift, rand.New(rand.NewPCG(uint64(run), uint64(1000*drift)))) // the same luck for each
			past := h.history(p)
			h.wait(time.Hour + time.Duration(h.r.Float64()*float64(23*time.Hour)))
			found, err := judgeDrifting(h.measure(missing), past)
			if err != nil {
				return row, err
			}
			if found[analysis.SlowLink] || found[analysis.SlowCluster] || found[analysis.SlowTier] {
				row.blamed[i]++
			}
			if i > 0 {
				continue
			}
			if found[analysis.SlowNode] {
				row.node++
			}
			if found[analysis.SlowHost] {
				row.slowHost++
			}
		}
	}
	return row, nil
}

func drifts() []float64 { return []float64{0, 0.03, 0.1} }

// driftTable is the table of docs/users/certificate.md.
func driftTable(runs int) (string, error) {
	var b strings.Builder
	b.WriteString("\n| history | drift | link or cluster blamed | node blamed | slow host | 25 % missing | 50 % missing | 90 % missing |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range paces() {
		for _, d := range drifts() {
			row, err := simulateDrift(d, p, runs)
			if err != nil {
				return "", err
			}
			cell := func(k int) string {
				i := shares{k, runs}.interval()
				return fmt.Sprintf(" %.0f (%.0f-%.0f) |", 100*float64(k)/float64(runs), 100*i.Low, 100*i.High)
			}
			fmt.Fprintf(&b, "| %s | %.0f %% |", p.text, 100*d)
			for _, k := range append([]int{row.blamed[0], row.node, row.slowHost}, row.blamed[1:]...) {
				b.WriteString(cell(k))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	return b.String(), nil
}

func TestDriftTable(t *testing.T) {
	if os.Getenv("MUSTER_POWER") == "" {
		t.Skip("make power simulates for some minutes, and publishes")
	}
	runs := 60
	if v, err := strconv.Atoi(os.Getenv("MUSTER_POWER")); err == nil && v > 1 {
		runs = v
	}
	s, err := driftTable(runs)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(s)
	const begin, end = "<!-- drift: made by make power -->\n", "<!-- /drift -->\n"
	b, err := os.ReadFile(powerDocs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", powerDocs)
	}
	if err := os.WriteFile(powerDocs, []byte(before+begin+s+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A host that is slower than in a short history blames no link, and a link held to a
// tenth is found all the same.
func TestDriftingHost(t *testing.T) {
	t.Parallel()
	const runs = 15
	for _, test := range []struct {
		drift        float64
		pace         int
		most, tenths int
	}{
		{0.1, 0, 3, 13},
		{0.03, 0, 2, 14},
		{0.1, 2, 3, 13},
	} {
		row, err := simulateDrift(test.drift, paces()[test.pace], runs)
		if err != nil {
			t.Fatal(err)
		}
		last := len(row.blamed) - 1
		t.Logf("%s, a drift of %.0f %%: in %d runs messages were blamed %d times, a node %d, the host %d; missing %v: %v", paces()[test.pace].text, 100*test.drift, runs, row.blamed[0], row.node, row.slowHost, driftLacks(), row.blamed)
		if row.blamed[0] > test.most || row.blamed[last] < test.tenths {
			t.Errorf("%s, a drift of %.0f %%: %+v", paces()[test.pace].text, 100*test.drift, row)
		}
	}
}
