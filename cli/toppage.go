package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// page writes the clusters, or one cluster's nodes and jobs.
func (t *topScreen) page(w io.Writer, top wire.Top) {
	if t.ref != "" && len(top.Clusters) == 1 {
		t.one(w, top)
		return
	}
	if s := top.Site; s != nil {
		fmt.Fprintf(w, "%s   hosts up %d, down %d   machines %s\n\n", top.At.Local().Format("15:04:05"), s.Up, s.Down, machinesText(s.Machines))
	}
	if len(top.Clusters) == 0 {
		fmt.Fprintln(w, "No clusters. Ask for one: muster create NAME -n 4 --wait")
		return
	}
	list := slices.Clone(top.Clusters)
	slices.SortStableFunc(list, func(a, b wire.TopCluster) int {
		switch t.key {
		case 'c':
			return cmp.Compare(b.CoresBusy, a.CoresBusy)
		case 'm':
			return cmp.Compare(b.MemoryUsed, a.MemoryUsed)
		case 'j':
			return cmp.Compare(b.Jobs+b.Pending, a.Jobs+a.Pending)
		case 't':
			return cmp.Compare(timeKey(a), timeKey(b))
		}
		return cmp.Compare(a.Name, b.Name)
	})
	table := newTable("CLUSTER", "STATUS", "UP", "DOWN", "NODES", "CORES BUSY", "OF", "MEMORY", "OF", "JOBS", "WAITING", "USERS", "TIME LEFT", "OWNER")
	for _, c := range list {
		table.row(c.Name, string(c.Status), fmt.Sprint(c.Up), downText(c.Down), fmt.Sprint(c.Nodes), cores(c.CoresBusy), fmt.Sprint(c.Cores),
			size(c.MemoryUsed), size(c.MemoryTotal), fmt.Sprint(c.Jobs), fmt.Sprint(c.Pending), fmt.Sprint(c.Users), leftText(c.Expires, top.At), c.Owner)
	}
	table.write(w)
}

func (t *topScreen) one(w io.Writer, top wire.Top) {
	c := top.Clusters[0]
	fmt.Fprintf(w, "%s   %s  %s  %s   hosts up %d, down %d   cores busy %s of %d   memory %s of %s\n", top.At.Local().Format("15:04:05"),
		clean(c.Name), c.ID, c.Status, c.Up, c.Down, coresText(c), c.Cores, size(c.MemoryUsed), size(c.MemoryTotal))
	fmt.Fprintf(w, "jobs running %d, waiting %d   users %d", c.Jobs, c.Pending, c.Users)
	if left := leftText(c.Expires, top.At); left != "" {
		fmt.Fprintf(w, "   time left %s", left)
	}
	fmt.Fprint(w, "\n\n")
	nodes := slices.Clone(top.Nodes)
	slices.SortStableFunc(nodes, func(a, b wire.TopNode) int {
		switch t.key {
		case 'c':
			return cmp.Compare(busy(b), busy(a))
		case 'm':
			return cmp.Compare(memory(b), memory(a))
		}
		return 0 // the server's order
	})
	table := newTable("NODE", "STATUS", "SCHEDULER", "CORES BUSY", "OF", "LOAD", "MEMORY", "OF", "RECEIVED", "SENT", "READ", "WRITTEN", "SEEN")
	for _, n := range nodes {
		row := []string{n.Node, string(n.Status), n.Scheduler, "", "", "", "", "", "", "", "", "", since(n.Seen, top.At)}
		if n.Cores > 0 {
			row[4] = fmt.Sprint(n.Cores)
		}
		if n.Memory > 0 { // until its agent says what it sees
			row[7] = size(n.Memory)
		}
		if u := n.Usage; u != nil {
			row[3], row[5], row[6], row[7] = cores(busy(n)), cores(u.Load1), size(u.MemoryUsed), size(u.MemoryTotal)
			row[8], row[9], row[10], row[11] = rate(n.NetRx), rate(n.NetTx), rate(n.DiskRead), rate(n.DiskWrite)
		}
		table.row(row...)
	}
	table.write(w)
	if len(top.Jobs) == 0 {
		return
	}
	fmt.Fprintln(w)
	writeJobs(w, top.Jobs, top.At)
}

// writeJobs lists jobs as the scheduler tells them.
func writeJobs(w io.Writer, jobs []wire.Job, now time.Time) {
	table := newTable("JOB", "USER", "NAME", "STATE", "NODES", "WHERE", "TIME", "LIMIT", "REASON")
	for _, j := range jobs {
		table.row(j.ID, j.User, clip(j.Name, 24), j.State, fmt.Sprint(j.Count), j.Nodes, since(j.Started, now), j.Limit, j.Reason)
	}
	table.write(w)
}

func busy(n wire.TopNode) float64 {
	if n.Usage == nil {
		return 0
	}
	return n.Usage.CPUUser + n.Usage.CPUSystem
}

func memory(n wire.TopNode) int64 {
	if n.Usage == nil {
		return 0
	}
	return n.Usage.MemoryUsed
}

func machinesText(counts map[muster.MachinePhase]int) string {
	var list []string
	for _, p := range muster.MachinePhases() {
		if n := counts[p]; n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, p))
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// downText makes lost hosts stand out among zeros.
func downText(n int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d!", n)
}

func leftText(expires, now time.Time) string {
	if expires.IsZero() {
		return ""
	}
	return age(expires.Sub(now))
}

// timeKey sorts clusters without an end last.
func timeKey(c wire.TopCluster) int64 {
	if c.Expires.IsZero() {
		return 1<<62 - 1
	}
	return c.Expires.Unix()
}

// coresText is how many cores are busy; a deleted cluster has none.
func coresText(c wire.TopCluster) string {
	if c.Status == muster.ClusterDeleted {
		return "-"
	}
	return cores(c.CoresBusy)
}
