package simulate

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// turn is how long a job has its machines besides its runtime: to boot before it, to be
// cleaned after it. The same for every policy.
const (
	lead = 5 * time.Minute
	turn = 5 * time.Minute
)

// counted runs a workload by counts of machines: first come first served, or with EASY
// backfilling (Lifka, JSSPP 1995): only the first in the queue has a reservation, and whoever
// does not delay it may go before. They know no promises: who asks for a time comes into the
// queue then. Machines that break are fewer machines.
func counted(w Workload, easy bool) Result {
	name := "fifo"
	if easy {
		name = "easy"
	}
	began := time.Now()
	type end struct {
		at    time.Duration // when its machines are free
		limit time.Duration // when they are by its walltime
		nodes int
	}
	var ends []end
	free := w.Machines
	var queue []int
	out := make([]outcome, len(w.Jobs))
	events := &timeline{}
	last := time.Duration(0)
	for i := range w.Jobs {
		j := &w.Jobs[i]
		out[i].job = j
		heap.Push(events, event{at: j.Submit + j.Ahead, kind: submitted, job: i})
		last = max(last, j.Submit)
	}
	for _, f := range w.Failures {
		heap.Push(events, event{at: f.At, kind: broke, job: 1})
		heap.Push(events, event{at: f.At + f.For, kind: broke, job: -1})
	}
	m := meter{until: last, all: float64(max(1, w.Machines))}
	start := func(i int, now time.Duration) {
		j := out[i].job
		run := j.Runtime + j.Extend
		out[i].wait, out[i].run, out[i].started, out[i].ended = now+lead-(j.Submit+j.Ahead), run, true, true
		out[i].wait = max(0, out[i].wait-lead)
		free -= j.Nodes
		e := end{now + lead + run + turn, now + lead + max(j.Walltime, j.Runtime) + j.Extend + turn, j.Nodes}
		ends = append(ends, e)
		m.add(j.Nodes, now+lead, now+lead+run)
		heap.Push(events, event{at: e.at, kind: ended, job: i})
	}
	for events.Len() > 0 {
		now := (*events)[0].at
		for events.Len() > 0 && (*events)[0].at == now {
			switch e := heap.Pop(events).(event); e.kind {
			case submitted:
				queue = append(queue, e.job)
			case broke:
				free -= e.job
			case ended:
				i := slices.IndexFunc(ends, func(x end) bool { return x.at == now && x.nodes == out[e.job].job.Nodes })
				free += ends[i].nodes
				ends = slices.Delete(ends, i, i+1)
			}
		}
		for len(queue) > 0 && out[queue[0]].job.Nodes <= free {
			start(queue[0], now)
			queue = queue[1:]
		}
		if !easy || len(queue) < 2 {
			continue
		}
		// The shadow time: when the first can start by walltimes, and what is spare then.
		slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.limit, b.limit) })
		have, shadow := free, time.Duration(1<<62)
		for _, e := range ends {
			if have += e.nodes; have >= out[queue[0]].job.Nodes {
				shadow = e.limit
				break
			}
		}
		spare := have - out[queue[0]].job.Nodes
		keep := queue[:1]
		for _, i := range queue[1:] {
			j := out[i].job
			over := now+lead+max(j.Walltime, j.Runtime)+j.Extend+turn <= shadow
			if j.Nodes <= free && (over || j.Nodes <= spare) {
				if !over {
					spare -= j.Nodes
				}
				start(i, now)
				continue
			}
			keep = append(keep, i)
		}
		queue = keep
	}
	res := sum(name, w, out, m.busy, m.hours)
	res.Failures, res.Took = len(w.Failures), time.Since(began)
	return res
}

// kind of an event.
type kind int

const (
	ended kind = iota // before all others: what it frees is there for them
	broke
	repaired
	extends
	pauses
	due
	submitted
)

type event struct {
	at      time.Duration
	kind    kind
	job     int
	version int
}

// timeline is a heap of events.
type timeline []event

func (t timeline) Len() int { return len(t) }
func (t timeline) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(t[i].at, t[j].at), cmp.Compare(t[i].kind, t[j].kind), cmp.Compare(t[i].job, t[j].job)) < 0
}
func (t timeline) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push and Pop are of heap.Interface.
func (t *timeline) Push(x any) { *t = append(*t, x.(event)) }

// Pop takes the last.
func (t *timeline) Pop() any {
	old := *t
	e := old[len(old)-1]
	*t = old[:len(old)-1]
	return e
}
