package boot

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/agent/smart"
	"github.com/muster-hpc/muster/agent/wipe"
	"github.com/muster-hpc/muster/wire"
)

// worker does orders that are not boot.
type worker struct {
	network Network
	clock   muster.Clock
	disks   func() []muster.Disk
	// write and read open a disk.
	write func(muster.Disk) (wipe.Device, error)
	read  func(muster.Disk) (wipe.Device, error)
	// cpus are the processors; memory is how much there is and how much is free, in
	// bytes.
	cpus   []int
	memory func() (total, free int64)
	// errors are what the kernel has counted so far.
	errors func() []facts.Errors
	// health asks the disk with a name how it is; it may never return.
	health func(name string) (smart.Health, error)
}

// newWorker makes the worker of this machine.
func newWorker(n Network, c muster.Clock) *worker {
	return &worker{
		network: n, clock: c, disks: facts.Source{}.Disks, cpus: facts.Source{}.Processors(),
		write:  func(d muster.Disk) (wipe.Device, error) { return opened(wipe.OpenWrite(wipe.Path(d), d.Size)) },
		read:   func(d muster.Disk) (wipe.Device, error) { return opened(wipe.OpenRead(wipe.Path(d))) },
		memory: func() (total, free int64) { return facts.Memory(""), facts.Available("") },
		errors: facts.Source{}.Errors, health: smart.Read,
	}
}

// opened makes no device of one that is nil.
func opened(b *wipe.Block, err error) (wipe.Device, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

// appear is how long is waited for the disks of a task: controllers with many disks
// start them one after the other.
const appear = 90 * time.Second

// do does a task. What it found is in the steps; the order passed when all of them
// are right.
func (w *worker) do(ctx context.Context, o *wire.BootTask, say func(string, ...any)) (wire.BootTaskResult, *muster.Facts, error) {
	switch o.Kind {
	case wire.BootDiscover:
		say("discover: listening for what switches say of themselves")
		f := facts.Source{}.Read("", "")
		facts.Source{}.Neighbours(ctx, f.NICs)
		return wire.BootTaskResult{Passed: true}, &f, nil
	case wire.BootClean:
		c := wipe.Cleaner{Disks: w.disks, Open: w.write, Say: say, Clock: w.clock, Appear: appear}
		steps, err := c.Run(ctx, o.Clean)
		return done(steps), nil, err
	case wire.BootTest:
		steps, err := w.test(ctx, o, say)
		return done(steps), nil, err
	}
	return wire.BootTaskResult{}, nil, muster.Errorf(muster.EInvalid, "this program does not know how to %s", o.Kind).
		WithHint("use an initramfs of a newer version")
}

// done gathers steps. What devices say of themselves goes to people as one line.
func done(steps []muster.CleanStep) wire.BootTaskResult {
	d := wire.BootTaskResult{Passed: len(steps) > 0, Steps: steps}
	for i, s := range steps {
		steps[i].What, steps[i].Check = plain(s.What), plain(s.Check)
		d.Passed = d.Passed && s.OK
	}
	return d
}
