package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/pflag"
)

type flagType = pflag.Flag

// watcher follows one cluster by its events until it reaches a phase. Nothing
// but what has no events is asked repeatedly: the server tells, and a broken
// connection goes on where it was.
type watcher struct {
	app     *app
	client  *client.Client
	id      muster.ClusterID
	name    string
	goal    muster.ClusterPhase
	show    bool // tell people what happens
	timeout time.Duration
	created *wire.Cluster

	started time.Time
	nodes   map[string]string // node -> phase
	phase   muster.ClusterPhase
	passed  int  // the phase that all nodes have reached, as its place among them
	silent  bool // it was told that the server does not answer
	live    *liveLine

	lines   sync.Mutex // one writes at a time: events, and who watches a measurement
	measure sync.Once
}

// run waits. It returns the cluster as it is at the end, if the server still
// tells.
func (w *watcher) run(ctx context.Context) (*wire.Cluster, error) {
	w.started = time.Now()
	if w.created != nil && !w.created.Created.IsZero() {
		w.started = w.created.Created
	}
	w.nodes = map[string]string{}
	w.live = newLiveLine(w.app, w.show)
	waiting := ctx
	if w.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	watching, stop := context.WithCancel(waiting)
	var others sync.WaitGroup
	if w.show && w.goal == muster.ClusterReady {
		others.Go(func() { w.conditions(watching) })
	}
	err := w.client.Events(waiting, client.EventOptions{Cluster: string(w.id), Follow: true, Patient: true, Lost: func(err error) {
		w.lines.Lock()
		defer w.lines.Unlock()
		w.lost(err)
	}}, func(e wire.Event) error {
		w.lines.Lock()
		defer w.lines.Unlock()
		if e.Kind == muster.AuditCluster && e.To == string(muster.ClusterValidating) && w.live.on {
			w.measure.Do(func() { others.Go(func() { w.measuring(watching) }) })
		}
		return w.event(e)
	})
	stop()
	others.Wait()
	w.live.clear()
	switch {
	case interrupted(ctx, err):
		w.detached()
		return nil, err
	case errors.Is(err, context.DeadlineExceeded), waiting.Err() != nil && ctx.Err() == nil:
		return w.last(ctx), muster.Errorf(muster.ETimeout, "cluster %s is not %s after %s", w.name, w.goal, w.timeout).Because(muster.ReasonNotDoneYet).
			WithHint("it goes on: muster events -f %s", w.id)
	case err != nil:
		return nil, err
	}
	cluster := w.last(ctx)
	return cluster, w.verdict(cluster)
}

// measuring shows how far the measurement of a cluster is, of which there are no
// events.
func (w *watcher) measuring(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(measureLook):
		}
		c, err := w.client.Cluster(ctx, string(w.id))
		if err != nil || c.Status != muster.ClusterValidating || c.Measurement == nil || !c.Measurement.Phase.Open() {
			continue
		}
		w.lines.Lock()
		w.live.set(progressOf(*c.Measurement))
		w.lines.Unlock()
	}
}

// last is the cluster as it is now; nil if that cannot be told.
func (w *watcher) last(ctx context.Context) *wire.Cluster {
	if w.goal == muster.ClusterDeleted {
		return nil // nothing more to show
	}
	for patience := 20; ; patience-- {
		cluster, err := w.client.Cluster(ctx, string(w.id))
		if err == nil {
			return &cluster
		}
		if muster.CodeOf(err) != muster.EUnavailable || patience == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(250 * time.Millisecond): // it is restarting
		}
	}
}

func (w *watcher) verdict(cluster *wire.Cluster) error {
	if w.phase == w.goal {
		return nil
	}
	if w.phase == muster.ClusterFailed {
		e := muster.Errorf(muster.EInternal, "cluster %s failed", w.name).Because(muster.ReasonClusterFailed).WithHint("see 'muster show %s'; then 'muster delete %s'", w.id, w.id)
		if cluster != nil && cluster.Reason != nil {
			e.Code, e.Reason = cluster.Reason.Code, muster.ReasonOf(cluster.Reason)
			e.Message += ": " + cluster.Reason.Message
			e.Problems = cluster.Reason.Problems
			if cluster.Reason.Hint != "" {
				e.Hint = cluster.Reason.Hint + "; then 'muster delete " + w.name + "'"
			}
		}
		return e
	}
	return muster.Errorf(muster.EConflict, "cluster %s is %s: somebody deleted it", w.name, w.phase).Because(muster.ReasonChangedMeanwhile).
		WithHint("see 'muster events %s'", w.id)
}

func (w *watcher) detached() {
	out := w.app.env.Err
	switch w.goal {
	case muster.ClusterDeleted:
		fmt.Fprintf(out, "\ndetached: the deletion of %s goes on\n  follow it: muster events -f %s\n", w.name, w.id)
	default:
		fmt.Fprintf(out, "\ndetached: cluster %s goes on\n  follow it:    muster events -f %s\n  give it back: muster delete %s\n", w.name, w.id, w.id)
	}
}

