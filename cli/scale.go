package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// scaleFlags are the flags of scale.
type scaleFlags struct {
	remove    string
	fewer     string // -2, which a shell user writes without a flag
	logins    int
	now, some bool
	wait      bool
	timeout   time.Duration
	file      string // a request in place of all that
}

func (a *app) scale() *cobra.Command {
	var f scaleFlags
	c := &cobra.Command{
		Use: "scale CLUSTER [N | +N | -N] [--remove NODES] [--login-nodes N] | -f FILE", Short: "Change the size of a cluster",
		Long: `Changes the number of compute nodes or login nodes of a ready cluster. Its ID, head and
jobs are kept.

Growing: machines for all new nodes are taken, or none (with --allow-partial, as many as
are available). The new nodes accept jobs together, once all of them are ready. If one
does not come up, the change is rolled back.

Shrinking: idle nodes go first, then the last ones; never the head. --remove selects
nodes. They get no new jobs and leave when their jobs are done; with --now they leave
at once and their jobs are requeued.

To cancel a change in progress, request the old size.

-f reads the same from a request in YAML, JSON or XML (<scale>): cluster, and nodes, change, remove, logins, now, some.`,
		Example: `  muster scale cfd 12 --wait
  muster scale cfd +2
  muster scale cfd -2
  muster scale cfd --remove n[05-08] --now
  muster scale cfd --login-nodes 2
  muster scale -f more.xml --wait`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case f.file != "" && (len(args) > 0 || mixed(c) != ""):
				return usage(c, "the cluster and its size stand in the request file, not beside it")
			case f.file != "":
				return nil
			case len(args) == 0:
				return usage(c, "CLUSTER is missing")
			case len(args) > 2:
				return usage(c, "%q is one argument too many", args[2])
			}
			return nil
		},
		ValidArgsFunction: a.completeClusters(1),
		RunE:              func(c *cobra.Command, args []string) error { return a.runScale(c, args, &f) },
	}
	flags := c.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "request file; - is standard input")
	flags.StringVar(&f.remove, "remove", "", "nodes to remove: n05, n[05-08,11]")
	flags.StringVar(&f.fewer, "fewer", "", "")
	_ = flags.MarkHidden("fewer")
	flags.IntVar(&f.logins, "login-nodes", 0, "number of login nodes besides the head")
	flags.BoolVar(&f.now, "now", false, "do not wait for jobs on removed nodes: requeue them")
	flags.BoolVar(&f.some, "allow-partial", false, "take as many nodes as are available, instead of all or none")
	flags.BoolVar(&f.wait, "wait", false, "wait until it is done")
	duration.Var(flags, &f.timeout, "timeout", 0, "with --wait: give up waiting after this long")
	_ = c.RegisterFlagCompletionFunc("remove", func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.workers(c, args[0], typed)
	})
	return c
}

// minus lets "muster scale cfd -2" mean two fewer: elsewhere -2 is a flag.
func minus(root *cobra.Command, args []string) []string {
	c, _, err := root.Find(args)
	if err != nil || c.Name() != "scale" {
		return args
	}
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		if fewer.MatchString(arg) && (i == 0 || !takesValue(c, out[i-1])) {
			out[i] = "--fewer=" + arg
		}
	}
	return out
}

// takesValue reports whether what follows a word is the value of a flag.
func takesValue(c *cobra.Command, word string) bool {
	var f *pflag.Flag
	switch {
	case strings.Contains(word, "="):
	case strings.HasPrefix(word, "--"):
		f = c.Flag(word[2:])
	case len(word) == 2 && word[0] == '-':
		if f = c.Flags().ShorthandLookup(word[1:]); f == nil {
			f = c.InheritedFlags().ShorthandLookup(word[1:])
		}
	}
	return f != nil && f.NoOptDefVal == ""
}

var fewer = regexp.MustCompile(`^-[0-9]+$`)

