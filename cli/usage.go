package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) usage() *cobra.Command {
	var samples int
	var since, step string
	var ascii bool
	c := &cobra.Command{
		Use: "usage [CLUSTER [NODE]]", Short: "Show resource usage over time", Args: atMost(2),
		Long: `Shows processor, memory, network and disk usage of each node over time, with the queue
and the jobs of the cluster. A node keeps its history when its machine is replaced; for
a deleted cluster, give its ID. Without a cluster it shows the usage of the site, as
far as you can see it.

Gaps are times without data. Ten-second means are kept for 6 hours, five-minute means
for 14 days, hourly means for 400 days.

With --samples and -o json it prints the most recent samples as the agents sent them.`,
		Example: `  muster usage cfd
  muster usage cfd n02 --since 6h
  muster usage cfd --since 14d --step 6h -o json
  muster usage --since 1d`,
		ValidArgsFunction: a.completeNodes,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			q, err := usageQuery(since, step)
			if err != nil {
				return err
			}
			if c.Flags().Changed("samples") && samples < 1 {
				return muster.Errorf(muster.EInvalid, "--samples cannot be %d", samples).Because(muster.ReasonOutOfRange).WithHint("write how many of the newest there should be, such as 3")
			}
			if c.Flags().Changed("samples") && len(args) == 0 {
				return usage(c, "--samples is of one cluster, and CLUSTER is missing")
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			p := &usagePage{width: a.env.width(a.env.Out), ascii: ascii || !a.utf8()}
			if len(args) == 0 {
				u, err := k.SiteUsage(c.Context(), q)
				if err != nil {
					return err
				}
				return a.print(u, func(w io.Writer) { p.site(w, u) })
			}
			if len(args) > 1 {
				q.Node = args[1]
			}
			if c.Flags().Changed("samples") {
				u, err := k.Usage(c.Context(), args[0], samples)
				if err == nil && q.Node != "" {
					u.Nodes, err = a.oneNode(c.Context(), k, args[0], q.Node, u.Nodes)
				}
				if err != nil {
					return err
				}
				return a.print(u, func(w io.Writer) { writeSamples(w, u, time.Now()) })
			}
			u, err := k.UsageOver(c.Context(), args[0], q)
			if err != nil {
				return err
			}
			return a.print(u, func(w io.Writer) { p.cluster(w, u) })
		},
	}
	c.Flags().StringVar(&since, "since", "1h", "how far back: 30m, 6h, 14d")
	c.Flags().StringVar(&step, "step", "", "time per point, 10s or more (default: about sixty points)")
	c.Flags().BoolVar(&ascii, "ascii", false, "draw with ASCII characters")
	c.Flags().IntVar(&samples, "samples", 0, "show this many of each node's most recent samples instead")
	return c
}

// oneNode is the node of that name; "head" is the one with the head.
func (a *app) oneNode(ctx context.Context, k *client.Client, cluster, name string, nodes []wire.NodeUsage) ([]wire.NodeUsage, error) {
	c, err := k.Cluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var have []string
	for _, n := range c.Nodes {
		have = append(have, n.Name)
		if n.Name != name && (name != "head" || !n.Head) {
			continue
		}
		for _, u := range nodes {
			if u.Node == n.Name {
				return []wire.NodeUsage{u}, nil
			}
		}
	}
	e := muster.Errorf(muster.ENotFound, "cluster %s has no node %q now", c.Name, name).Because(muster.ReasonNoSuchNode)
	if near := suggest.Of(name, have); near != "" {
		return nil, e.WithHint("did you mean %s?", near)
	}
	return nil, e.WithHint("see 'muster show %s'", c.ID)
}

// usageQuery reads the flags; both faults at once.
func usageQuery(since, step string) (q wire.UsageQuery, err error) {
	var bad []string
	var e error
	if q.Since, e = duration.Parse(since); e != nil || q.Since <= 0 {
		bad = append(bad, fmt.Sprintf("--since cannot be %q", since))
	}
	if step != "" {
		if q.Step, e = duration.Parse(step); e != nil || q.Step < 10*time.Second {
			bad = append(bad, fmt.Sprintf("--step cannot be %q", step))
		}
	}
	if len(bad) > 0 {
		return q, muster.Errorf(muster.EInvalid, "%s", strings.Join(bad, ", and ")).Because(muster.ReasonBadValue).WithHint("write a time such as 30m, 6h, 14d or 2w; a step is 10s or longer")
	}
	return q, nil
}

