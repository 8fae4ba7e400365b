package simulate

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/control/calendar"
	"github.com/muster-hpc/muster/control/place"
)

// machinesPerRack of the pretended site.
const machinesPerRack = 40

// start of pretended time: a Monday.
func epoch() time.Time { return time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC) }

// phase of a job on the pretended site.
type phase int

const (
	none phase = iota
	waiting
	promised
	running
	away // paused, with a promise of its return
	over
)

// held is one job on the pretended site.
type held struct {
	*outcome
	phase phase
	since time.Duration // when it began to wait
	// slot is its place in the calendar; of a running one its machines.
	slot    calendar.Slot
	version int           // of its events
	ends    time.Duration // when its runtime is over
	left    time.Duration // of its runtime, while it is away
	paused  bool
	moved   bool
}

// pool is the pretended site, run by the rules of the calendar.
type pool struct {
	w        Workload
	planner  place.Planner
	machines []muster.Machine
	all      []int32
	down     []time.Duration // by machine: until when it is broken
	jobs     []held
	table    *calendar.Timetable
	dirty    bool
	events   timeline
	now      time.Duration
	res      Result
	m        meter
	// Check is called after every event, for tests.
	check func(*pool)
}

func (p *pool) at(d time.Duration) time.Time  { return epoch().Add(d) }
func (p *pool) off(t time.Time) time.Duration { return t.Sub(epoch()) }

// byCalendar runs a workload by named machines: promises bind, the queue is conservative
// backfilling in the order of fair share and waiting, as on a real site.
func byCalendar(w Workload, check func(*pool)) Result {
	began := time.Now()
	p := &pool{w: w, check: check, jobs: make([]held, len(w.Jobs)), down: make([]time.Duration, w.Machines)}
	for i := range w.Machines {
		p.machines = append(p.machines, muster.Machine{ID: muster.MachineID(fmt.Sprintf("m%05d", i)), Provider: "site",
			Facts: muster.Facts{Class: "m", Rack: fmt.Sprintf("r%04d", i/machinesPerRack), Cores: 1}})
		p.all = append(p.all, int32(i))
	}
	out := make([]outcome, len(w.Jobs))
	last := time.Duration(0)
	for i := range w.Jobs {
		out[i].job = &w.Jobs[i]
		p.jobs[i].outcome = &out[i]
		heap.Push(&p.events, event{at: w.Jobs[i].Submit, kind: submitted, job: i})
		last = max(last, w.Jobs[i].Submit)
	}
	for i, f := range w.Failures {
		heap.Push(&p.events, event{at: f.At, kind: broke, job: i})
		heap.Push(&p.events, event{at: f.At + f.For, kind: repaired, job: i})
	}
	p.m = meter{until: last, all: float64(max(1, w.Machines))}
	p.table = p.binding()
	for p.events.Len() > 0 {
		p.now = p.events[0].at
		for p.events.Len() > 0 && p.events[0].at == p.now {
			p.handle(heap.Pop(&p.events).(event))
		}
		if p.dirty {
			p.replan()
		}
		p.startDue()
		if p.check != nil {
			p.check(p)
		}
	}
	res := sum("muster", w, out, p.m.busy, p.m.hours)
	res.Promises, res.Moved, res.Late, res.Told, res.Extended, res.Refused, res.Pauses = p.res.Promises, p.res.Moved, p.res.Late, p.res.Told, p.res.Extended, p.res.Refused, p.res.Pauses
	res.Failures, res.Took = len(w.Failures), time.Since(began)
	return res
}

// need is a job as the calendar sees it.
func (p *pool) need(i int, walltime time.Duration) calendar.Need {
	j := p.jobs[i].job
	return calendar.Need{ID: muster.ClusterID(fmt.Sprintf("c-%d", j.Number)), Compute: p.all, Lead: lead, Turn: turn, Spec: muster.Spec{
		Nodes: j.Nodes, Min: j.Nodes, Head: muster.HeadShared, Placement: muster.PlacePack, Walltime: muster.Duration(walltime),
	}}
}

// binding is the calendar without the queue.
func (p *pool) binding() *calendar.Timetable {
	t := calendar.New(p.at(p.now), p.machines, p.planner)
	for i, until := range p.down {
		if until > p.now {
			t.Block(p.machines[i].ID, p.at(p.now), p.at(until))
		}
	}
	for i := range p.jobs {
		switch h := &p.jobs[i]; h.phase {
		case running:
			t.Take(h.slot.Plan, p.at(p.now), h.slot.Give)
		case promised, away:
			t.Take(h.slot.Plan, h.slot.Take, h.slot.Give)
		}
	}
	return t
}

