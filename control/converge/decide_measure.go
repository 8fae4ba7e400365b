package converge

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// Codes of conditions about speed.
const (
	measuring  = muster.ConditionMeasuring   // of a cluster: its speed is being measured
	unmeasured = muster.ConditionNotMeasured // of a cluster: it should have been, and was not
	slow       = muster.ConditionSlow        // of a cluster with such nodes, and of a machine
)

// measure starts measuring the cluster before it is handed over, if its request and
// its image let that be. It is true while the cluster must wait. No measurement is
// under way: who measures wakes the cluster when it ends.
func (d *decider) measure() bool {
	c := &d.Cluster
	nodes := muster.ToMeasure(d.Nodes, nil)
	if !d.Measures || c.Spec.Validate == "" || c.Spec.Validate == muster.ValidateOff || len(nodes) == 0 {
		return false
	}
	m, of := c.Measurement, muster.DigestOfNodes(nodes)
	can, known := d.canMeasure(nodes)
	switch {
	case !known:
		d.lookAfter(time.Second) // their agents speak soon, or fall silent
		return true
	case !can:
		return false
	case m != nil && m.Of == of && m.Trigger == d.trigger() && m.Phase == muster.MeasurementDone:
		d.drop(measuring)
		return d.replaceSlow(nodes, *m)
	case m != nil && m.Of == of && m.Phase == muster.MeasurementFailed, c.Measured >= d.Limits.Measurements:
		d.drop(measuring)
		return d.unmeasured(m)
	}
	c.Measured++
	d.wantMeasured(muster.Measurement{Trigger: d.trigger(), Of: of})
	d.condition(measuring, "its speed is measured before it is handed over", "")
	d.clusterText("")
	return true
}

// trigger is why a cluster is measured before it is ready.
func (d *decider) trigger() string {
	if d.Cluster.Benchmark {
		return muster.TriggerIdle
	}
	return muster.TriggerDelivery
}

// wantMeasured asks for a measurement, one at a time.
func (d *decider) wantMeasured(m muster.Measurement) {
	m.ID, m.Seed, m.Level = d.MeasurementID, d.MeasurementSeed, d.Cluster.Spec.Validate
	m.Phase, m.Wanted = muster.MeasurementWanted, d.Now
	if m.Of == "" {
		m.Of = muster.DigestOfNodes(muster.ToMeasure(d.Nodes, m.Nodes))
	}
	d.Cluster.Measurement = &m
	d.clusterText("its speed is measured: " + m.Trigger)
}

// canMeasure reports whether all nodes have what measuring needs, and whether that is
// known: a server that was started again has not heard all of them yet.
func (d *decider) canMeasure(nodes []muster.Node) (can, known bool) {
	can, known = true, true
	for _, n := range nodes {
		r := d.Observations[n.Machine].said(n)
		known = known && r != nil
		can = can && (r == nil || r.Probe)
	}
	return can, known || !can
}

// replaceSlow gives the nodes that are too slow other machines, as far as there
// are some. It is true if the cluster must wait for them, or is refused.
func (d *decider) replaceSlow(nodes []muster.Node, m muster.Measurement) bool {
	waits := false
	for _, low := range m.Low {
		i := slices.IndexFunc(d.Nodes, func(n muster.Node) bool { return n.Name == low.Node })
		if i < 0 || d.Nodes[i].Machine != low.Machine || d.Nodes[i].Attempt != low.Attempt || d.Spares[low.Node].Machine.ID == "" && !d.Cluster.Benchmark || d.Cluster.Slow >= d.Limits.SlowMost {
			continue
		}
		d.Cluster.Slow++
		d.Nodes[i].Failures, d.Nodes[i].Unconfigured = 0, nil
		d.lost(i, "it is slow: "+low.Text)
		waits = true
	}
	switch {
	case waits:
		d.clusterText("machines that are too slow are replaced")
		return true
	case len(m.Low) > 0 && d.Cluster.Spec.IfSlow == muster.SlowRefuse:
		d.fail(muster.Errorf(muster.EUnavailable, "%s, and there is no other machine: %s", slowNames(m), m.Low[0].Text).Because(muster.ReasonTooSlow).
			WithHint("ask again later, or with if_slow: deliver; the figures are in certificate %s", m.Manifest))
		return true
	case m.SlowHost != "" && d.Cluster.Spec.IfSlow == muster.SlowRefuse:
		d.fail(muster.Errorf(muster.EUnavailable, "the host of its machines is slow: %s", m.SlowHost).Because(muster.ReasonTooSlow).
			WithHint("ask again later, or with if_slow: deliver; the figures are in certificate %s", m.Manifest))
		return true
	}
	return false
}

