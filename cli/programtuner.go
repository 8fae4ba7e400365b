package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/cli/tuning"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/wire"
)

// tuner does the stages of a tuning, each of which is an experiment. What it decides follows from
// what is on record of the stages before, so the same command goes on where it was.
type tuner struct {
	app     *app
	client  *client.Client
	options tuneOptions
	subject tuning.Subject
	base    string // the beginning of the experiments' names
	out     tuned
}

// stageResult is what an experiment of a tuning showed.
type stageResult struct {
	wire.Experiment
	launches []muster.ExperimentLaunch
}

func (t *tuner) run(ctx context.Context, b budget) (tuned, error) {
	c, err := t.findCluster(ctx)
	if err != nil {
		return t.out, err
	}
	p, err := findProgram(ctx, t.client, t.options.program)
	if err != nil {
		return t.out, err
	}
	t.subject = tuneSubject(t.options, c)
	t.base = first(t.options.name, tuneBase(p.Name, c.ID))
	t.out = tuned{Program: p.Name, Cluster: c.ID, ClusterName: c.Name, Experiments: []string{}, Tried: []tuneTried{}, Left: []tuning.Left{}}
	can, err := t.probe(ctx, c, p)
	if err != nil {
		return t.out, err
	}
	settings, left := tuning.Space(can, t.options.vary)
	t.out.Left = append(t.out.Left, left...)
	if len(settings) == 0 {
		t.out.Verdict.Text = "nothing can be varied on cluster " + c.Name
		return t.out, nil
	}
	if b.launches == 0 {
		if b.launches, err = t.launchesIn(ctx, b.span); err != nil {
			return t.out, err
		}
	}
	plan, more, err := tuning.Make(b.launches, settings)
	if err != nil {
		return t.out, muster.Errorf(muster.EInvalid, "the budget is too small for program %s: %v", p.Name, err).Because(muster.ReasonOutOfRange).WithHint("give a larger --budget")
	}
	t.out.Left = append(t.out.Left, more...)
	t.say("tuning %s on %s: %s, %s each; at most %s", p.Name, c.Name, plaintext.Count(len(plan.Settings), "setting"), plaintext.Count(plan.Repeats, "launch"), plaintext.Count(plan.Budget, "launch"))
	best, made, err := t.search(ctx, plan)
	if err != nil {
		return t.out, err
	}
	if best == nil {
		t.out.Verdict.Text = "no setting was better than the default by 1 % in the search"
		return t.out, nil
	}
	t.out.Best = best
	if err := t.confirm(ctx, *best, plan.Confirm(made)); err != nil || !t.out.Verdict.Better || t.options.noModule || len(best.Env) == 0 {
		return t.out, err
	}
	return t.out, t.writeModule(ctx, *best)
}

func (t *tuner) say(format string, args ...any) {
	fmt.Fprintln(t.app.env.Err, clean(fmt.Sprintf(format, args...)))
}

// findCluster is the cluster that was named, or the only one that is ready.
func (t *tuner) findCluster(ctx context.Context) (wire.Cluster, error) {
	ref := t.options.cluster
	if ref == "" {
		list, err := t.client.Clusters(ctx, client.ClusterFilter{})
		if err != nil {
			return wire.Cluster{}, err
		}
		var names []string
		for _, c := range list {
			if c.Status == muster.ClusterReady {
				ref, names = string(c.ID), append(names, c.Name)
			}
		}
		switch {
		case len(names) == 0:
			return wire.Cluster{}, muster.Errorf(muster.EConflict, "no cluster is ready").Because(muster.ReasonNotReady).WithHint("create one: muster create cfd -n 2 --wait")
		case len(names) > 1:
			return wire.Cluster{}, muster.Errorf(muster.EInvalid, "you have %d clusters: %s", len(names), strings.Join(names[:min(5, len(names))], ", ")).Because(muster.ReasonAmbiguous).
				WithHint("say which: --cluster %s", names[0])
		}
	}
	return t.client.Cluster(ctx, ref)
}

// tuneBase is a name that another cluster or program does not have.
func tuneBase(program string, cluster muster.ClusterID) string {
	short := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, program)
	id := strings.TrimPrefix(string(cluster), "c-")
	return "tune-" + short[:min(12, len(short))] + "-" + id[:min(4, len(id))]
}