// replan computes anew when all that wait start, in the order of the queue.
func (p *pool) replan() {
	p.dirty = false
	p.table = p.binding()
	use := allocate.NewUse(p.at(p.now))
	var queue []muster.Cluster
	index := map[muster.ClusterID]int{}
	for i := range p.jobs {
		h := &p.jobs[i]
		c := muster.Cluster{ID: muster.ClusterID(fmt.Sprintf("c-%d", h.job.Number)), Owner: h.job.User, Project: h.job.User, Spec: muster.Spec{Nodes: h.job.Nodes}}
		switch {
		case h.phase == waiting:
			c.Phase, c.Created = muster.ClusterQueued, p.at(h.since)
			index[c.ID] = i
			queue = append(queue, c)
		case h.phase == running:
			c.Phase, c.Ready = muster.ClusterReady, h.slot.Start
			use.Add(&c)
		case h.phase == over && p.now-h.ends < 28*24*time.Hour:
			c.Phase, c.Ready, c.Deleted = muster.ClusterDeleted, h.slot.Start, p.at(h.ends)
			use.Add(&c)
		}
	}
	for _, c := range use.Order(queue) {
		p.enqueue(index[c.ID])
	}
}

// enqueue gives a job that waits its place in the calendar.
func (p *pool) enqueue(i int) {
	h := &p.jobs[i]
	h.version++
	n := p.need(i, h.job.Walltime)
	n.After = p.at(p.now + lead) // the table may have been made a while ago
	slot, ok := p.table.Earliest(n)
	if !ok {
		return // only while too many machines are broken for good
	}
	p.table.Take(slot.Plan, slot.Take, slot.Give)
	h.slot = slot
	heap.Push(&p.events, event{at: max(p.now, p.off(slot.Take)), kind: due, job: i, version: h.version})
}

// promise gives a job the first place from a time on that can be promised.
func (p *pool) promise(i int, from time.Duration, walltime time.Duration) bool {
	n := p.need(i, walltime)
	n.After = p.at(max(from, p.now+lead))
	slot, ok := p.table.Earliest(n)
	if !ok {
		return false
	}
	h := &p.jobs[i]
	h.slot = slot
	h.version++
	p.table.Take(slot.Plan, slot.Take, slot.Give)
	heap.Push(&p.events, event{at: max(p.now, p.off(slot.Take)), kind: due, job: i, version: h.version})
	return true
}

func (p *pool) handle(e event) {
	switch e.kind {
	case broke:
		p.breaks(p.w.Failures[e.job])
		return
	case repaired:
		p.dirty = true
		return
	}
	h := &p.jobs[e.job]
	if e.kind != submitted && e.version != h.version {
		return
	}
	switch e.kind {
	case submitted:
		h.since = p.now
		if h.job.Ahead > 0 && p.promise(e.job, h.job.Submit+h.job.Ahead, h.job.Walltime) {
			h.phase = promised
			p.res.Promises++
			return
		}
		h.phase = waiting
		p.enqueue(e.job)
	case ended:
		h.phase, h.ended = over, true
		if p.at(p.now).Before(h.slot.End) { // early: its place is for others
			p.dirty = true
		}
	case extends:
		p.extend(h)
	case pauses:
		p.pause(e.job)
	case due:
		// started below, once all events of this moment are known
	}
}

// startDue starts whose place has come.
func (p *pool) startDue() {
	for i := range p.jobs {
		h := &p.jobs[i]
		if h.phase != waiting && h.phase != promised && h.phase != away || h.slot.Take.IsZero() || p.off(h.slot.Take) > p.now {
			continue
		}
		begin := p.off(h.slot.Start)
		if p.off(h.slot.Take) < p.now {
			p.res.Late++ // must not be
		}
		runtime := h.job.Runtime
		if h.phase == away {
			runtime = h.left
		} else {
			want := h.job.Submit + h.job.Ahead
			h.started, h.wait, h.run = true, max(0, begin-lead-want), h.job.Runtime
		}
		h.phase = running
		h.ends = begin + runtime
		h.version++
		p.m.add(h.job.Nodes, begin, h.ends)
		heap.Push(&p.events, event{at: h.ends, kind: ended, job: i, version: h.version})
		if h.job.Extend > 0 && !h.paused {
			heap.Push(&p.events, event{at: begin + runtime/2, kind: extends, job: i, version: h.version})
		}
		if h.job.PauseFor > 0 && !h.paused {
			heap.Push(&p.events, event{at: begin + h.job.PauseAt, kind: pauses, job: i, version: h.version})
		}
	}
}