// scaleRequest makes the request of what was typed.
func (a *app) scaleRequest(c *cobra.Command, args []string, f *scaleFlags) (wire.ScaleRequest, error) {
	if f.file != "" {
		data, err := a.readUpTo(f.file, maxRequest, "a request")
		if err != nil {
			return wire.ScaleRequest{}, err
		}
		return spec.ReadScale(data, spec.FormatOf("", f.file, data))
	}
	r := wire.ScaleRequest{Cluster: args[0], Remove: f.remove, Now: f.now, Some: f.some}
	if c.Flags().Changed("login-nodes") {
		r.Logins = &f.logins
	}
	if f.logins < 0 {
		return r, muster.Errorf(muster.EInvalid, "%d login nodes are not possible", f.logins).Because(muster.ReasonOutOfRange).WithHint("write how many there should be besides the head: --login-nodes 0, --login-nodes 2")
	}
	text := f.fewer
	if len(args) == 2 {
		if text != "" {
			return r, usage(c, "%q and %q are two sizes", args[1], text)
		}
		text = args[1]
	}
	if text == "" {
		return r, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return r, muster.Errorf(muster.EInvalid, "%q is not a number of nodes", text).Because(muster.ReasonBadValue).WithHint("write 12, +2 or -2; or --remove n[05-08]")
	case n == 0 && (text[0] == '+' || text[0] == '-'):
		return r, muster.Errorf(muster.EInvalid, "%q changes nothing", text).Because(muster.ReasonBadValue).WithHint("write +2 for two more nodes, -2 for two fewer, or 12")
	case n == 0:
		return r, muster.Errorf(muster.EInvalid, "a cluster keeps one node at least").Because(muster.ReasonNoNodeLeft).WithHint("to give it back: muster delete %s", args[0])
	case text[0] == '+' || text[0] == '-':
		r.Change = n
	default:
		r.Nodes = n
	}
	return r, nil
}

func (a *app) runScale(c *cobra.Command, args []string, f *scaleFlags) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	if err := needsWait(c, f.wait); err != nil {
		return err
	}
	r, err := a.scaleRequest(c, args, f)
	if err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	done, err := k.Scale(c.Context(), r.Cluster, r)
	if err != nil {
		return err
	}
	if a.output == "" {
		fmt.Fprintln(a.env.Out, scaledText(done))
	}
	if f.wait && done.Status != "unchanged" {
		w := &scaleWatcher{app: a, client: k, scaled: done, timeout: f.timeout}
		if err := w.run(c.Context()); err != nil {
			return err
		}
		if cluster, err := k.Cluster(c.Context(), string(done.ID)); err == nil {
			done.Cluster, done.Status = &cluster, "done"
		}
	}
	return a.print(done, func(io.Writer) {})
}

// formerSize is how to ask for the size before a change.
func formerSize(s wire.Scaled) string {
	logins := s.Logins
	if s.Cluster != nil {
		for _, n := range s.Cluster.Nodes {
			switch {
			case n.Role != muster.RoleLogin:
			case slices.Contains(s.Joining, n.Name):
				logins--
			case slices.Contains(s.Leaving, n.Name):
				logins++
			}
		}
	}
	text := ""
	if s.From != s.To {
		text = fmt.Sprintf(" %d", s.From)
	}
	if logins != s.Logins {
		text += fmt.Sprintf(" --login-nodes %d", logins)
	}
	return text
}

