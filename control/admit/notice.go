package admit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// planNotices tell what is worth knowing of a plan that goes ahead.
func (a *query) planNotices(plan muster.Plan) []string {
	var list []string
	if n := computeNodes(plan); n < a.spec.Nodes {
		list = append(list, fmt.Sprintf("%d of %s: min: %d allows it", n, plaintext.Count(a.spec.Nodes, "node"), a.spec.Min))
	}
	used := make(map[muster.MachineID]bool, len(plan.Assign))
	for _, s := range plan.Assign {
		used[s.Machine] = true
	}
	down := a.switchNotices(used)
	if d := plan.Distance; d != nil && d.Cost > d.Least*1.005 {
		cause := "placement: " + string(a.spec.Placement)
		if len(down) > 0 {
			cause += ", and machines behind a switch that was not reached are given last"
		}
		list = append(list, fmt.Sprintf("communication costs %.3g times the least that free machines would allow (%s)", d.Cost/d.Least, cause))
	}
	list = append(list, down...)
	for j := range a.machines {
		if a.machines[j].Facts.Oversubscribed && used[a.machines[j].ID] {
			list = append(list, "machines of this plan share cores with others (oversubscribed): nothing measured on them can be certified")
			break
		}
	}
	if a.spec.VM != nil && a.emulates(used) {
		list = append(list, emulated)
	}
	return list
}

// switchNotices name the switches that were not reached lately, behind which machines that fit are given last:
// since when, until when, and what ends that sooner. used are the machines of the plan.
func (a *query) switchNotices(used map[muster.MachineID]bool) []string {
	type group struct {
		muster.Condition
		first    muster.MachineID
		fit, had int
	}
	var groups []*group
	for j := range a.machines {
		m := &a.machines[j]
		i := slices.IndexFunc(m.Conditions, func(c muster.Condition) bool { return c.Code == muster.ConditionSwitchDown })
		if i < 0 || a.failed[j] != 0 || a.state[j] != "" {
			continue
		}
		k := slices.IndexFunc(groups, func(g *group) bool { return g.Stand == m.Conditions[i].Stand })
		if k < 0 {
			k, groups = len(groups), append(groups, &group{Condition: m.Conditions[i], first: m.ID})
		}
		g := groups[k]
		g.first = min(g.first, m.ID)
		if g.fit++; used[m.ID] {
			g.had++
		}
	}
	slices.SortFunc(groups, func(a, b *group) int { return strings.Compare(a.Stand, b.Stand) })
	var list []string
	for _, g := range groups {
		clock := func(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }
		text := fmt.Sprintf("nothing behind %s was reached over the message network at %s: its machines are given last until %s, whatever the placement (%s); this plan has %d of %d that are free; `muster machine test %s` clears that if it passes",
			g.Stand, clock(g.Since), clock(g.WithWaiting().Deadline), a.spec.Placement, g.had, g.fit, g.first)
		list = append(list, text)
	}
	return list
}

// apart begins what is said where enough machines fit and stand too far from each other.
const apart = "within: "

// apartNotices say so, and how many would stand together. Nothing said of it is one data
// centre. Of more nodes for a cluster they say what there is where it stands.
func (a *query) apartNotices(compute, spare []*muster.Machine) []string {
	if a.snap.Kept != nil {
		return []string{a.snap.Kept.notice(a.fitting(0, a.isFree))}
	}
	wide := a.spec
	wide.Within = muster.WithinAnySite
	if a.spec.Within == wide.Within || a.placer.Capacity(wide, compute, spare) < a.least {
		return nil
	}
	n := a.placer.Capacity(a.spec, compute, spare)
	switch {
	case n >= a.least:
		return nil // it waits for something else
	case a.spec.Within == "" || a.spec.Within == muster.WithinSite:
		return []string{fmt.Sprintf("%s%s: one data centre holds %s at most", apart, muster.WithinSite, plaintext.Count(n, "node"))}
	}
	return []string{fmt.Sprintf("%s%s: room for %s together, at most", apart, a.spec.Within, plaintext.Count(n, "node"))}
}

// queueNotices tell when waiting alone will not do.
func (a *query) queueNotices() []string {
	out := make(map[string]int)
	compute, spare := a.pick(0, func(j int) bool {
		if !outOfReach(a.state[j]) {
			return true
		}
		if a.failed[j] == 0 {
			out[a.state[j]]++
		}
		return false
	})
	if a.placer.Capacity(a.spec, compute, spare) >= a.least {
		return nil
	}
	if len(out) == 1 && out[ReasonTesting] > 0 {
		return []string{"it waits for " + missingText(out) + ", which may pass: an administrator has to see to what does not"}
	}
	return []string{"it waits for " + missingText(out) + ": an administrator has to see to it"}
}

// missingText says which machines that fit are out of reach.
func missingText(out map[string]int) string {
	var parts []string
	for _, s := range []struct{ reason, one, many string }{
		{ReasonNotAnswering, "that does not answer", "that do not answer"},
		{ReasonTesting, "under test", "under test"},
		{ReasonQuarantined, "in quarantine", "in quarantine"},
		{ReasonMaintenance, "in maintenance", "in maintenance"},
	} {
		switch n := out[s.reason]; {
		case n == 1:
			parts = append(parts, "1 machine "+s.one)
		case n > 1:
			parts = append(parts, plaintext.Count(n, "machine")+" "+s.many)
		}
	}
	if len(parts) == 0 {
		return "a machine for its head that is out of service"
	}
	return strings.Join(parts, " and ")
}

func computeNodes(plan muster.Plan) int {
	n := 0
	for _, s := range plan.Assign {
		if s.Role == muster.RoleCompute {
			n++
		}
	}
	return n
}