// extend gives a running job more time, unless a promise needs its machines by then.
func (p *pool) extend(h *held) {
	give := h.slot.Give.Add(h.job.Extend)
	for i := range p.jobs {
		o := &p.jobs[i]
		if o.phase != promised && o.phase != away || !o.slot.Take.Before(give) || !o.slot.Give.After(h.slot.Give) {
			continue
		}
		for _, a := range o.slot.Plan.Assign {
			if slices.ContainsFunc(h.slot.Plan.Assign, func(b muster.Assignment) bool { return a.Machine == b.Machine }) {
				p.res.Refused++
				return
			}
		}
	}
	p.res.Extended++
	was := h.ends
	h.slot.End, h.slot.Give = h.slot.End.Add(h.job.Extend), give
	h.ends += h.job.Extend
	h.run += h.job.Extend
	h.version++
	p.m.add(h.job.Nodes, was, h.ends)
	heap.Push(&p.events, event{at: h.ends, kind: ended, job: slices.IndexFunc(p.jobs, func(o held) bool { return o.job == h.job }), version: h.version})
	p.dirty = true
}

// pause frees the machines of a running job, with a promise of its return.
func (p *pool) pause(i int) {
	h := &p.jobs[i]
	left, walltime := h.ends-p.now, h.slot.End.Sub(p.at(p.now))
	if left <= 0 {
		return
	}
	was := h.slot
	h.phase = away
	h.slot = calendar.Slot{}
	p.table = p.binding()
	h.phase = none
	for j := range p.jobs { // the queue has its places beside it
		if o := &p.jobs[j]; o.phase == waiting && !o.slot.Take.IsZero() {
			p.table.Take(o.slot.Plan, o.slot.Take, o.slot.Give)
		}
	}
	for _, a := range was.Plan.Assign { // they are cleaned first
		p.table.Block(a.Machine, p.at(p.now), p.at(p.now+turn))
	}
	if !p.promise(i, p.now+h.job.PauseFor, walltime) {
		h.phase, h.slot = running, was
		return
	}
	h.phase, h.paused, h.left = away, true, left
	p.m.add(-h.job.Nodes, p.now, h.ends)
	p.res.Pauses++
	p.res.Promises++
	p.dirty = true
}

// breaks takes a machine away for a time: another takes its place where it is in use, and
// promises that had it get others, or are moved and told.
func (p *pool) breaks(f Failure) {
	m := f.Machine
	p.down[m] = max(p.down[m], p.now+f.For)
	id := p.machines[m].ID
	has := func(s calendar.Slot) int {
		return slices.IndexFunc(s.Plan.Assign, func(a muster.Assignment) bool { return a.Machine == id })
	}
	p.dirty = true
	for i := range p.jobs {
		h := &p.jobs[i]
		if h.phase != running {
			continue
		}
		if k := has(h.slot); k >= 0 {
			t := p.binding() // a machine that nobody is promised takes its place
			for _, other := range p.machines {
				if t.Free(other.ID, p.at(p.now), h.slot.Give) {
					h.slot.Plan.Assign = slices.Clone(h.slot.Plan.Assign)
					h.slot.Plan.Assign[k].Machine = other.ID
					break
				}
			}
		}
	}
	var lost []int
	for i := range p.jobs {
		h := &p.jobs[i]
		if (h.phase == promised || h.phase == away) && has(h.slot) >= 0 && h.slot.Take.Before(p.at(p.down[m])) {
			lost = append(lost, i)
		}
	}
	slices.SortFunc(lost, func(a, b int) int {
		return cmp.Or(p.jobs[a].slot.Start.Compare(p.jobs[b].slot.Start), cmp.Compare(a, b))
	})
	for _, i := range lost {
		h := &p.jobs[i]
		was, phase := h.slot, h.phase
		h.phase = none
		p.table = p.binding()
		h.phase = phase
		if !p.promise(i, p.off(was.Start), was.End.Sub(was.Start)) {
			h.slot = was
			continue
		}
		if !h.slot.Start.Equal(was.Start) {
			p.res.Moved++
			p.res.Told++
			h.moved = true
		}
	}
}
