package rack

import (
	"slices"
	"sort"
	"time"
)

// Rack admits boots. It is used by one goroutine. Times that go backwards count
// as no time passed.
type Rack struct {
	limits  Limits
	tokens  float64
	at      time.Time        // when tokens were counted
	queue   []waiter         // in order; those before head are gone
	head    int              // first of the queue
	waiting map[string]int64 // machine to its number in the queue
	last    int64
	booting map[string]time.Time // machine to when it was let go
	typical time.Duration
}

type waiter struct {
	machine string
	number  int64
}

// New makes an empty rack whose bucket is full.
func New(limits Limits, now time.Time) (*Rack, error) {
	if err := limits.Check(); err != nil {
		return nil, err
	}
	return &Rack{
		limits: limits, tokens: float64(limits.Burst), at: now, typical: limits.Typical,
		waiting: map[string]int64{}, booting: map[string]time.Time{},
	}, nil
}

// Ask puts a machine at the end of the queue. One that waits or boots already
// stays where it is.
func (r *Rack) Ask(machine string) {
	if _, ok := r.waiting[machine]; ok {
		return
	}
	if _, ok := r.booting[machine]; ok {
		return
	}
	r.last++
	r.queue = append(r.queue, waiter{machine, r.last})
	r.waiting[machine] = r.last
}

// Booting notes a machine that was let go before a restart of this process: it
// takes a place in the window, however many there are.
func (r *Rack) Booting(machine string, since time.Time) {
	r.Leave(machine)
	r.booting[machine] = since
}

// Leave takes a machine out, wherever it is: nobody wants it to boot any more.
func (r *Rack) Leave(machine string) {
	delete(r.booting, machine)
	number, ok := r.waiting[machine]
	if !ok {
		return
	}
	delete(r.waiting, machine)
	i := r.index(number)
	r.queue = slices.Delete(r.queue, i, i+1)
}

// index finds a number in the queue, which is in their order.
func (r *Rack) index(number int64) int {
	return r.head + sort.Search(len(r.queue)-r.head, func(i int) bool { return r.queue[r.head+i].number >= number })
}

// Hello says that a machine has arrived: its place in the window is free.
func (r *Rack) Hello(machine string, now time.Time) {
	since, ok := r.booting[machine]
	if !ok {
		return
	}
	delete(r.booting, machine)
	// A moving average over about eight boots; one odd boot moves it little.
	took := min(max(now.Sub(since), 0), r.limits.Patience)
	r.typical += (took - r.typical) / 8
}

// Failed says that a machine's boot failed. Its place is free at once, and it is
// tried again behind all who wait now. The token that it took is not given back:
// its power supply did draw the current.
func (r *Rack) Failed(machine string) {
	if _, ok := r.booting[machine]; !ok {
		return
	}
	delete(r.booting, machine)
	r.Ask(machine)
}

// Next lets go whose turn it is, and gives up those that have been booting for
// longer than the patience: they are out, and may ask again.
func (r *Rack) Next(now time.Time) (start, late []string) {
	for machine, since := range r.booting {
		if now.Sub(since) >= r.limits.Patience {
			late = append(late, machine)
			delete(r.booting, machine)
		}
	}
	slices.Sort(late)
	r.fill(now)
	for r.head < len(r.queue) && r.tokens >= 1 && len(r.booting) < r.limits.Window {
		w := r.queue[r.head]
		r.head++
		r.tokens--
		delete(r.waiting, w.machine)
		r.booting[w.machine] = now
		start = append(start, w.machine)
	}
	if r.head > len(r.queue)/2 { // what is gone is let go of
		r.queue = append(r.queue[:0], r.queue[r.head:]...)
		r.head = 0
	}
	return start, late
}

func (r *Rack) fill(now time.Time) {
	if passed := now.Sub(r.at); passed > 0 {
		r.tokens = min(r.tokens+passed.Seconds()*r.limits.Rate, float64(r.limits.Burst))
		r.at = now
	}
}

// Waiting is how many stand in the queue.
func (r *Rack) Waiting() int { return len(r.queue) - r.head }

// Inside is how many are between power-on and hello.
func (r *Rack) Inside() int { return len(r.booting) }
