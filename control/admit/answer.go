package admit

import (
	"math/bits"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// sampleSize is how many machines a rejection names.
const sampleSize = 5

// query is one request against one snapshot.
type query struct {
	*filtered
	snap   Snapshot
	placer Placer
	least  int      // the fewest nodes that will do
	state  []string // by machine: why it cannot be taken now
	id     muster.ClusterID
	// lead and turn are those of the classes that fit.
	lead, turn time.Duration
}

// Answer reports whether and how the request can be served. The cluster ID seeds
// every tie-break: the same request on the same snapshot has the same answer.
// image may be nil when nothing is known of it. spec must be validated.
//
// Every machine is counted exactly once: it is free and fits (Answer.Free), or
// it is in one Rejection. Answer.Fits counts the machines whose hardware fits,
// whatever they are doing now.
func Answer(id muster.ClusterID, spec muster.Spec, image *muster.Image, snap Snapshot, placer Placer) muster.Answer {
	snap = snap.withHeld()
	checks := checksOf(spec, image, snap)
	if snap.Kept != nil {
		checks = append(checks, snap.Kept.check())
	}
	a := &query{
		filtered: filter(checks, spec, snap.Machines),
		snap:     snap, placer: placer, least: max(1, spec.Min),
		state: make([]string, len(snap.Machines)),
	}
	reserved := reservedFor(snap, placer)
	for j := range snap.Machines {
		a.state[j] = stateReason(&snap.Machines[j], id, snap, reserved)
	}
	a.id = id
	a.time()

	answer := a.count()
	compute, spare := a.pick(0, nil)
	if placer.Capacity(spec, compute, spare) < a.least {
		answer.Verdict = muster.VerdictNever
		answer.Change = a.changes(nil)
		answer.Notices = a.apartNotices(compute, spare)
		return answer
	}
	if !spec.Start.IsZero() && snap.Times != nil {
		a.promise(&answer, image)
		return answer
	}
	compute, spare = a.pick(0, a.isFree)
	if plan, ok := placer.Plan(id, spec, compute, spare); ok {
		plan.Made = snap.Now
		if image != nil {
			plan.Image = image.ID
		}
		answer.Verdict, answer.Plan = muster.VerdictNow, &plan
		if snap.Times != nil {
			answer.StartAt = snap.Now.Add(a.lead)
		}
		answer.Notices = a.planNotices(plan)
		return answer
	}
	answer.Verdict, answer.Position = muster.VerdictQueued, snap.Position+len(snap.Ahead)+1
	answer.Change = a.changes(a.isFree)
	answer.Notices = append(a.queueNotices(), a.apartNotices(compute, spare)...)
	a.estimate(&answer)
	return answer
}

// isFree reports whether a machine can be taken now.
func (a *query) isFree(j int) bool { return a.state[j] == "" }

// count puts every machine under one heading.
func (a *query) count() muster.Answer {
	var answer muster.Answer
	rejected := make(map[string][]*muster.Machine)
	explain := make(map[string]check)
	for j := range a.machines {
		reason := a.state[j]
		if failed := a.failed[j]; failed != 0 {
			c := a.checks[bits.TrailingZeros64(failed)]
			reason = c.reason
			explain[reason] = c
		} else {
			answer.Fits++
		}
		if reason == "" {
			answer.Free++
			continue
		}
		rejected[reason] = append(rejected[reason], &a.machines[j])
	}
	for _, reason := range Reasons() {
		list := rejected[reason]
		if len(list) == 0 {
			continue
		}
		r := muster.Rejection{Reason: reason, Count: len(list), Sample: sample(list)}
		if c, static := explain[reason]; static {
			r.Text = c.explain(list)
		} else {
			r.Text = stateText(reason, a.snap.Silence)
		}
		answer.Rejections = append(answer.Rejections, r)
	}
	return answer
}

// sample names the machines with the lowest IDs, whatever order they come in.
func sample(list []*muster.Machine) []muster.MachineID {
	var ids []muster.MachineID
	for _, m := range list {
		if len(ids) == sampleSize && m.ID >= ids[sampleSize-1] {
			continue
		}
		i, _ := slices.BinarySearch(ids, m.ID)
		ids = slices.Insert(ids, i, m.ID)
		ids = ids[:min(len(ids), sampleSize)]
	}
	return ids
}
