package converge

import (
	"strings"

	"github.com/muster-hpc/muster"
)

// overdue tells the people of a cluster of what has waited until its deadline and goes on
// waiting: for a machine, for proof that one is off, for jobs.
func (d *decider) overdue() {
	for _, c := range d.Cluster.Conditions {
		d.tellOverdue("", c)
	}
	for i := range d.Nodes {
		for _, c := range d.Nodes[i].Conditions {
			d.tellOverdue(d.Nodes[i].Name, c)
		}
	}
}

func (d *decider) tellOverdue(node string, c muster.Condition) {
	if w, waits := c.Code.Waiting(); !waits || !w.Told {
		return
	}
	c = c.WithWaiting()
	if d.Now.Before(c.Deadline) {
		d.lookAt(c.Deadline)
		return
	}
	begins := "since " + clock(c.Since) + ", "
	if node != "" {
		begins += "node " + node + ": "
	}
	for _, n := range d.Cluster.Notices {
		if n.Code == muster.NoticeOverdue && strings.HasPrefix(n.Text, begins) && !n.At.Before(c.Deadline) {
			return
		}
	}
	text := begins + c.Text
	if c.Hint != "" {
		text += "; " + c.Hint
	}
	d.notice(muster.NoticeOverdue, text)
	d.clusterText("overdue: " + text)
}
