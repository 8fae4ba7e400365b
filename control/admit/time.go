package admit

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/calendar"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// wishKey is what decides which machines fit a request.
type wishKey struct {
	wish   muster.Constraints
	image  *muster.Image
	mount  string
	egress muster.Egress
	uid    int
	shape  string
	rate   bool
	vm     string
	pause  muster.OnPause // save and hibernate ask more of machines
}

func keyOf(w Waiting, snap Snapshot) wishKey {
	_, uid := snap.highest(w.Spec.Users)
	return wishKey{w.Spec.Machine, w.Image, fmt.Sprint(snap.Drivers.asked(w.Spec)), w.Spec.Egress, uid, shapeKey(w.Spec.Shape), w.Spec.LinkRate > 0, vmKey(w.Spec.VM), w.Spec.OnPause}
}

// vmKey is what of virtual machines decides which machines fit.
func vmKey(o *muster.VMOptions) string {
	if o == nil {
		return ""
	}
	return fmt.Sprint(o.NIC, o.Pages, o.Untuned, o.Emulate)
}

// shapeKey is what of a shape decides which machines fit.
func shapeKey(s *muster.Shape) string {
	if s.IsZero() {
		return ""
	}
	return fmt.Sprint(s.Cores, s.Sockets, s.Memory(), s.Kernel())
}

// time marks the machines that are free now and not for long enough: somebody else has
// them before this request would end.
func (a *query) time() {
	t := a.snap.Times
	if t == nil {
		return
	}
	a.lead, a.turn = a.turnover(a.machines, func(j int) bool { return a.failed[j] == 0 })
	until := a.until(a.snap.Now)
	for j := range a.machines {
		if a.state[j] == "" && !t.Free(a.machines[j].ID, a.snap.Now, until) {
			a.state[j] = ReasonReserved
		}
	}
}

// until is when the machines of the request are free for others if it takes them at a time;
// zero: never.
func (a *query) until(take time.Time) time.Time {
	if a.spec.Walltime <= 0 {
		return time.Time{}
	}
	return take.Add(a.lead + time.Duration(a.spec.Walltime) + a.turn)
}

// turnover is the longest of the classes of machines.
func (a *query) turnover(machines []muster.Machine, of func(int) bool) (lead, turn time.Duration) {
	return longestTurnover(a.snap, machines, of)
}

func longestTurnover(snap Snapshot, machines []muster.Machine, of func(int) bool) (lead, turn time.Duration) {
	if snap.Turnover == nil {
		return 0, 0
	}
	last, any := "", false
	for j := range machines {
		if class := machines[j].Facts.Class; (!any || class != last) && of(j) {
			l, t := snap.Turnover(class)
			lead, turn, last, any = max(lead, l), max(turn, t), class, true
		}
	}
	return lead, turn
}

// inReach reports whether a machine comes back by waiting.
func (a *query) inReach(j int) bool { return !outOfReach(a.state[j]) }

// need is the request as the calendar sees it, were the waived checks not asked.
func (a *query) need(waived uint64) calendar.Need {
	n := calendar.Need{ID: a.id, Spec: a.spec, Lead: a.lead, Turn: a.turn, After: a.spec.Start.After, Before: a.spec.LatestStart()}
	n.Compute, n.Spare = a.places(a.snap.Times, waived, a.inReach)
	return n
}

// places is pick for the calendar.
func (t *filtered) places(table *calendar.Timetable, waived uint64, keep func(int) bool) (compute, spare []int32) {
	separate := t.spec.TotalNodes() > t.spec.Nodes
	for j := range t.machines {
		failed := t.failed[j] &^ waived
		if failed&t.heads != 0 || (failed != 0 && !separate) || !keep(j) {
			continue
		}
		at, ok := table.Place(t.machines[j].ID, j)
		switch {
		case !ok:
		case failed == 0:
			compute = append(compute, at)
		default:
			spare = append(spare, at)
		}
	}
	return compute, spare
}

// promise answers a request that wants a time.
func (a *query) promise(answer *muster.Answer, image *muster.Image) {
	n := a.need(0)
	slot, ok := a.snap.Times.Earliest(n)
	if ok {
		if image != nil {
			slot.Plan.Image = image.ID
		}
		answer.Verdict, answer.StartAt, answer.Plan = muster.VerdictReserved, slot.Start, &slot.Plan
		answer.Promise = &muster.Promise{Start: slot.Start, End: slot.End, Lead: muster.Duration(a.lead), Plan: slot.Plan}
		answer.Notices = a.planNotices(slot.Plan)
		return
	}
	answer.Verdict = muster.VerdictLater
	n.Before = time.Time{}
	if slot, ok := a.snap.Times.Earliest(n); ok {
		answer.StartAt = slot.Start
	}
	answer.Change = a.nearest(answer.StartAt)
	answer.Notices = a.queueNotices()
	a.alternatives(answer)
}

// nearest says what time to ask for instead.
func (a *query) nearest(at time.Time) []string {
	if at.IsZero() {
		return []string{"what it needs is held by clusters without an end: leave out start, and it waits in the queue"}
	}
	return []string{"write start: " + Moment(at) + ", the nearest time that can be promised"}
}

