package converge

import (
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// idleMost is how long a cluster that only measures idle machines may live.
const idleMost = 2 * time.Hour

// idleOver ends a cluster that was made to measure idle machines: when they are
// measured and the slow ones are set aside, and when one is lost. It reports whether
// the cluster is over.
func (d *decider) idleOver() bool {
	c := &d.Cluster
	if !c.Benchmark {
		return false
	}
	why := d.idleWhy()
	if why == "" {
		d.lookAt(c.Created.Add(idleMost))
		return false
	}
	c.Phase = muster.ClusterDeleting
	d.clusterText(why)
	return true
}

// idleWhy reports why such a cluster ends; "" while it goes on.
func (d *decider) idleWhy() string {
	c := &d.Cluster
	in := func(phases ...muster.NodePhase) bool {
		return slices.ContainsFunc(d.Nodes, func(n muster.Node) bool { return slices.Contains(phases, n.Phase) })
	}
	switch {
	case c.Phase == muster.ClusterReady:
		return "there is nothing to measure"
	case !d.Now.Before(c.Created.Add(idleMost)):
		return "measuring idle machines took too long"
	case in(muster.NodeFencing):
		return "" // until it is certain that it is cut off, and why
	case c.Measurement != nil && c.Measurement.Phase == muster.MeasurementFailed:
		return "its machines could not be measured"
	case in(muster.NodeFenced) && c.Slow == 0:
		return "a machine was lost"
	case c.Measurement != nil && c.Measurement.Phase == muster.MeasurementDone && (len(c.Measurement.Low) == 0 || c.Slow > 0):
		return "its machines are measured"
	}
	return ""
}
