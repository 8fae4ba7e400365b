package measure

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/measure/hpl"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// hpl runs the High-Performance Linpack benchmark as its driver says, and files
// what it showed. Outcomes are kept in files: they say what is to be launched next.
func (j *job) hpl(ctx context.Context, s *subject) error {
	if err := j.note(ctx, s, func(m *muster.Measurement) {
		m.Phase = muster.MeasurementRunning
		if m.Began.IsZero() {
			m.Began = j.r.c.Clock.Now()
		}
		s.m.Began = m.Began
	}); err != nil {
		return err
	}
	before, err := j.hplConditions(ctx, s, "000-conditions")
	if err != nil {
		return err
	}
	site := s.site(before)
	driver, err := hpl.NewDriver(site)
	if err != nil {
		return err
	}
	plan, err := hpl.Plan(site)
	if err != nil {
		return err
	}
	var done []hpl.Outcome
	for {
		if done, err = j.outcomes(); err != nil {
			return err
		}
		run, more := driver.Next(done)
		if err := j.note(ctx, s, func(m *muster.Measurement) { hplProgress(m, plan, done, j.r.c.Clock.Now(), more) }); err != nil {
			return err
		}
		if !more {
			break
		}
		if err := j.hplRun(ctx, s, run, len(done)); err != nil {
			return err
		}
		j.use.gather(s)
	}
	// What else ran meanwhile is known by what the nodes counted.
	after, err := j.hplConditions(ctx, s, "999-conditions")
	if err != nil {
		return err
	}
	return j.fileHPL(ctx, s, driver, done, measured{conditions: []map[string]nodeConditions{before, after}})
}

// hplProgress reports how far it is by the plan, which is only what is expected.
func hplProgress(m *muster.Measurement, plan []hpl.Run, done []hpl.Outcome, now time.Time, more bool) {
	m.Done, m.Launches, m.Failed = len(done), max(len(plan), len(done)), 0
	if !more {
		m.Launches, m.ETA = len(done), time.Time{}
	}
	for _, o := range done {
		if o.Problem != "" {
			m.Failed++
		}
	}
	if more {
		var left time.Duration
		for _, r := range plan[min(len(done), len(plan)):] {
			left += time.Duration(r.Expected)
		}
		m.ETA = now.Add(left)
	}
}

// hplConditions reads the conditions of the nodes, once for each name.
func (j *job) hplConditions(ctx context.Context, s *subject, name string) (map[string]nodeConditions, error) {
	st := step{name: name}
	if _, err := os.Stat(j.kept(st)); err != nil {
		if ok, err := j.step(ctx, s, st); err != nil {
			return nil, err
		} else if !ok {
			return nil, muster.Errorf(muster.EUnavailable, "no launch came to an end: %s", j.lastFailure([]step{st})).Because(muster.ReasonNotMeasured).
				WithHint("look at `muster logs %s %s`", s.cluster.Name, s.launcher)
		}
	}
	return readConditions(j.kept(st))
}

// site is what HPL may use: of the smallest node.
func (s *subject) site(conditions map[string]nodeConditions) hpl.Site {
	site := hpl.Site{Nodes: len(s.nodes), Cores: math.MaxInt, Memory: math.MaxInt64, Budget: time.Duration(s.m.Budget)}
	for i, n := range s.nodes {
		c, f := conditions[n.Name].Conditions, s.machines[i].Facts.Shaped(s.cluster.Spec.Shape)
		cores := max(f.Cores, 1)
		if f.Cores == 0 {
			cores = max(f.Threads, 1)
		}
		if c.Cores > 0 {
			cores = min(cores, c.Cores)
		}
		site.Cores, site.Memory = min(site.Cores, cores), min(site.Memory, f.Memory)
		if i == 0 {
			site.Domains = len(c.NUMA)
		}
	}
	return site
}

func (j *job) outcomePath(n int) string {
	return filepath.Join(j.dir(), fmt.Sprintf("hpl-%03d.json", n))
}

const outcomeDoc document.Kind[hpl.Outcome] = "hpl-launch/1"