func (w *watcher) lost(error) {
	if !w.live.on && !w.silent {
		w.silent = true
		fmt.Fprintln(w.app.env.Err, "muster: the server does not answer; connecting again")
	}
	w.live.set("the server does not answer; connecting again")
}

func (w *watcher) event(e wire.Event) error {
	switch e.Kind {
	case muster.AuditCluster:
		return w.clusterEvent(e)
	case muster.AuditNode:
		if e.To != "" {
			w.nodes[e.Object] = e.To
		}
		if trouble(e) && e.Text != "" {
			w.line(e.At, e.Object+" "+e.To+": "+e.Text)
		}
		w.together(e.At)
		w.live.set(w.counts())
	case muster.AuditStage:
		w.live.set(w.counts() + "; " + e.Object + " " + first(e.Text, e.To))
	}
	return nil
}

// together reports when the last node has come as far as a phase.
func (w *watcher) together(at time.Time) {
	if w.goal != muster.ClusterReady || w.created == nil || len(w.nodes) < w.created.NodeCount {
		return
	}
	order := muster.NodePhases()
	slowest := len(order)
	for _, phase := range w.nodes {
		slowest = min(slowest, slices.Index(order, muster.NodePhase(phase)))
	}
	if slowest <= w.passed || slowest >= len(order) {
		return
	}
	w.passed = slowest
	if order[slowest] != muster.NodeReady && slowest > slices.Index(order, muster.NodeReady) {
		return // trouble and farewell have lines of their own
	}
	who := fmt.Sprintf("  all %d nodes ", len(w.nodes))
	if len(w.nodes) == 1 {
		who = "  the node "
	}
	w.line(at, who+string(order[slowest]))
}

// trouble tells events of nodes that are worth a line of their own.
func trouble(e wire.Event) bool {
	switch muster.NodePhase(e.To) {
	case muster.NodeUnreachable, muster.NodeFencing, muster.NodeFenced:
		return true
	case muster.NodeBooting:
		return e.From != "" && e.From != string(muster.NodeAssigned)
	}
	return false
}

func (w *watcher) clusterEvent(e wire.Event) error {
	if e.To == "" || e.To == e.From {
		if e.Text != "" {
			w.line(e.At, e.Text)
		}
		return nil
	}
	w.phase = muster.ClusterPhase(e.To)
	if w.goal == muster.ClusterDeleted && w.phase != muster.ClusterDeleted && w.phase != muster.ClusterDeleting {
		return nil // its life before
	}
	text := e.To
	if e.Text != "" {
		text += "  " + e.Text
	}
	w.line(e.At, text)
	switch w.phase {
	case w.goal, muster.ClusterFailed, muster.ClusterDeleted:
		if w.phase == muster.ClusterFailed && w.goal == muster.ClusterDeleted {
			return nil
		}
		return client.ErrStop
	case muster.ClusterDeleting:
		if w.goal != muster.ClusterDeleted {
			return client.ErrStop
		}
	}
	return nil
}

// phaseCounts reports how many nodes are in which phase, in the order of a life.
func phaseCounts(nodes map[string]string) []string {
	have := map[string]int{}
	for _, phase := range nodes {
		have[phase]++
	}
	var parts []string
	for _, phase := range muster.NodePhases() {
		if n := have[string(phase)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, phase))
		}
	}
	return parts
}

// counts is how far the nodes are, and when all should be.
func (w *watcher) counts() string {
	parts := phaseCounts(w.nodes)
	text := "nodes: " + strings.Join(parts, ", ")
	if w.goal == muster.ClusterReady && w.created != nil && !w.created.ETA.IsZero() {
		if left := time.Until(w.created.ETA); left > 0 {
			text += "; ready in about " + age(left+time.Second) + within(time.Duration(w.created.ETASpread))
		}
	}
	return text
}

// line tells one thing for good.
func (w *watcher) line(at time.Time, text string) {
	if !w.show {
		return
	}
	after := at.Sub(w.started).Seconds()
	if w.goal == muster.ClusterDeleted && after < -1 {
		return // its life before
	}
	w.live.clear()
	fmt.Fprintf(w.app.env.Out, "%7.1fs  %s\n", max(after, 0), clean(text))
}

// liveLine is the last line of a terminal, written over and over. Without a
// terminal it is nothing.
type liveLine struct {
	app   *app
	on    bool
	drawn bool
}

func newLiveLine(a *app, show bool) *liveLine {
	return &liveLine{app: a, on: show && a.env.terminal(a.env.Out) && a.env.getenv("TERM") != "dumb"}
}

func (l *liveLine) set(text string) {
	if !l.on {
		return
	}
	fmt.Fprintf(l.app.env.Out, "\r\x1b[K  %s", clip(clean(text), l.app.env.width(l.app.env.Out)-4))
	l.drawn = true
}

func (l *liveLine) clear() {
	if l.on && l.drawn {
		fmt.Fprint(l.app.env.Out, "\r\x1b[K")
		l.drawn = false
	}
}
