package converge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Codes of conditions, of a node and of its cluster, for what its agent says is not as
// it should be. What an agent says condemns no machine: whoever is root on the node can
// have it say anything.
const (
	unhealthy  = muster.ConditionUnhealthy  // a service that people rely on
	unfit      = muster.ConditionUnfit      // something that jobs need: the node gets no new ones
	notApplied = muster.ConditionNotApplied // a part of the newest configuration
	anew       = muster.ConditionAnew       // it was started anew for one of these
	elsewhere  = muster.ConditionElsewhere  // that did not help, and it moved to another machine
)

// Names of checks of an agent. The first reports what of the configuration it could not
// apply; a disk that is full is its people's to empty.
const (
	configurationCheck = "configuration"
	diskCheck          = "disk"
)

// jobsNeed reports whether jobs fail where the check does.
func jobsNeed(check string) bool {
	return slices.Contains([]string{diskCheck, "message network", "home", "munge"}, check)
}

// checked turns an agent's checks into conditions of its node.
func (d *decider) checked(list []muster.Condition, r *Report) []muster.Condition {
	set := func(code muster.ConditionCode, text, hint string) {
		if text == "" {
			list = withoutCondition(list, code)
			return
		}
		list = withCondition(list, muster.Condition{Code: code, Text: text, Since: d.Now, Hint: hint})
	}
	isConfiguration := func(name string) bool { return name == configurationCheck }
	applied := complaint(r, isConfiguration)
	fit := complaint(r, jobsNeed)
	health := complaint(r, func(name string) bool {
		return !isConfiguration(name) && !jobsNeed(name) && name != wire.CheckHibernated
	})
	if r.State == "failed" && health == "" && fit == "" {
		health = "its own checks fail"
	}
	mends := fmt.Sprintf("it recovers by itself where it can, otherwise it is restarted after %s; see `muster logs` of the node", d.Limits.Unwell)
	set(notApplied, strings.TrimPrefix(applied, configurationCheck+": "), "all else of the configuration is in force; it is tried again by itself, every half minute at the latest")
	set(unhealthy, health, mends)
	if fit != "" && onlyDisk(r) {
		mends = "remove files there; it gets jobs again by itself"
	}
	set(unfit, fit, "it gets no new jobs meanwhile; "+mends)
	return list
}

// onlyDisk reports whether nothing is wrong with a node but that its people have filled it.
func onlyDisk(r *Report) bool {
	return complaint(r, func(name string) bool { return name != diskCheck && name != configurationCheck }) == ""
}

// anewPause is how long a node is left as it is after it was started anew, and moved, for
// what its agent said: what that does not mend, another time does not, and root on it may
// want it so.
const anewPause = 24 * time.Hour

// cure is what is to be done about a node whose agent complains.
type cure int

const (
	noCure    cure = iota // it may mend itself
	startAnew             // which is what an administrator would do at last
	moveAway              // that did not help, and no job can run there: another machine may
)

// unwell reports what is to be done about a node whose agent complains, and why. Its machine
// is not to blame before it fails by itself, and none is for what most nodes have in common.
func (d *decider) unwell(n *muster.Node, list []muster.Condition, r *Report) (todo cure, why string) {
	if r == nil || d.Cluster.Phase != muster.ClusterReady || onlyDisk(r) {
		return noCure, ""
	}
	for _, code := range []muster.ConditionCode{unfit, unhealthy} {
		is := conditionOf(list, code)
		if is == nil {
			continue
		}
		what, end := startAnew, is.Since.Add(d.Limits.Unwell)
		if before := d.within(list, anew); before != nil {
			what = moveAway
			if code != unfit {
				end = maxTime(end, before.Since.Add(anewPause))
				what = startAnew
			} else if before := d.within(list, elsewhere); before != nil {
				end = maxTime(end, before.Since.Add(anewPause))
			}
		}
		switch {
		case d.Now.Before(end):
			d.lookAt(end)
		case d.common(r): // whoever is well again first wakes the cluster
		default:
			return what, is.Text
		}
	}
	return noCure, ""
}

// startsAnew reports whether a node in use is to be started anew for what its agent says.
func (d *decider) startsAnew(n muster.Node) bool {
	r := d.Observations[n.Machine].said(n)
	if r == nil || conditionOf(n.Conditions, unfit) == nil && conditionOf(n.Conditions, unhealthy) == nil {
		return false // it is told before anything is done about it
	}
	todo, _ := d.unwell(&n, d.checked(n.Conditions, r), r)
	return todo == startAnew
}

// within is a condition that is not older than a day.
func (d *decider) within(list []muster.Condition, code muster.ConditionCode) *muster.Condition {
	if c := conditionOf(list, code); c != nil && d.Now.Before(c.Since.Add(anewPause)) {
		return c
	}
	return nil
}

// common reports whether most nodes of the cluster complain of what this one does, two at
// least: then something that they share is at fault, and to start them all ends all jobs.
func (d *decider) common(r *Report) bool {
	for _, c := range r.Checks {
		if c.OK || c.Name == configurationCheck || c.Name == diskCheck {
			continue
		}
		alike, live := 0, 0
		for _, n := range d.Nodes {
			if n.Phase == muster.NodeGone {
				continue
			}
			live++
			if o := d.Observations[n.Machine].said(n); o != nil && complaint(o, func(name string) bool { return name == c.Name }) != "" {
				alike++
			}
		}
		if alike >= 2 && 2*alike > live {
			return true
		}
	}
	return false
}

func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// complaint is what is wrong by some of the checks; "" for nothing.
func complaint(r *Report, which func(name string) bool) string {
	var bad []string
	for _, c := range r.Checks {
		if !c.OK && which(c.Name) {
			bad = append(bad, strings.TrimSuffix(c.Name+": "+c.Text, ": "))
		}
	}
	return strings.Join(bad, "; ")
}

func badChecks(r *Report) string { return complaint(r, func(string) bool { return true }) }

// complaints tells the people of a cluster what is wrong on its nodes, once for all
// nodes on which the same is.
func (d *decider) complaints() {
	for _, code := range []muster.ConditionCode{notApplied, unhealthy, unfit} {
		nodes := map[string][]string{}
		var texts []string
		for _, n := range d.Nodes {
			c := conditionOf(n.Conditions, code)
			if c == nil || n.Phase == muster.NodeGone {
				continue
			}
			if nodes[c.Text] == nil {
				texts = append(texts, c.Text)
			}
			nodes[c.Text] = append(nodes[c.Text], n.Name)
		}
		slices.Sort(texts)
		var parts []string
		for _, t := range texts {
			parts = append(parts, few(nodes[t])+": "+t)
		}
		what := "not all of the newest configuration is in force on "
		switch code {
		case unhealthy:
			what = "something that people rely on does not work on "
		case unfit:
			what = "no new jobs start on "
		}
		if len(parts) == 0 {
			d.drop(code)
			continue
		}
		hint := hintOf(d.Nodes, code)
		for _, t := range texts {
			if n := len(nodes[t]); code != notApplied && n >= 2 && 2*n > len(d.Nodes) {
				hint = "most nodes have it in common: look at what they share, such as the server of a volume or a switch; none is restarted for it"
			}
		}
		d.condition(code, what+strings.Join(parts, "; "), hint)
	}
}

func hintOf(nodes []muster.Node, code muster.ConditionCode) string {
	for _, n := range nodes {
		if c := conditionOf(n.Conditions, code); c != nil {
			return c.Hint
		}
	}
	return ""
}