// Moment writes a time as a request's start has it.
func Moment(at time.Time) string {
	if whole := at.Truncate(time.Second); !whole.Equal(at) {
		at = whole.Add(time.Second)
	}
	return at.UTC().Format(time.RFC3339)
}

// estimate tells a request that waits when it should start.
func (a *query) estimate(answer *muster.Answer) {
	if a.snap.Times == nil {
		return
	}
	if at, ok := a.snap.Times.EarliestStart(a.need(0)); ok && len(answer.Notices) == 0 {
		answer.StartAt, answer.StartSpread = at, muster.Duration(a.snap.Spread)
	}
	a.alternatives(answer)
}

// mostAlternatives is how many changes an answer names with their times.
const mostAlternatives = 3

// alternatives looks for single changes that start earlier, each with its own time.
func (a *query) alternatives(answer *muster.Answer) {
	if !a.snap.Alternatives || a.snap.Times == nil {
		return
	}
	var list []muster.Alternative
	// note takes a change whose request starts at a time; strict is the bound, as what was
	// asked would do for the smaller request too.
	note := func(field, value string, at time.Time) bool {
		if at.IsZero() || !answer.StartAt.IsZero() && !at.Before(answer.StartAt) {
			return false
		}
		text := field + ": " + value
		if value == "" {
			text = "leave out " + field
		}
		list = append(list, muster.Alternative{Field: field, Value: value, Text: text, StartAt: at})
		return true
	}
	table, base := a.snap.Times, a.need(0)
	base.Before = time.Time{}
	start := func(change func(*calendar.Need)) time.Time {
		n := base
		change(&n)
		at, ok := table.EarliestStart(n)
		if !ok {
			return time.Time{}
		}
		return at
	}
	a.fewerNodes(start, note)
	a.shorterTime(start, note)
	for i, c := range a.checks {
		if c.reason == ReasonRetired || c.change != "" || c.reason == ReasonService {
			continue
		}
		field := requestField(c.reason)
		note(field, "", start(func(n *calendar.Need) { n.Compute, n.Spare = a.places(table, 1<<i, a.inReach) }))
	}
	if !a.spec.Mixed {
		note("mixed", "true", start(func(n *calendar.Need) { n.Spec.Mixed = true }))
	}
	for _, within := range wider(a.spec.Within) {
		if within == muster.WithinAnySite && !a.snap.Centres {
			continue
		}
		if note("within", within, start(func(n *calendar.Need) { n.Spec.Within = within })) {
			break
		}
	}
	if a.spec.Head == muster.HeadSeparate {
		note("head", "shared", start(func(n *calendar.Need) { n.Spec.Head = muster.HeadShared }))
	}
	slices.SortStableFunc(list, func(x, y muster.Alternative) int { return x.StartAt.Compare(y.StartAt) })
	answer.Alternatives = list[:min(len(list), mostAlternatives)]
}

// fewerNodes looks for the most nodes that start at once, or else for half of them.
func (a *query) fewerNodes(start func(func(*calendar.Need)) time.Time, note func(field, value string, at time.Time) bool) {
	with := func(nodes int) time.Time {
		return start(func(n *calendar.Need) { n.Spec.Nodes, n.Spec.Min = nodes, nodes })
	}
	first := a.snap.Now.Add(a.lead)
	if a.spec.Start.After.After(first) {
		first = a.spec.Start.After
	}
	least := max(1, a.spec.Min)
	atOnce := sort.Search(least-1, func(i int) bool { // of 1..least-1 nodes, how many start at once
		at := with(i + 1)
		return at.IsZero() || at.After(first)
	})
	switch {
	case atOnce > 0:
		note("nodes", fmt.Sprint(atOnce), with(atOnce))
	case least > 1:
		note("nodes", fmt.Sprint((least+1)/2), with((least+1)/2))
	}
}

// shorterTime looks for the longest walltime that starts at once, in whole quarters of an
// hour, or minutes where that is too coarse.
func (a *query) shorterTime(start func(func(*calendar.Need)) time.Time, note func(field, value string, at time.Time) bool) {
	first := a.snap.Now.Add(a.lead)
	if a.spec.Start.After.After(first) {
		first = a.spec.Start.After
	}
	with := func(d time.Duration) time.Time {
		return start(func(n *calendar.Need) { n.Spec.Walltime = muster.Duration(d) })
	}
	longest := time.Duration(a.spec.Walltime)
	if longest <= 0 {
		longest = 30 * 24 * time.Hour
	}
	for _, unit := range []time.Duration{15 * time.Minute, time.Minute} {
		most := int((longest - 1) / unit)
		n := sort.Search(most, func(i int) bool {
			at := with(time.Duration(i+1) * unit)
			return at.IsZero() || at.After(first)
		})
		if n > 0 {
			d := time.Duration(n) * unit
			note("walltime", plaintext.Span(d), with(d))
			return
		}
	}
}