// probe looks on a compute node at what can be varied.
func (t *tuner) probe(ctx context.Context, c wire.Cluster, p wire.Program) (tuning.Abilities, error) {
	node, nodes, cores := "", 0, 0
	for _, n := range c.Nodes {
		if n.Role != muster.RoleCompute || n.Status != muster.NodeReady {
			continue
		}
		nodes++
		if node == "" || n.Cores < cores {
			node, cores = n.Name, n.Cores
		}
	}
	if nodes == 0 {
		return tuning.Abilities{}, muster.Errorf(muster.EConflict, "no compute node of %s is ready", c.Name).Because(muster.ReasonNotReady).WithHint("wait for one: muster show %s", c.ID)
	}
	out, err := t.script(ctx, string(c.ID), node, tuning.Probe)
	if err != nil {
		return tuning.Abilities{}, err
	}
	can, err := tuning.Read(out)
	if err != nil {
		return can, muster.Errorf(muster.EInvalid, "node %s did not say what can be varied: %.60q", node, out).Because(muster.ReasonBadSyntax).WithHint("look whether bash runs there: muster exec %s --node %s -- bash -c true", c.Name, node).Wrap(err)
	}
	can.Nodes, can.Cores = nodes, max(1, cores)
	can.FreeRanks = t.options.ranks == 0 && (p.Builtin || strings.Contains(p.Run+p.Build, "{ranks"))
	if t.options.ranks > 0 {
		can.Nodes = min(nodes, (t.options.ranks+can.Cores-1)/can.Cores)
	}
	return can, nil
}

// script runs a script on a node, and returns what it printed.
func (t *tuner) script(ctx context.Context, cluster, node, text string) ([]byte, error) {
	conn, err := t.app.dialNode(ctx, t.client, cluster, node, t.options.user)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	session, err := conn.NewSession()
	if err != nil {
		return nil, broken(err)
	}
	defer func() { _ = session.Close() }()
	out, errs := &keptOutput{most: 64 << 10}, &keptOutput{most: 4 << 10}
	err = t.app.attach(ctx, conn, session, "exec bash -s", streams{in: strings.NewReader(text), out: out, err: errs})
	var status *StatusError
	if errors.As(err, &status) {
		return nil, muster.Errorf(muster.EConflict, "a script on the cluster ended with status %d: %.200s", status.Status, strings.TrimSpace(errs.String())).Because(muster.ReasonNotReady).WithHint("look at the node and its home: muster ssh %s", cluster)
	}
	return out.Bytes(), err
}

// stage runs an experiment, or goes on with it, or finds it on record.
func (t *tuner) stage(ctx context.Context, kind string, cells []tuning.Setting, launches int) (stageResult, error) {
	name := t.base + "-" + kind
	text := tuning.File(name, t.subject, cells, launches)
	e, err := t.client.StartExperiment(ctx, wire.ExperimentRequest{Text: text, User: t.options.user})
	if muster.ReasonOf(err) == muster.ReasonNameTaken {
		return stageResult{}, muster.Errorf(muster.EConflict, "there is an experiment %s already, of another tuning", name).Because(muster.ReasonNameTaken).WithHint("begin the names otherwise: --name %.18s-2", t.base)
	}
	if err != nil {
		return stageResult{}, err
	}
	t.out.Experiments = append(t.out.Experiments, name)
	if e.Resumed {
		t.say("experiment %s is on record: %d of at most %s", name, e.Result.Launches, plaintext.Count(e.Result.Planned, "launch"))
	}
	if e.State == muster.ExperimentOpen {
		r := &experimentRunner{app: t.app, client: t.client, of: e, call: wire.ExperimentCall{User: t.options.user}, again: "run the same command"}
		if err := r.run(ctx); err != nil {
			return stageResult{}, err
		}
		if e, err = t.client.Experiment(ctx, string(e.ID), wire.ExperimentForecast{}); err != nil {
			return stageResult{}, err
		}
	}
	t.out.Launches += e.Result.Launches
	if e.State != muster.ExperimentDone {
		fmt.Fprintf(t.app.env.Err, "experiment %s: %s: %s\n", clean(name), e.State, clean(e.Outcome))
		return stageResult{}, &StatusError{Status: exitFailed}
	}
	list, err := t.client.ExperimentLaunches(ctx, string(e.ID))
	return stageResult{Experiment: e, launches: list}, err
}

// launchesIn is for how many launches a time suffices, by two of the default.
func (t *tuner) launchesIn(ctx context.Context, span time.Duration) (int, error) {
	const looks = 2
	s, err := t.stage(ctx, "first", []tuning.Setting{{}}, looks)
	if err != nil {
		return 0, err
	}
	took := time.Second
	for _, l := range s.launches {
		if l.State == muster.ProgramRunPassed {
			took = max(took, l.Ended.Sub(l.Began))
		}
	}
	if err := t.runs(s); err != nil {
		return 0, err
	}
	n := max(0, min(1000, int(span/took))-looks)
	if n < tuning.Least {
		return 0, muster.Errorf(muster.EInvalid, "a launch took %s, and at least %d are needed", plaintext.Span(took), tuning.Least+looks).Because(muster.ReasonOutOfRange).
			WithHint("give --budget at least %s, or a smaller problem", plaintext.Span((took*(tuning.Least+looks+1)).Round(time.Minute)+time.Minute))
	}
	return n, nil
}

