package selftest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Cores makes every core compute what is known.
type Cores struct {
	CPUs  []int // that compute, by the kernel's number
	Long  time.Duration
	Clock muster.Clock
	// Pin keeps the calling thread on a processor; nil asks the kernel.
	Pin func(cpu int) error
	// Compute is what a processor computes; nil: the function Compute.
	Compute func(cpu int, seed uint64) Answer
}

// core is what one processor did.
type core struct {
	rounds, wrong int
	parts         string // that computed wrongly
	err           error
}

// Run makes all processors compute at the same time. Each round has one of a few seeds,
// whose answers are known. The step names the processors that were wrong.
func (c Cores) Run(ctx context.Context) muster.CleanStep {
	step := muster.CleanStep{What: "cores"}
	if c.Pin == nil {
		c.Pin = pin
	}
	if c.Compute == nil {
		c.Compute = func(_ int, seed uint64) Answer { return Compute(seed) }
	}
	end := c.Clock.Now().Add(c.Long)
	done := make([]core, len(c.CPUs))
	var all sync.WaitGroup
	for i, cpu := range c.CPUs {
		all.Go(func() { done[i] = c.one(ctx, cpu, end) })
	}
	all.Wait()
	var bad []string
	n := 0
	for i, d := range done {
		n += d.rounds
		switch {
		case d.err != nil:
			bad = append(bad, fmt.Sprintf("processor %d did not compute: %v", c.CPUs[i], d.err))
		case d.wrong > 0:
			bad = append(bad, fmt.Sprintf("processor %d computed wrongly (%s) in %d of %d rounds", c.CPUs[i], d.parts, d.wrong, d.rounds))
		case d.rounds == 0:
			bad = append(bad, fmt.Sprintf("processor %d did not compute", c.CPUs[i]))
		}
	}
	switch {
	case len(bad) > 0:
		step.Check = "FAILED: " + list(bad)
	case len(c.CPUs) == 0:
		step.Check = "FAILED: the kernel shows no processor"
	default:
		step.OK = true
		step.Check = fmt.Sprintf("%d processors computed %d rounds of known answers, integer, floating point and vector; all agree", len(c.CPUs), n)
	}
	return step
}

func (c Cores) one(ctx context.Context, cpu int, end time.Time) (d core) {
	runtime.LockOSThread() // and never unlocked: the thread ends, it is bound to a processor
	if d.err = c.Pin(cpu); d.err != nil {
		return d
	}
	right := known()
	for ctx.Err() == nil && (d.rounds == 0 || c.Clock.Now().Before(end)) {
		seed := d.rounds % len(right)
		got := c.Compute(cpu, uint64(seed))
		if got != right[seed] {
			d.wrong++
			d.parts = differs(got, right[seed])
		}
		d.rounds++
	}
	return d
}

func differs(a, b Answer) string {
	var out []string
	if a.Integer != b.Integer {
		out = append(out, "integer")
	}
	if a.Float != b.Float {
		out = append(out, "floating point")
	}
	if a.Vector != b.Vector {
		out = append(out, "vector")
	}
	return strings.Join(out, ", ")
}

func pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set)
}

// list writes the first few of many.
func list(s []string) string {
	const most = 8
	if len(s) > most {
		return strings.Join(s[:most], "; ") + fmt.Sprintf("; and %d more", len(s)-most)
	}
	return strings.Join(s, "; ")
}
