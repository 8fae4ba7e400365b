package control

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/series"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Bounds of what may be asked for at once.
const (
	defaultPoints = 60
	maxPoints     = 5000
	shortestStep  = 10 * time.Second
	longestSince  = 2 * 366 * 24 * time.Hour
)

// UsageOver is what the nodes of a cluster used over time. A deleted cluster's
// is there as long as it is kept.
func (s *Service) UsageOver(ctx context.Context, who muster.Actor, ref string, q wire.UsageQuery) (wire.ClusterUsage, error) {
	sq, err := s.span(q)
	if err != nil {
		return wire.ClusterUsage{}, err
	}
	c, nodes, err := s.nodes(ctx, who, ref)
	if err != nil {
		return wire.ClusterUsage{}, err
	}
	if q.Node != "" {
		one, err := pickNode(c, nodes, q.Node)
		if err != nil {
			return wire.ClusterUsage{}, err
		}
		nodes = []muster.Node{one}
		sq.Name = one.Name
	}
	sq.Owner = string(c.ID)
	r, err := s.readSeries(ctx, sq)
	if err != nil {
		return wire.ClusterUsage{}, err
	}
	out := wire.ClusterUsage{ID: c.ID, Name: c.Name, Status: c.Phase, Window: window(r), Nodes: []wire.NodeUsage{}}
	if sq.Name != "" {
		// The queue, the jobs and the hosts are the cluster's, not the node's.
		for _, name := range []string{series.EntryJobs, series.EntryHosts, series.EntryCores} {
			sq.Name = name
			part, err := s.readSeries(ctx, sq)
			if err != nil {
				return wire.ClusterUsage{}, err
			}
			r.Entries = append(r.Entries, part.Entries...)
		}
	}
	place := map[string]int{}
	for i, n := range nodes {
		place[n.Name] = i
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Name[0] == '~' {
			out.Curves = clusterCurves(out.Curves, r, e)
			continue
		}
		n := wire.NodeUsage{Node: e.Name, Samples: []wire.Usage{}, Curves: map[string]wire.Curve{}}
		for _, m := range e.Machines {
			n.Machines = append(n.Machines, wire.MachineSince{Machine: muster.MachineID(m.Machine), Since: m.From})
		}
		for column, name := range series.NodeColumns() {
			if k, ok := curve(r, e, column); ok {
				n.Curves[name] = k
			}
		}
		out.Nodes = append(out.Nodes, n)
	}
	for _, n := range nodes { // one that never spoke is a gap too
		if n.Phase != muster.NodeGone && !slices.ContainsFunc(out.Nodes, func(u wire.NodeUsage) bool { return u.Node == n.Name }) {
			out.Nodes = append(out.Nodes, wire.NodeUsage{Node: n.Name, Samples: []wire.Usage{}})
		}
	}
	slices.SortStableFunc(out.Nodes, func(a, b wire.NodeUsage) int {
		x, known := place[a.Node]
		y, also := place[b.Node]
		if !known || !also {
			return cmp.Compare(a.Node, b.Node)
		}
		return cmp.Compare(x, y)
	})
	return out, nil
}

// SiteUsage is what the site was used for.
func (s *Service) SiteUsage(ctx context.Context, who muster.Actor, q wire.UsageQuery) (wire.SiteUsage, error) {
	if q.Since == 0 {
		q.Since = time.Hour
	}
	sq, err := s.span(q)
	if err != nil {
		return wire.SiteUsage{}, err
	}
	var list []muster.Cluster
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err = tx.Clusters(store.ClusterFilter{Living: true})
		return err
	})
	if err != nil {
		return wire.SiteUsage{}, err
	}
	out := wire.SiteUsage{Site: map[string]wire.Curve{}, Clusters: []wire.ClusterUsage{}}
	r, err := s.readSeries(ctx, sq)
	if err != nil {
		return out, err
	}
	out.Window = *window(r)
	for i := range r.Entries {
		siteCurves(out.Site, r, &r.Entries[i], who.Admin)
	}
	for _, c := range list {
		u := wire.ClusterUsage{ID: c.ID, Name: c.Name, Status: c.Phase, Nodes: []wire.NodeUsage{}}
		for _, name := range []string{series.EntryJobs, series.EntryHosts, series.EntryCores} {
			sq.Owner, sq.Name = string(c.ID), name
			r, err := s.readSeries(ctx, sq)
			if err != nil {
				return out, err
			}
			for i := range r.Entries {
				u.Curves = clusterCurves(u.Curves, r, &r.Entries[i])
			}
		}
		out.Clusters = append(out.Clusters, u)
	}
	return out, nil
}

