package converge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// commonCause is the code of a machine that fails as many others do at the same time:
// something that they share is at fault, and none of them is condemned.
const commonCause = muster.ConditionCommonCause

// Around is what a decision about one machine knows of the others.
type Around struct {
	// Site is how many machines there are, Aside how many are out of use for what
	// happened under tenants though they pass their test.
	Site, Aside int
	// Elsewhere are the clusters that failed on other machines, too.
	Elsewhere map[muster.ClusterID]bool
	// Failing counts the others that failed in the last hour, by cause as told.
	Failing map[string]int
}

// around looks at the site's other machines.
func around(m muster.Machine, site []muster.Machine, now time.Time, window time.Duration) Around {
	a := Around{Site: len(site), Elsewhere: map[muster.ClusterID]bool{}, Failing: map[string]int{}}
	for _, o := range site {
		if o.ID == m.ID {
			continue
		}
		for _, f := range o.Faults {
			if f.Cluster != "" && now.Sub(f.At) < window {
				a.Elsewhere[f.Cluster] = true
			}
		}
		for _, c := range o.Conditions {
			if c.Code == underTenants {
				a.Aside++
			}
			if (c.Code == muster.ConditionCleanFailed || c.Code == testFailed || c.Code == quarantined) && now.Sub(c.Since).Abs() < time.Hour {
				a.Failing[causeOf(c.Text)]++
			}
		}
	}
	return a
}

// mayCondemn reports whether the decision may take the machine out of use, or count a
// fault of its own: only then is the whole site looked at.
func (v MachineView) mayCondemn() bool {
	return v.Machine.Phase == muster.MachineTesting && v.Observation.Tested != nil ||
		v.Machine.Phase == muster.MachineCleaning && v.Observation.CleanTries > 0
}

// underTenants stands beside quarantined.
const underTenants = muster.ConditionFailedUnderTenants

// outAlthough reports why a machine that passed its test is taken out of use all the
// same; "" when it is not, and whether that is for what happened under tenants. What it showed by itself counts each time. What happened
// under tenants may have been brought about by them: it counts by how many tenants
// that have nothing to do with each other met it, not where their clusters failed on
// other machines as well, and for a small share of the site at most.
func (d *decider) outAlthough(m muster.Machine) (why string, tenants bool) {
	own, under := 0, []muster.Fault(nil)
	for _, f := range m.Faults {
		switch {
		case d.Now.Sub(f.At) >= d.Limits.FaultWindow:
		case f.Cluster != "" && !d.around.Elsewhere[f.Cluster]:
			under = append(under, f)
		case f.Cluster == "" && (m.LastClean == nil || f.Kind != muster.FaultClean || !m.LastClean.Verified || f.At.After(m.LastClean.At)):
			own++
		}
	}
	if own >= d.Limits.FaultsMost {
		return fmt.Sprintf("failed by itself %s within %s: %s", timesText(own), days(d.Limits.FaultWindow), conditionText(m.Conditions, muster.ConditionSuspect)), false
	}
	if n := muster.Unrelated(under); n >= d.Limits.FaultsMost && d.around.Aside < max(1, d.around.Site/d.Limits.AsideShare) {
		return fmt.Sprintf("it failed under %d tenants who have nothing to do with each other within %s", n, days(d.Limits.FaultWindow)), true
	}
	return "", false
}

// doubt marks a machine that failed under somebody and passes its test. An
// administrator who asks for the test settles it.
func (d *decider) doubt(m muster.Machine, settled bool) muster.Machine {
	last := slices.IndexFunc(m.Faults, func(f muster.Fault) bool { return d.Now.Sub(f.At) < d.Limits.FaultWindow })
	if settled || last < 0 {
		m.Conditions = withoutCondition(m.Conditions, muster.ConditionDoubtful)
		return m
	}
	m.Conditions = withCondition(m.Conditions, muster.Condition{
		Code: muster.ConditionDoubtful, Since: d.Now, Text: "it failed, and passed its test",
		Hint: fmt.Sprintf("it is given last, and not to a cluster under which it failed; a cluster's good service of %s, or `muster machine test %s`, settles it", d.Limits.GoodService, m.ID),
	})
	return m
}

// trusted is a machine that its cluster gives back: after good service it is not
// doubtful any more.
func (d *decider) trusted(m muster.Machine) muster.Machine {
	if hasCondition(m.Conditions, muster.ConditionDoubtful) && m.Phase == muster.MachineActive && d.Now.Sub(m.PhaseSince) >= d.Limits.GoodService {
		m.Conditions = withoutCondition(m.Conditions, muster.ConditionDoubtful)
	}
	return m
}

// mostEffort bounds how thoroughly a machine is tested.
const mostEffort = 8

// effort is how thoroughly the machine is to be tested: twice as much with each fault
// that its tests did not explain.
func (d *decider) effort(m muster.Machine) int {
	e := 1
	for _, f := range m.Faults {
		if d.Now.Sub(f.At) < d.Limits.FaultWindow {
			e *= 2
		}
	}
	return min(max(e/2, 1), mostEffort)
}

// alike reports whether so many other machines fail in the same way that they must
// have the cause in common, and says so on the machine.
func (d *decider) alike(m *muster.Machine, why string) bool {
	n := d.around.Failing[causeOf(why)] + 1
	if n < max(3, d.around.Site/d.Limits.AlikeShare) {
		return false
	}
	m.Conditions = withCondition(m.Conditions, muster.Condition{
		Code: commonCause, Since: d.Now, Text: fmt.Sprintf("%d of %d machines fail alike within an hour: %s", n, d.around.Site, why),
		Hint: "look at what they have in common: power, network, the server's files; none is put into quarantine for it, and each is tried again by itself",
	})
	return true
}

// causeOf is the kind of a failure as it was told: without its numbers and the
// sentence around it, which differ from machine to machine.
func causeOf(text string) string {
	for _, before := range []string{"it could not be cleaned: ", "it failed its test: ", "it failed its test twice: ", "not verified: "} {
		text = strings.TrimPrefix(text, before)
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}
