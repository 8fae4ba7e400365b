package wipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Cleaner erases the disks of an order. All fields are required.
type Cleaner struct {
	// Disks lists those that there are now.
	Disks func() []muster.Disk
	// Open opens one of them for writing, for this program alone.
	Open func(d muster.Disk) (Device, error)
	// Say tells people what happens.
	Say   func(format string, args ...any)
	Clock muster.Clock
	// Appear is how long is waited for disks of the order: a controller takes its
	// time to find them.
	Appear time.Duration
}

// tellEvery is how often people are told how far it is.
const tellEvery = 10 * time.Second

// Run erases the disks of an order, all at once. There is a step for each: what was
// done and seen, or why not; and one for each disk that was not named, which was not
// touched. The error is only that ctx ended.
func (c *Cleaner) Run(ctx context.Context, o *wire.CleanOrder) ([]muster.CleanStep, error) {
	have, named, err := c.find(ctx, o.Disks)
	if err != nil {
		return nil, err
	}
	steps := make([]muster.CleanStep, len(named))
	var all sync.WaitGroup
	for i, n := range named {
		steps[i].What = n.Title()
		if n.Disk == nil {
			steps[i].Check = n.Why
			c.Say("clean: %s: FAILED: %s", n.Title(), n.Why)
			continue
		}
		have = slices.DeleteFunc(have, func(d muster.Disk) bool { return d.Name == n.Disk.Name })
		disk := *n.Disk
		if disk.ReadOnly {
			steps[i] = c.protected(disk, n.Order.ReadOnly)
			continue
		}
		all.Go(func() { steps[i] = c.one(ctx, disk) })
	}
	all.Wait()
	for _, d := range have {
		if d.Serial != "" && slices.ContainsFunc(o.Disks, func(x wire.CleanDisk) bool { return x.Serial == d.Serial }) {
			continue // a step above says why not
		}
		steps = append(steps, muster.CleanStep{What: Title(d), Check: "not named by the order, not touched", OK: true})
	}
	if len(o.Disks) == 0 {
		steps = append(steps, muster.CleanStep{What: "disks", Check: "no disks to erase", OK: true})
	}
	return steps, ctx.Err()
}

// find waits until the disks of an order are there.
func (c *Cleaner) find(ctx context.Context, order []wire.CleanDisk) ([]muster.Disk, []Named, error) {
	began, told := c.Clock.Now(), false
	for {
		have := slices.Clone(c.Disks())
		named := Match(order, slices.Clone(have))
		missing := slices.IndexFunc(named, func(n Named) bool { return n.Absent })
		if missing < 0 || c.Clock.Now().Sub(began) >= c.Appear {
			return have, named, nil
		}
		if !told {
			told = true
			c.Say("clean: waiting for %s: %s", named[missing].Title(), named[missing].Why)
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-c.Clock.After(time.Second):
		}
	}
}

// protected reports a disk that cannot be written to. Whether it was so before anybody had
// the machine makes the difference: one that a tenant protected may hold what they wrote.
func (c *Cleaner) protected(d muster.Disk, before bool) muster.CleanStep {
	step := muster.CleanStep{What: Title(d), OK: before, Check: "write-protected since it was registered: it holds nothing of a tenant's, and was not erased"}
	if !before {
		step.Check = "FAILED: it is write-protected, and was not when the machine was registered: it may hold what a tenant wrote; lift the protection, or exchange it"
	}
	c.Say("clean: %s: %s", step.What, step.Check)
	return step
}

// one erases one disk.
func (c *Cleaner) one(ctx context.Context, d muster.Disk) muster.CleanStep {
	step := muster.CleanStep{What: Title(d)}
	fail := func(err error) muster.CleanStep {
		step.Check = "FAILED: " + text(err)
		c.Say("clean: %s: %s", step.What, step.Check)
		return step
	}
	dev, err := c.Open(d)
	if err != nil {
		return fail(err)
	}
	defer dev.Close()
	// The name may have gone to another disk before it was opened; while it is open
	// it cannot.
	if dev.Size() != d.Size || !slices.ContainsFunc(c.Disks(), func(x muster.Disk) bool { return same(x, d) }) {
		return fail(muster.Errorf(muster.EConflict, "its name was given to another disk meanwhile"))
	}
	began := c.Clock.Now()
	told := began
	c.Say("clean: %s: erasing %s", step.What, gigabytes(d.Size))
	e, err := Erase(ctx, dev, func(done int64) {
		now := c.Clock.Now()
		if now.Sub(told) < tellEvery || done == d.Size {
			return
		}
		told = now
		rate := float64(done) / now.Sub(began).Seconds()
		left := time.Duration(float64(d.Size-done) / rate * float64(time.Second))
		c.Say("clean: %s: zeroes in %s of %s, %.0f MB/s, about %v left", step.What, gigabytes(done), gigabytes(d.Size), rate/1e6, left.Round(time.Second))
	})
	if err != nil {
		return fail(err)
	}
	step.OK, step.Check = true, e.String()
	c.Say("clean: %s: %s, %.1f s", step.What, step.Check, c.Clock.Now().Sub(began).Seconds())
	return step
}

func gigabytes(n int64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }

func same(a, b muster.Disk) bool {
	return a.Name == b.Name && a.Serial == b.Serial && a.Model == b.Model && a.Size == b.Size
}

// text is an error with its cause and what to do, in one line.
func text(err error) string {
	s := err.Error()
	var e *muster.Error
	if errors.As(err, &e) {
		if e.Err != nil {
			s += ": " + e.Err.Error()
		}
		if e.Hint != "" {
			s += "; " + e.Hint
		}
	}
	return s
}