// span checks a query and fills in the length of a point.
func (s *Service) span(q wire.UsageQuery) (series.Query, error) {
	var bad []muster.Problem
	if q.Since < 0 || q.Since > longestSince {
		bad = append(bad, muster.Problem{Field: "since", Reason: muster.ReasonOutOfRange, Message: "must be a time of at most two years", Hint: "write 1h, 90m or 7d"})
	}
	if q.Step < 0 || q.Step > 0 && q.Step < shortestStep {
		bad = append(bad, muster.Problem{Field: "step", Reason: muster.ReasonOutOfRange, Message: "must be 10 s or longer", Hint: "leave it out for about sixty points"})
	} else if q.Step > 0 && q.Since/q.Step > maxPoints {
		bad = append(bad, muster.Problem{Field: "step", Reason: muster.ReasonOutOfRange, Message: "makes more than " + strconv.Itoa(maxPoints) + " points", Hint: "use a longer step or a shorter time"})
	}
	if len(bad) > 0 {
		e := muster.Errorf(muster.EInvalid, "the time to show is not right").Because(muster.ReasonHasProblems).WithHint("see 'muster usage --help'")
		return series.Query{}, e.Listing(bad)
	}
	step := q.Step
	if step == 0 {
		step = niceStep(q.Since / defaultPoints)
	}
	now := s.Clock.Now()
	return series.Query{From: now.Add(-q.Since).Add(step), To: now, Step: step}, nil
}

// niceStep is the next length of a point that people and the kept spans agree
// with.
func niceStep(at time.Duration) time.Duration {
	for _, step := range []time.Duration{
		10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
		30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour,
	} {
		if at <= step {
			return step
		}
	}
	return 14 * 24 * time.Hour
}

// readSeries reads what was measured; without a store it is all gaps.
func (s *Service) readSeries(ctx context.Context, q series.Query) (series.Result, error) {
	if s.Series == nil {
		from := q.From.Truncate(q.Step)
		return series.Result{From: from, Step: q.Step, Points: int(q.To.Sub(from)/q.Step) + 1}, nil
	}
	return s.Series.Read(ctx, q)
}

func window(r series.Result) *wire.Window {
	return &wire.Window{From: r.From, Step: muster.Duration(r.Step), Points: r.Points}
}

// curve renders one figure; false when nothing of it is known.
func curve(r series.Result, e *series.Entry, column int) (wire.Curve, bool) {
	mean, most, ok := e.Total(column)
	if !ok {
		return wire.Curve{}, false
	}
	out := wire.Curve{Mean: digits(mean), Max: digits(most), Points: make([]*float64, r.Points), Peaks: make([]*float64, r.Points)}
	lowest := math.Inf(1)
	for i := range r.Points {
		if m, ok := e.Mean(column, i); ok {
			lowest = min(lowest, m)
			peak, _ := e.Max(column, i)
			m, peak = digits(m), digits(peak)
			out.Points[i], out.Peaks[i] = &m, &peak
		}
	}
	if !math.IsInf(lowest, 1) {
		out.Min = digits(lowest)
	}
	return out, true
}

// digits keeps five digits: as many as are stored, and short to send.
func digits(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(x))))
	if math.IsInf(scale, 0) || scale == 0 {
		return x
	}
	return math.Round(x*scale) / scale
}

func clusterCurves(out map[string]wire.Curve, r series.Result, e *series.Entry) map[string]wire.Curve {
	names := map[string][]string{
		series.EntryJobs:  {"jobs_running", "jobs_pending"},
		series.EntryHosts: {"hosts_up", "hosts_down", "hosts_total"},
		series.EntryCores: {"cores_busy", "cores_total"},
	}[e.Name]
	for column, name := range names {
		if k, ok := curve(r, e, column); ok {
			if out == nil {
				out = map[string]wire.Curve{}
			}
			out[name] = k
		}
	}
	return out
}

// siteCurves shows machines to everybody, and the rest to administrators.
func siteCurves(out map[string]wire.Curve, r series.Result, e *series.Entry, admin bool) {
	var names []string
	switch {
	case e.Name == series.EntryMachines:
		for _, p := range muster.MachinePhases() {
			names = append(names, "machines_"+string(p))
		}
	case !admin:
	case e.Name == series.EntryClusters:
		for _, p := range muster.ClusterPhases() {
			names = append(names, "clusters_"+string(p))
		}
	case e.Name == series.EntryCores:
		names = []string{"cores_busy", "cores_total"}
	}
	for column, name := range names {
		if k, ok := curve(r, e, column); ok {
			out[name] = k
		}
	}
}
