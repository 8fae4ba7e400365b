package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) show() *cobra.Command {
	return &cobra.Command{
		Use: "show CLUSTER [NODE]", Short: "Show a cluster and its nodes, or one node", Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "CLUSTER is missing")
			}
			return atMost(2)(c, args)
		},
		Long: `Shows a cluster, by name or ID: state, nodes with their machines and addresses, and what
delays it. Its spec in JSON or YAML is a request for another like it.

With NODE it shows that node alone, and, if it is a virtual machine, how that is set up: each
setting as planned and as it was read back on its host after the start.`,
		Example: `  muster show cfd
  muster show cfd n01
  muster show cfd -o json | jq -r '.nodes[].address'
  muster show cfd -o json | jq '.spec | .name = "cfd2"' | muster create -f -`,
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return a.nodeNames(c, args[0], typed)
			}
			return a.completeClusters(1)(c, args, typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			cluster, err := k.Cluster(c.Context(), args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return a.showNode(cluster, args[1])
			}
			return a.print(cluster, func(w io.Writer) {
				a.writeCluster(w, cluster, time.Now())
				if cluster.Status != muster.ClusterReady {
					return
				}
				// Without them the rest is still worth having.
				if top, err := k.Top(c.Context(), string(cluster.ID)); err == nil && len(top.Jobs) > 0 {
					fmt.Fprintln(w)
					writeJobs(w, top.Jobs, top.At)
				}
			})
		},
	}
}

// onPauseText says what becomes of running jobs in a pause, where that is not as usual.
func onPauseText(o muster.OnPause) string {
	if o == muster.PauseWait {
		return ""
	}
	return string(o)
}

func (a *app) writeCluster(w io.Writer, c wire.Cluster, now time.Time) {
	fmt.Fprintf(w, "%s  %s  %s\n", clean(c.Name), c.ID, a.paint(w, c.Status))
	text := c.StatusText
	if text == string(c.Status) {
		text = ""
	}
	fields(w,
		"status", text,
		"since", since(c.PhaseSince, now),
		"project", c.Project+", owner "+c.Owner,
		"users", strings.Join(c.Users, " "),
		"image", imageText(c),
		"class", c.Class,
		"network", networkText(c),
		"doors", doorsText(c),
		"on pause", onPauseText(c.Spec.OnPause),
		"created", stamp(c.Created),
		"ready", readyText(c),
		"next", nextText(c.Next, c.Deadline),
		"expires", stamp(c.Expires),
		"speed", speedText(c, now),
	)
	if c.Lifted != nil {
		fmt.Fprintf(w, "note: %s\n", clean(c.Lifted.Text()))
	}
	if c.Oversubscribed {
		fmt.Fprintln(w, "note: its machines share cores with others (oversubscribed)")
	}
	if c.Reason != nil {
		fmt.Fprintf(w, "failed: %s\n", clean(c.Reason.Message))
		writeProblems(w, c.Reason)
	}
	writeMounts(w, c.Volumes, now)
	writeConditions(w, "", c.Conditions, c.Next)
	if len(c.Nodes) == 0 {
		return
	}
	fmt.Fprintln(w)
	writeNodes(w, c.Nodes, now)
	for _, n := range c.Nodes {
		writeConditions(w, n.Name+": ", n.Conditions, "")
	}
	writeVirtual(w, c.Nodes)
}

func writeNodes(w io.Writer, nodes []wire.Node, now time.Time) {
	// Where nothing but racks is known the rack says it all.
	where, header := func(n wire.Node) string { return n.Rack }, "RACK"
	if slices.ContainsFunc(nodes, func(n wire.Node) bool { return len(n.Location) > 1 && stands(n) != n.Rack }) {
		where, header = stands, "STANDS IN"
	}
	t := newTable("NODE", "STATUS", "MACHINE", "ADDRESS", header, "CORES", "BUSY", "MEMORY", "USED", "LAST STAGE", "SEEN")
	for _, n := range nodes {
		name := n.Name
		if n.Head {
			name += " (head)"
		}
		stage := ""
		if len(n.Stages) > 0 {
			last := n.Stages[len(n.Stages)-1]
			stage = fmt.Sprintf("%s +%.1fs", last.Name, last.At.Sub(n.Stages[0].At).Seconds())
		}
		cores := ""
		if n.Cores > 0 {
			cores = fmt.Sprint(n.Cores)
		}
		memory := ""
		if n.Memory > 0 {
			memory = size(n.Memory)
		}
		seen := ""
		if !n.LastSeen.IsZero() {
			seen = since(n.LastSeen, now) + " ago"
		}
		if n.Role == muster.RoleLogin {
			name += " (login)"
		}
		busy, used := "", ""
		if u := n.Usage; u != nil {
			busy, used = fmt.Sprintf("%.2f", u.CPUUser+u.CPUSystem), size(u.MemoryUsed)
		}
		t.row(name, nodeStatus(n), string(n.Machine), n.Address, where(n), cores, busy, memory, used, stage, seen)
	}
	t.write(w)
}

