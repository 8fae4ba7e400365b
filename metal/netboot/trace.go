package netboot

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster/metal/netboot/dhcp"
)

// Event is one thing that was done for a machine, or refused.
type Event struct {
	At      time.Time  `json:"at"`
	Address netip.Addr `json:"address"` // the machine's, if it had one
	// Stage is one word: discover, offer, ack, nak, decline, release, conflict,
	// proxy, refused, tftp, http.
	Stage string `json:"stage"`
	Text  string `json:"text,omitempty"`
	// Times is how often the same happened one after the other; At is the last.
	Times int `json:"times"`
}

// Seen is one machine and what happened to it, the oldest first.
type Seen struct {
	MAC    MAC
	Events []Event
}

// Bounds of what is remembered. A forgotten machine is one that asked for nothing
// for longer than all the others.
const (
	seenMachines = 16384
	seenEvents   = 24
)

// trace remembers what happened to machines. For several goroutines.
type trace struct {
	mu    sync.Mutex
	of    map[MAC]*list.Element // of *Seen
	order *list.List            // most recent first
}

func newTrace() *trace { return &trace{of: map[MAC]*list.Element{}, order: list.New()} }

func (t *trace) add(n dhcp.Note, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.of[n.MAC]
	if e == nil {
		e = t.order.PushFront(&Seen{MAC: n.MAC})
		t.of[n.MAC] = e
		if t.order.Len() > seenMachines {
			old := t.order.Remove(t.order.Back()).(*Seen)
			delete(t.of, old.MAC)
		}
	}
	t.order.MoveToFront(e)
	s := e.Value.(*Seen)
	if k := len(s.Events); k > 0 {
		if last := &s.Events[k-1]; last.Stage == n.Stage && last.Text == n.Text && last.Address == n.Address {
			last.At = now
			last.Times++
			return
		}
	}
	if len(s.Events) == seenEvents {
		s.Events = slices.Delete(s.Events, 0, 1)
	}
	s.Events = append(s.Events, Event{now, n.Address, n.Stage, n.Text, 1})
}

func (t *trace) machine(m MAC) (Seen, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.of[m]
	if e == nil {
		return Seen{MAC: m}, false
	}
	s := *e.Value.(*Seen)
	s.Events = slices.Clone(s.Events)
	return s, true
}

func (t *trace) all() []Seen {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Seen, 0, t.order.Len())
	for e := t.order.Front(); e != nil; e = e.Next() {
		s := *e.Value.(*Seen)
		s.Events = slices.Clone(s.Events)
		out = append(out, s)
	}
	return out
}
