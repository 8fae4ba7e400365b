package converge

import (
	"container/heap"
	"slices"
	"time"
)

// due is a key that runs at a time.
type due struct {
	key string
	at  time.Time
}

// dueHeap orders keys by when they are due. A key may be in it several times;
// only the entry that its item still names counts.
type dueHeap struct{ h dues }

func (d *dueHeap) Len() int   { return len(d.h) }
func (d *dueHeap) first() due { return d.h[0] }
func (d *dueHeap) push(x due) { heap.Push(&d.h, x) }
func (d *dueHeap) pop()       { heap.Pop(&d.h) }

// keep drops the entries that do not count any more.
func (d *dueHeap) keep(valid func(due) bool) {
	d.h = slices.DeleteFunc(d.h, func(x due) bool { return !valid(x) })
	heap.Init(&d.h)
}

type dues []due

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d dues) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)        { *d = append(*d, x.(due)) }
func (d *dues) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}