// outcomes are those of the launches so far.
func (j *job) outcomes() ([]hpl.Outcome, error) {
	var list []hpl.Outcome
	for {
		b, err := os.ReadFile(j.outcomePath(len(list)))
		if os.IsNotExist(err) {
			return list, nil
		}
		var o hpl.Outcome
		if err == nil {
			o, err = outcomeDoc.Decode(j.outcomePath(len(list)), b)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
}

// hplRun makes one launch and keeps what came of it.
func (j *job) hplRun(ctx context.Context, s *subject, run hpl.Run, n int) error {
	began := j.r.c.Clock.Now()
	o := &wire.LaunchOrder{
		ID: fmt.Sprintf("%s-hpl-%03d", j.id, n), Program: "xhpl", Hosts: s.names(), PerHost: run.PerNode, Cores: run.Threads,
		Env: run.Environment(), Files: []wire.File{{Path: "HPL.dat", Content: run.Dat()}}, Limit: run.Limit,
	}
	var err error
	if o.Key, o.Certificate, err = j.r.c.Admit(ctx, j.cluster, time.Duration(run.Limit)+5*time.Minute); err != nil {
		return err
	}
	h, err := j.launch(ctx, s, o)
	if err != nil {
		return err
	}
	out := hpl.Outcome{Run: run, Took: muster.Duration(j.r.c.Clock.Now().Sub(began)), Problem: h.end.Error}
	if h.end.Exit == 0 {
		if out, err = judgeHPL(run, time.Duration(out.Took), h.path); err != nil {
			return err
		}
	} else if out.Problem == "" {
		out.Problem = fmt.Sprintf("it ended with status %d", h.end.Exit)
	}
	if out.Problem != "" {
		j.r.c.Log.Warn("HPL launch failed", "cluster", j.cluster, "launch", o.ID, "error", out.Problem)
	}
	_ = os.Remove(h.path)
	b, err := outcomeDoc.Encode(&out)
	if err != nil {
		return err
	}
	return atomicfile.Replace(j.outcomePath(n), b, 0o600)
}

// judgeHPL reads what was printed. What cannot be believed is a failed launch.
func judgeHPL(run hpl.Run, took time.Duration, path string) (hpl.Outcome, error) {
	f, err := os.Open(path)
	if err != nil {
		return hpl.Outcome{}, err
	}
	defer func() { _ = f.Close() }()
	said, err := hpl.Read(f, hpl.DefaultLimits())
	if err != nil {
		return hpl.Outcome{Run: run, Took: muster.Duration(took), Problem: err.Error()}, nil
	}
	return hpl.Judge(run, took, said), nil
}

// fileHPL files the result and ends the measurement.
func (j *job) fileHPL(ctx context.Context, s *subject, driver *hpl.Driver, done []hpl.Outcome, said measured) error {
	candidates := s.candidates(said)
	for i, w := range s.witnesses(said, candidates, past{}) {
		if v, disturbed := w.Caveat(); disturbed {
			candidates[i].Caveats = append(candidates[i].Caveats, v)
		}
	}
	r, err := driver.Summary(done, s.peak(candidates))
	if err != nil {
		return err
	}
	now := j.r.c.Clock.Now()
	r.Version, r.ID, r.Cluster, r.ClusterName, r.Nodes = muster.HPLVersion, muster.NewHPLID(), s.cluster.ID, s.cluster.Name, s.names()
	r.Began, r.Made = s.began().UTC().Truncate(time.Second), now.UTC().Truncate(time.Second)
	r.Use = j.use.all(s.names())
	if first := s.machines[0].Facts.Class; !containsOther(s.machines, first) {
		r.Class = first
	}
	common := analysis.Manifest(analysis.Subject{Nodes: candidates, NewID: muster.NewCertificateID}, analysis.Results{}, nil, nil)
	told := r.Conditions
	r.Conditions, r.Caveats = common.Conditions, common.Caveats
	r.Conditions.MPI, r.Conditions.BLAS, r.Conditions.Pinning, r.Conditions.Probe = told.MPI, told.BLAS, told.Pinning, told.Probe
	return j.r.c.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		if err := s.current(tx); err != nil {
			return err
		}
		if err := tx.PutHPL(r); err != nil {
			return err
		}
		c, err := tx.Cluster(j.cluster)
		if err != nil {
			return err
		}
		m := *c.Measurement
		m.Phase, m.Ended, m.ETA, m.Result = muster.MeasurementDone, now, time.Time{}, r.ID
		m.Certified = len(r.Caveats) == 0
		c.Measurement = &m
		return tx.PutCluster(c, "HPL: "+muster.HPLText(r))
	})
}

func containsOther(machines []muster.Machine, class string) bool {
	for _, m := range machines {
		if m.Facts.Class != class {
			return true
		}
	}
	return false
}

// peak is what all nodes together can do at most; nil if that is not known of one.
func (s *subject) peak(candidates []analysis.Candidate) *muster.Reference {
	var sum *muster.Reference
	for i, c := range candidates {
		p := analysis.Peak(c.Conditions, 0)
		switch {
		case p == nil:
			return nil
		case i == 0:
			one := *p
			sum = &one
			if n := len(candidates); n > 1 {
				sum.Text = fmt.Sprintf("%d nodes: %s", n, sum.Text)
			}
		default:
			sum.Value += p.Value
		}
	}
	return sum
}