// usagePage draws curves for people.
type usagePage struct {
	width int
	ascii bool
	over  bool // the cluster is deleted: it has no "now"
}

// figure is one line of a node: a curve, or two summed, and how to say it.
type figure struct {
	label string
	names []string // of curves, summed
	of    string   // a curve whose maximum is the top of the scale
	say   func(float64) string
	least float64 // the top of the scale is not below
}

func cores(v float64) string { return fmt.Sprintf("%.2f", v) }
func plain0(v float64) string {
	if v == float64(int64(v)) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
func bytesOf(v float64) string { return size(int64(v)) }
func rate(v float64) string    { return size(int64(v)) + "/s" }

func nodeFigures() []figure {
	return []figure{
		{"cpu (cores)", []string{"cpu_user", "cpu_system"}, "", cores, 0.1},
		{"  system", []string{"cpu_system"}, "", cores, 0.1},
		{"  waiting", []string{"cpu_wait"}, "", cores, 0.1},
		{"load", []string{"load1"}, "", cores, 0.1},
		{"memory", []string{"memory_used_bytes"}, "memory_total_bytes", bytesOf, 1},
		{"received", []string{"net_rx_bytes_per_second"}, "", rate, 1024},
		{"sent", []string{"net_tx_bytes_per_second"}, "", rate, 1024},
		{"managem. in", []string{"mgmt_rx_bytes_per_second"}, "", rate, 1024},
		{"managem. out", []string{"mgmt_tx_bytes_per_second"}, "", rate, 1024},
		{"disk read", []string{"disk_read_bytes_per_second"}, "", rate, 1024},
		{"disk written", []string{"disk_write_bytes_per_second"}, "", rate, 1024},
		{"disk used", []string{"disk_used_bytes"}, "disk_total_bytes", bytesOf, 1},
	}
}

// shortFigures are the lines of each node when there are several.
func shortFigures() []figure {
	all := nodeFigures()
	return []figure{all[0], all[4], all[5], all[6], all[9], all[10]}
}

func clusterFigures() []figure {
	return []figure{
		{"jobs running", []string{"jobs_running"}, "", plain0, 1},
		{"jobs waiting", []string{"jobs_pending"}, "", plain0, 1},
		{"hosts up", []string{"hosts_up"}, "hosts_total", plain0, 1},
		{"hosts down", []string{"hosts_down"}, "hosts_total", plain0, 1},
		{"cores busy", []string{"cores_busy"}, "cores_total", cores, 0.1},
	}
}

// manyNodes is from how many nodes on each has one line only.
const manyNodes = 9

func (p *usagePage) cluster(w io.Writer, u wire.ClusterUsage) {
	p.over = u.Status == muster.ClusterDeleted
	fmt.Fprintf(w, "%s  %s  %s\n%s\n\n", clean(u.Name), u.ID, u.Status, windowText(u.Window))
	t := newTable(p.head()...)
	p.rows(t, "", u.Curves, clusterFigures())
	switch {
	case len(u.Nodes) == 1:
		p.node(t, u.Nodes[0], nodeFigures())
	case len(u.Nodes) < manyNodes:
		for _, n := range u.Nodes {
			p.node(t, n, shortFigures())
		}
	default:
		for _, n := range u.Nodes {
			if len(n.Curves) == 0 {
				t.row(n.Node, "nothing is known", " ", " ", " ", " ")
				continue
			}
			p.rows(t, n.Node+" ", n.Curves, nodeFigures()[:1])
		}
	}
	t.write(w)
	for _, n := range u.Nodes {
		if len(n.Machines) > 1 {
			var list []string
			for _, m := range n.Machines {
				list = append(list, fmt.Sprintf("%s from %s", m.Machine, stamp(m.Since)))
			}
			fmt.Fprintf(w, "%s was filled by %s\n", n.Node, clean(strings.Join(list, ", ")))
		}
	}
}

func (p *usagePage) head() []string {
	return []string{"WHAT", "OVER TIME", "MIN", "MEAN", "MAX", "NOW"}
}

func (p *usagePage) node(t *table, n wire.NodeUsage, list []figure) {
	t.rows = append(t.rows, []string{""}, []string{clean(n.Node)})
	if len(n.Curves) == 0 {
		t.rows = append(t.rows, []string{"  -", "nothing is known in this time"})
		return
	}
	p.rows(t, "  ", n.Curves, list)
}

func (p *usagePage) rows(t *table, prefix string, curves map[string]wire.Curve, list []figure) {
	for _, f := range list {
		k, ok := sum(curves, f.names)
		if !ok {
			continue
		}
		top := max(k.Max, f.least)
		if of, ok := curves[f.of]; ok && of.Max > 0 {
			top = of.Max
		}
		now := "-"
		for i := len(k.Points) - 1; !p.over && i >= max(0, len(k.Points)-2); i-- { // the last point may have just begun
			if k.Points[i] != nil {
				now = f.say(*k.Points[i])
				break
			}
		}
		line := spark(k.Points, top, p.width-58, p.ascii)
		// Not by row: a gap at the end is a gap, not an empty cell.
		t.rows = append(t.rows, []string{prefix + f.label, line, f.say(k.Min), f.say(k.Mean), f.say(k.Max), now})
	}
}

// sum adds curves point by point. What is missing in one is missing.
func sum(curves map[string]wire.Curve, names []string) (wire.Curve, bool) {
	out, ok := curves[names[0]]
	if !ok || len(names) == 1 {
		return out, ok
	}
	out.Points = append([]*float64(nil), out.Points...)
	lowest := -1.0
	for _, name := range names[1:] {
		k, ok := curves[name]
		if !ok || len(k.Points) != len(out.Points) {
			return out, ok
		}
		out.Mean += k.Mean
		out.Max += k.Max
		for i, v := range k.Points {
			if v == nil || out.Points[i] == nil {
				out.Points[i] = nil
				continue
			}
			both := *out.Points[i] + *v
			out.Points[i] = &both
			if lowest < 0 || both < lowest {
				lowest = both
			}
		}
	}
	out.Min = max(lowest, 0)
	return out, true
}

func windowText(win *wire.Window) string {
	if win == nil {
		return ""
	}
	step := time.Duration(win.Step)
	return fmt.Sprintf("from %s on; %s of %s", stamp(win.From), plaintext.Count(win.Points, "point"), strings.TrimSuffix(strings.TrimSuffix(age(step), "00s"), "00m"))
}

func (p *usagePage) site(w io.Writer, u wire.SiteUsage) {
	fmt.Fprintf(w, "%s\n\n", windowText(&u.Window))
	t := newTable(p.head()...)
	p.rows(t, "", u.Site, []figure{{"cores busy", []string{"cores_busy"}, "cores_total", cores, 0.1}})
	for _, phase := range muster.MachinePhases() {
		name := "machines_" + string(phase)
		if u.Site[name].Max > 0 {
			p.rows(t, "machines ", u.Site, []figure{{string(phase), []string{name}, "", plain0, 1}})
		}
	}
	for _, phase := range muster.ClusterPhases() {
		name := "clusters_" + string(phase)
		if u.Site[name].Max > 0 && phase != muster.ClusterDeleted {
			p.rows(t, "clusters ", u.Site, []figure{{string(phase), []string{name}, "", plain0, 1}})
		}
	}
	for _, c := range u.Clusters {
		t.rows = append(t.rows, []string{""}, []string{clean(c.Name) + "  " + string(c.ID)})
		if len(c.Curves) == 0 {
			t.rows = append(t.rows, []string{"  -", "nothing is known in this time"})
			continue
		}
		p.rows(t, "  ", c.Curves, clusterFigures())
	}
	t.write(w)
}

// writeSamples prints samples as they came.
func writeSamples(w io.Writer, u wire.ClusterUsage, now time.Time) {
	t := newTable("NODE", "CPU", "USER", "SYSTEM", "WAIT", "LOAD", "MEMORY", "OF", "RECEIVED", "SENT", "DISK READ", "WRITTEN", "DISK USED", "PROCESSES", "AGE")
	for _, n := range u.Nodes {
		if len(n.Samples) == 0 {
			t.row(n.Node, "", "", "", "", "", "", "", "", "", "", "", "", "", "no sample")
			continue
		}
		for _, s := range n.Samples {
			t.row(n.Node, cores(s.CPUUser+s.CPUSystem), cores(s.CPUUser), cores(s.CPUSystem), cores(s.CPUWait),
				cores(s.Load1), size(s.MemoryUsed), size(s.MemoryTotal), size(s.NetRx), size(s.NetTx),
				size(s.DiskRead), size(s.DiskWrite), size(s.DiskUsed), fmt.Sprint(s.Processes), since(s.At, now))
		}
	}
	t.write(w)
}