func scaledText(s wire.Scaled) string {
	text := fmt.Sprintf("cluster %s  %s  ", clean(s.Name), s.ID)
	switch {
	case s.Status == "unchanged":
		return text + "has " + plaintext.Count(s.To, "node") + " already"
	case s.From == s.To:
		text += s.Status + ": " + plaintext.Count(s.Logins, "login node")
	default:
		text += fmt.Sprintf("%s: from %d to %s", s.Status, s.From, plaintext.Count(s.To, "node"))
	}
	if len(s.Joining) > 0 {
		text += "; " + nodeset.Fold(s.Joining) + " " + verb(len(s.Joining), "joins", "join")
	}
	if len(s.Leaving) > 0 {
		text += "; " + nodeset.Fold(s.Leaving) + " " + verb(len(s.Leaving), "leaves", "leave")
	}
	return text
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// scaleWatcher follows a change of size by the cluster's events.
type scaleWatcher struct {
	app     *app
	client  *client.Client
	scaled  wire.Scaled
	timeout time.Duration

	since time.Time
	nodes map[string]string // those that join or leave -> phase
	last  wire.Cluster
	live  *liveLine
}

// run waits until the change is done, and returns why it was undone if it was.
func (w *scaleWatcher) run(ctx context.Context) error {
	w.nodes, w.live = map[string]string{}, newLiveLine(w.app, w.app.output == "")
	w.since = time.Now()
	if c := w.scaled.Cluster; c != nil {
		w.last = *c
		if c.Scaling == nil {
			return nil // taken back at once
		}
		w.since = c.Scaling.Started
	}
	waiting := ctx
	if w.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	err := w.client.Events(waiting, client.EventOptions{Cluster: string(w.scaled.ID), Follow: true, Patient: true},
		func(e wire.Event) error { return w.event(waiting, e) })
	w.live.clear()
	switch {
	case interrupted(ctx, err):
		fmt.Fprintf(w.app.env.Err, "\ndetached: the change of cluster %s goes on\n  follow it:    muster events -f %s\n  take it back: muster scale %s%s\n",
			w.scaled.Name, w.scaled.ID, w.scaled.Name, formerSize(w.scaled))
		return err
	case waiting.Err() != nil && ctx.Err() == nil:
		return muster.Errorf(muster.ETimeout, "cluster %s is not scaled after %s", w.scaled.Name, w.timeout).Because(muster.ReasonNotDoneYet).
			WithHint("it goes on: muster events -f %s", w.scaled.ID)
	case err != nil:
		return err
	}
	return w.verdict()
}

func (w *scaleWatcher) event(ctx context.Context, e wire.Event) error {
	if e.At.Before(w.since) {
		return nil
	}
	switch e.Kind {
	case muster.AuditNode:
		if e.To != "" && (slices.Contains(w.scaled.Joining, e.Object) || slices.Contains(w.scaled.Leaving, e.Object)) {
			w.nodes[e.Object] = e.To
			w.live.set(w.counts())
		}
	case muster.AuditCluster:
		if e.Text != "" && w.app.output == "" {
			w.live.clear()
			fmt.Fprintf(w.app.env.Out, "%7.1fs  %s\n", e.At.Sub(w.since).Seconds(), clean(e.Text))
		}
		c, err := w.client.Cluster(ctx, string(w.scaled.ID))
		if err != nil {
			if muster.CodeOf(err) == muster.EUnavailable {
				return nil // it is restarting: the next event will tell
			}
			return err
		}
		if w.last = c; c.Scaling == nil || c.Status != muster.ClusterReady {
			return client.ErrStop
		}
		w.live.set(w.counts())
	}
	return nil
}

// counts is how many of the nodes concerned are in which phase.
func (w *scaleWatcher) counts() string {
	parts := phaseCounts(w.nodes)
	for _, c := range w.last.Conditions {
		if c.Code == muster.ConditionScaling {
			parts = append(parts, c.Text)
			if left := time.Until(c.ETA); !c.ETA.IsZero() && left > 0 {
				parts = append(parts, "done in about "+age(left+time.Second))
			}
		}
	}
	return strings.Join(parts, "; ")
}

func (w *scaleWatcher) verdict() error {
	c := w.last
	if c.Status != muster.ClusterReady {
		return muster.Errorf(muster.EConflict, "cluster %s is %s", w.scaled.Name, c.Status).Because(muster.ReasonWrongPhase).WithHint("see 'muster events %s'", w.scaled.ID)
	}
	for _, d := range c.Conditions {
		if d.Code == muster.ConditionScaleFailed && !d.Since.Before(w.since) {
			return muster.Errorf(muster.EUnavailable, "cluster %s: %s", w.scaled.Name, d.Text).Because(muster.ReasonScaleFailed).WithHint("%s", d.Hint)
		}
	}
	if c.Spec.Nodes != w.scaled.To || c.Spec.Logins != w.scaled.Logins {
		return muster.Errorf(muster.EConflict, "cluster %s has %s now: somebody changed it", w.scaled.Name, plaintext.Count(c.Spec.Nodes, "node")).Because(muster.ReasonChangedMeanwhile).
			WithHint("see 'muster events %s'", w.scaled.ID)
	}
	return nil
}
