package bootqueue

import (
	"slices"
	"time"
)

// Rack admits boots. It is used by one goroutine. Times that go backwards count
// as no time passed.
type Rack struct {
	limits  Limits
	tokens  float64
	at      time.Time           // when tokens were counted
	turns   []*line             // of owners of whom somebody waits, next first
	lines   map[string]*line    // the same by owner
	waiting map[string]position // where a machine stands
	last    int64               // number of the last asking
	booting map[string]boot
	typical time.Duration
}

// position is where a machine waits.
type position struct {
	line   *line
	number int64
}

// boot is a machine that was let go.
type boot struct {
	owner string
	since time.Time
}

// New makes an empty rack whose bucket is full.
func New(limits Limits, now time.Time) (*Rack, error) {
	if err := limits.Check(); err != nil {
		return nil, err
	}
	return &Rack{
		limits: limits, tokens: float64(limits.Burst), at: now, typical: limits.Typical,
		lines: map[string]*line{}, waiting: map[string]position{}, booting: map[string]boot{},
	}, nil
}

// Change gives it other limits from now on. Machines that boot already go on, also where
// there are more of them than the new window has places.
func (r *Rack) Change(limits Limits, now time.Time) error {
	if err := limits.Check(); err != nil {
		return err
	}
	r.fill(now)
	r.limits, r.tokens = limits, min(r.tokens, float64(limits.Burst))
	return nil
}

// Enqueue puts a machine behind those that wait for the same owner. Owners are served in
// turn, so that one machine does not wait behind all of a large cluster. One that waits
// or boots already stays where it is.
func (r *Rack) Enqueue(machine, owner string) {
	if _, ok := r.waiting[machine]; ok {
		return
	}
	if _, ok := r.booting[machine]; ok {
		return
	}
	r.join(machine, owner)
}

// Booting notes a machine that was let go before a restart of this process: it
// takes a place in the window, however many there are.
func (r *Rack) Booting(machine, owner string, since time.Time) {
	r.Remove(machine)
	r.booting[machine] = boot{owner, since}
}

// Remove takes a machine out, wherever it is: nobody wants it to boot any more.
func (r *Rack) Remove(machine string) {
	delete(r.booting, machine)
	r.quit(machine)
}

// Arrived says that a machine has arrived: its place in the window is free.
func (r *Rack) Arrived(machine string, now time.Time) {
	b, ok := r.booting[machine]
	if !ok {
		return
	}
	delete(r.booting, machine)
	// A moving average over about eight boots; one odd boot moves it little.
	took := min(max(now.Sub(b.since), 0), r.limits.Patience)
	r.typical += (took - r.typical) / 8
}

// Failed says that a machine's boot failed. Its place is free at once, and it is
// tried again behind all who wait now for its owner. The token that it took is not given back:
// its power supply did draw the current.
func (r *Rack) Failed(machine string) {
	b, ok := r.booting[machine]
	if !ok {
		return
	}
	delete(r.booting, machine)
	r.join(machine, b.owner)
}

// Next lets go whose turn it is, and gives up those that have been booting for
// longer than the patience: they are out, and may ask again.
func (r *Rack) Next(now time.Time) (start, late []string) {
	for machine, b := range r.booting {
		if now.Sub(b.since) >= r.limits.Patience {
			late = append(late, machine)
			delete(r.booting, machine)
		}
	}
	slices.Sort(late)
	r.fill(now)
	for len(r.turns) > 0 && r.tokens >= 1 && len(r.booting) < r.limits.Window {
		machine, owner := r.pop()
		r.tokens--
		r.booting[machine] = boot{owner, now}
		start = append(start, machine)
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
func (r *Rack) Waiting() int { return len(r.waiting) }

// Inside is how many are between power-on and hello.
func (r *Rack) Inside() int { return len(r.booting) }