// unmeasured goes on with a cluster that could not be measured, as its request
// says. It is true if it is refused.
func (d *decider) unmeasured(m *muster.Measurement) bool {
	why := "it was tried " + timesText(d.Cluster.Measured)
	if m != nil && m.Reason != nil {
		why = m.Reason.Message
	}
	if d.Cluster.Spec.IfSlow == muster.SlowRefuse {
		d.fail(muster.Errorf(muster.EUnavailable, "its speed could not be measured: %s", why).Because(muster.ReasonNotMeasured).
			WithHint("ask again, or with validate: off, or with if_slow: deliver"))
		return true
	}
	return false
}

// tellSpeed says with a cluster that is handed over what is known to be wrong with
// its speed.
func (d *decider) tellSpeed() {
	c := &d.Cluster
	m := c.Measurement
	c.Measured, c.Slow = 0, 0
	if m == nil || m.Trigger != muster.TriggerDelivery || !d.Measures {
		return
	}
	switch {
	case m.Phase == muster.MeasurementFailed && m.Reason != nil:
		d.condition(unmeasured, "its speed could not be measured: "+m.Reason.Message, "measure it with `muster certificate run "+c.Name+"`")
	case len(m.Low) > 0:
		d.condition(slow, slowNames(*m)+": "+m.Low[0].Text, "see `muster certificate show "+c.Name+"`")
	case m.SlowHost != "":
		d.condition(slow, "the host of its machines is slow: "+m.SlowHost, "see `muster certificate show "+c.Name+"`")
	default:
		return
	}
	d.clusterText("")
}

func slowNames(m muster.Measurement) string {
	if n := len(m.Low); n > 1 {
		return fmt.Sprintf("%s and %d more nodes are slow", m.Low[0].Node, n-1)
	}
	return m.Low[0].Node + " is slow"
}

// slowMachine reports for what a cluster found a node's machine too slow.
func slowMachine(c muster.Cluster, n muster.Node) string {
	if c.Measurement == nil {
		return ""
	}
	for _, low := range c.Measurement.Low {
		if low.Node == n.Name && low.Machine == n.Machine {
			return low.Text
		}
	}
	return ""
}

// measureJoining starts measuring nodes that are to take jobs in a cluster which is in
// use: beside others that are idle, or else by themselves. It returns those that may
// join.
func (d *decider) measureJoining(list []int) []int {
	c := &d.Cluster
	if !d.Measures || c.Spec.Validate == "" || c.Spec.Validate == muster.ValidateOff || len(list) == 0 || c.Phase != muster.ClusterReady {
		return list
	}
	known := map[string]bool{} // measured as they are now
	m := c.Measurement
	if m != nil && !m.Phase.Open() && len(m.Nodes) > 0 && muster.DigestOfNodes(muster.ToMeasure(d.Nodes, m.Nodes)) == m.Of {
		for _, name := range m.Nodes {
			known[name] = true
		}
	}
	var may, unknown []int
	for _, i := range list {
		n := d.Nodes[i]
		switch {
		case n.Role != muster.RoleCompute:
			may = append(may, i)
		case !known[n.Name]:
			if can, known := d.canMeasure([]muster.Node{n}); !known {
				d.lookAfter(time.Second)
			} else if can {
				unknown = append(unknown, i)
			} else {
				may = append(may, i)
			}
		case slowMachine(*c, n) != "" && d.Spares[n.Name].Machine.ID != "" && n.Repairs < d.Limits.SlowMost:
			d.lost(i, "it is slow: "+slowMachine(*c, n))
		default:
			may = append(may, i)
		}
	}
	if len(unknown) == 0 {
		return may
	}
	names := make([]string, len(unknown))
	for k, i := range unknown {
		names[k] = d.Nodes[i].Name
		d.nodeCondition(&d.Nodes[i], muster.Condition{Code: muster.ConditionHeld, Text: "its speed is measured before it takes jobs", Since: d.Now})
	}
	if m == nil || !m.Phase.Open() {
		occasion := muster.TriggerRepair
		if c.Scaling != nil && slices.Contains(c.Scaling.Joining, names[0]) {
			occasion = muster.TriggerScale
		}
		partners := d.partners(names)
		d.wantMeasured(muster.Measurement{Trigger: occasion, Nodes: slices.Concat(names, partners), Partners: partners, Reserve: partners})
	}
	return may
}