// stands is what the machine of a node stands in, the outermost first.
func stands(n wire.Node) string {
	if len(n.Location) < 2 {
		return n.Rack
	}
	return clean(strings.Join(n.Location[:len(n.Location)-1], "/"))
}

// writeProblems tells every problem of an error, and what to do.
func writeProblems(w io.Writer, e *muster.Error) {
	for _, p := range e.Problems {
		fmt.Fprintf(w, "  %s\n", clean(p.String()))
	}
	if e.Hint != "" {
		fmt.Fprintf(w, "  %s\n", clean(e.Hint))
	}
}

// nodeStatus is where a node stands, and whether the scheduler may use it.
func nodeStatus(n wire.Node) string {
	switch {
	case n.Leave:
		return string(n.Status) + ", leaving"
	case n.Hold && n.Status == muster.NodeValidating:
		return string(n.Status) + ", held"
	}
	return string(n.Status)
}

// within reports how well a time is known.
func within(spread time.Duration) string {
	if spread <= 0 {
		return ""
	}
	return " (usually within " + age(spread+time.Second-1) + " of that)"
}

func imageText(c wire.Cluster) string {
	text := c.Spec.Image
	if c.Image != "" && c.Spec.Image != string(c.Image) && !strings.HasSuffix(c.Spec.Image, "@"+c.Image.Short()) {
		text += " (" + c.Image.Short() + ")"
	}
	if len(c.Spec.Packages) > 0 {
		text += " + " + strings.Join(c.Spec.Packages, " ")
	}
	return text
}

func networkText(c wire.Cluster) string {
	if c.Subnet == "" {
		return ""
	}
	return c.Subnet + ", outgoing: " + string(c.Egress)
}

// doorsText is by which doors of the gateway users come, and who could read what they say.
func doorsText(c wire.Cluster) string {
	switch {
	case len(c.Doors) == 0:
		return "none is open"
	case slices.Contains(c.Doors, muster.DoorPlain):
		return doorNames(c.Doors, ", ") + " (at the plain door the gateway could read what passes)"
	}
	return doorNames(c.Doors, ", ")
}

func doorNames(doors []muster.Door, between string) string {
	names := make([]string, len(doors))
	for i, d := range doors {
		names[i] = clean(string(d))
	}
	return strings.Join(names, between)
}

func readyText(c wire.Cluster) string {
	if c.Ready.IsZero() {
		if c.ETA.IsZero() && c.ETAUnknown != "" {
			return "nobody knows when: " + clean(c.ETAUnknown)
		}
		if c.ETA.IsZero() || c.Status == muster.ClusterPausing || c.Status == muster.ClusterDeleting {
			return ""
		}
		return "expected " + stamp(c.ETA) + within(time.Duration(c.ETASpread))
	}
	return fmt.Sprintf("%s, %.1fs after it was asked for", stamp(c.Ready), c.Ready.Sub(c.Created).Seconds())
}

// nextText says what happens to something that waits, and when.
func nextText(next string, deadline time.Time) string {
	if next == "" || deadline.IsZero() {
		return next
	}
	return "at " + stamp(deadline) + " at the latest: " + next
}

// speedText is what is known of how fast a cluster is.
func speedText(c wire.Cluster, now time.Time) string {
	m := c.Measurement
	switch {
	case m == nil && c.Status != muster.ClusterReady:
		return ""
	case m == nil && c.Spec.Validate == muster.ValidateOff:
		return "not measured: validation is off for it; muster certificate run " + clean(c.Name)
	case m == nil:
		return "not measured: the image has nothing to measure with"
	case m.Phase.Open():
		return progressOf(*m)
	case m.Phase == muster.MeasurementFailed && m.Reason != nil:
		return "the last benchmark run failed: " + clean(m.Reason.Message) + "; what is in force: muster certificate list " + clean(c.Name)
	case m.Result != "":
		return fmt.Sprintf("HPL %s ago: muster bench show %s; certificates: muster certificate list %[2]s", since(m.Ended, now), clean(c.Name))
	case m.Phase != muster.MeasurementDone:
		return ""
	}
	text := string(m.Verdict)
	if !m.Certified {
		text += ", not certified"
	}
	return fmt.Sprintf("%s, measured %s ago: muster certificate show %s", text, since(m.Ended, now), clean(c.Name))
}

// writeConditions tells of conditions what they are, when they should end and what happens
// otherwise, but for what is said already.
func writeConditions(w io.Writer, prefix string, list []muster.Condition, said string) {
	for _, c := range list {
		fmt.Fprintf(w, "%s%s: %s\n", prefix, c.Code, clean(c.Text))
		if c.Hint != "" {
			fmt.Fprintf(w, "  %s\n", clean(c.Hint))
		}
		if c.Next == said {
			continue
		}
		if !c.ETA.IsZero() {
			fmt.Fprintf(w, "  expected to end %s%s\n", stamp(c.ETA), within(time.Duration(c.ETASpread)))
		} else if c.ETAUnknown != "" {
			fmt.Fprintf(w, "  nobody knows when it ends: %s\n", clean(c.ETAUnknown))
		}
		if next := nextText(c.Next, c.Deadline); next != "" {
			fmt.Fprintf(w, "  %s\n", clean(next))
		}
	}
}
