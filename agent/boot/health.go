package boot

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/smart"
)

// patience is how long is waited for what a disk says of itself: a command that is late
// has the kernel reset the disk, and what a broken disk holds may never return.
const patience = time.Minute

// asked is what one disk said of itself.
type asked struct {
	smart.Health
	silent bool // it did not answer
}

// ask asks all disks at the same time how they are. One that did not answer before is
// not asked again.
//
// The kernel counts a question that a disk refuses as a command that failed, and some
// that it answers, too: its own counters are read when all have answered.
func (w *worker) ask(ctx context.Context, disks []muster.Disk, before []asked) []asked {
	out := make([]asked, len(disks))
	var all sync.WaitGroup
	for i, d := range disks {
		if before != nil && before[i].silent {
			out[i] = before[i]
			continue
		}
		all.Go(func() { out[i] = w.askDisk(ctx, d) })
	}
	all.Wait()
	return out
}

func (w *worker) askDisk(ctx context.Context, d muster.Disk) asked {
	answer := make(chan asked, 1)
	go func() {
		h, err := w.health(d.Name)
		answer <- asked{h, err != nil}
	}()
	select {
	case a := <-answer:
		return a
	case <-w.clock.After(patience):
		return asked{silent: true}
	case <-ctx.Done():
		return asked{}
	}
}

// judge adds to what reading a disk showed what it says of itself. A disk that says that
// it fails does, whatever could be read of it.
func judge(step muster.CleanStep, before, after asked) muster.CleanStep {
	bad := cmp.Or(after.Failing, before.Failing)
	if bad != "" {
		bad = "it says of itself: " + bad
	}
	if after.silent {
		bad = "it does not answer when it is asked how it is"
	}
	switch {
	case bad != "" && step.OK:
		step.OK, step.Check = false, "FAILED: "+bad
	case bad != "":
		step.Check += "; " + bad
	case step.OK && after.Told:
		step.Check += "; it says of itself that it is well"
		if after.Wear != "" {
			step.Check += ", " + after.Wear
		}
	}
	return step
}

// grown is what disks counted of themselves before and after. A disk that told nothing
// before has counted since it was made: what it tells after is no gain.
func grown(before, after []asked) span {
	var s span
	for i := range before {
		if len(before[i].Errors) > 0 {
			s.before, s.after = append(s.before, before[i].Errors...), append(s.after, after[i].Errors...)
		}
	}
	return s
}