// runs reports it as a failure if the default shows nothing: then nothing can be compared with it.
func (t *tuner) runs(s stageResult) error {
	usual := tuning.Setting{}.Key()
	for i, row := range s.Result.Rows {
		if settingOf(s.Plan.Cells[i]).Key() != usual || s.speeds()[usual] > 0 {
			continue
		}
		why := first(row.GivenUp, row.Problem)
		switch {
		case why != "":
		case row.Kept.N > 0:
			why = "its figure is not above 0"
		default:
			why = "its launches were discarded: see --discard"
		}
		fmt.Fprintf(t.app.env.Err, "program %s shows nothing with default settings: %s\n", clean(t.out.Program), clean(why))
		return &StatusError{Status: exitFailed}
	}
	return nil
}

func settingOf(c muster.ExperimentCell) tuning.Setting {
	return tuning.Setting{Env: c.Env, PerNode: c.PerNode}
}

// speeds are the medians of the cells of a stage, as speeds.
func (s stageResult) speeds() tuning.Speeds {
	out := tuning.Speeds{}
	for key, list := range s.each() {
		out[key] = stat.Median(list)
	}
	return out
}

// each are the speeds of the launches that count, by setting.
func (s stageResult) each() map[string][]float64 {
	out := map[string][]float64{}
	var figure *muster.ProgramFigure
	for _, l := range s.launches {
		f := l.Figure
		if l.State != muster.ProgramRunPassed || f == nil || len(l.Discarded) > 0 || !(f.Value > 0) {
			continue
		}
		if figure == nil {
			figure = f
		}
		if f.Unit != figure.Unit || f.Name != figure.Name {
			continue // the program showed another figure once: it is no value of this one
		}
		v := f.Value
		if f.Better == muster.BetterLower {
			v = 1 / v
		}
		key := settingOf(s.Plan.Cells[l.Cell]).Key()
		out[key] = append(out[key], v)
	}
	return out
}

// search tries each setting by itself, and the winners together, with so many launches. Without a
// winner best is nil.
func (t *tuner) search(ctx context.Context, plan tuning.Plan) (best *tuning.Setting, made int, err error) {
	s, err := t.stage(ctx, "search", plan.Search(), plan.Repeats)
	if err == nil {
		err = t.runs(s)
	}
	if err != nil {
		return nil, 0, err
	}
	made = len(plan.Search()) * plan.Repeats
	speeds := s.speeds()
	problems := map[string]string{}
	for i, row := range s.Result.Rows {
		problems[settingOf(s.Plan.Cells[i]).Key()] = first(row.GivenUp, row.Problem)
	}
	usual := speeds[tuning.Setting{}.Key()]
	for _, p := range plan.Settings {
		t.out.Tried = append(t.out.Tried, tuneTried{Setting: p, Ratio: speeds[p.Key()] / usual, Problem: problems[p.Key()]})
	}
	cells, best := tuning.Combine(plan.Settings, speeds)
	if cells == nil {
		return best, made, nil
	}
	if s, err = t.stage(ctx, "both", cells, plan.Repeats); err == nil {
		err = t.runs(s)
	}
	if err != nil {
		return nil, 0, err
	}
	return tuning.Best(cells, s.speeds()), made + len(cells)*plan.Repeats, nil
}

// confirm compares the best setting with the default by launches of their own.
func (t *tuner) confirm(ctx context.Context, best tuning.Setting, launches int) error {
	s, err := t.stage(ctx, "confirm", []tuning.Setting{{}, best}, launches)
	if err != nil {
		return err
	}
	each := s.each()
	t.out.Verdict = tuning.Judge(each[tuning.Setting{}.Key()], each[best.Key()])
	for i, row := range s.Result.Rows {
		if settingOf(s.Plan.Cells[i]).Key() == best.Key() && row.Failed > 0 {
			t.out.Verdict.Better = false
			t.out.Verdict.Text += fmt.Sprintf("; but %s failed: %s", plaintext.Count(row.Failed, "launch"), first(row.GivenUp, row.Problem))
		}
	}
	return nil
}

// writeModule writes the module, and says how it is used.
func (t *tuner) writeModule(ctx context.Context, best tuning.Setting) error {
	about := fmt.Sprintf("Settings with which %s ran %s, on cluster %s", t.out.Program, t.out.Verdict.Text, t.out.ClusterName)
	if _, err := t.script(ctx, string(t.out.Cluster), "", tuning.WriteScript(t.out.Program, tuning.Module(best, about))); err != nil {
		return err
	}
	name := tuning.ModuleName(t.out.Program)
	t.out.Module = tuning.ModulePath + "/" + name
	t.out.Use = map[string]string{"path": "module use ~/" + tuning.ModulePath, "load": "module load " + name}
	return nil
}
