package boot

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/selftest"
	"github.com/muster-hpc/muster/agent/wipe"
	"github.com/muster-hpc/muster/wire"
)

// Times of a test: about ten seconds together, whatever the machine's size.
const (
	coresTime = 3 * time.Second
	// fillTime is for the first pass over the memory; the three others take as long.
	fillTime  = 2 * time.Second
	diskTime  = 5 * time.Second
	linkWait  = 15 * time.Second // until a card has agreed with its switch
	diskReads = 500
	// What is left of the memory: this program and the kernel go on.
	leastLeft = 160 << 20
)

// test tries every part of the machine that it can without writing to a disk.
func (w *worker) test(ctx context.Context, o *wire.BootTask, say func(string, ...any)) ([]muster.CleanStep, error) {
	w.up(o.Links, say) // they agree with their switches meanwhile
	effort := time.Duration(max(o.Effort, 1))
	began := w.errors()
	say("test: %d processors compute for %v", len(w.cpus), effort*coresTime)
	cores := selftest.Cores{CPUs: w.cpus, Long: effort * coresTime, Clock: w.clock}.Run(ctx)
	computed := span{began, w.errors()}
	disks := w.disks() // now, that controllers have had their time
	say("test: %d disks are asked how they are", len(disks))
	before := w.ask(ctx, disks, nil)
	began = w.errors()
	total, free := w.memory()
	try := max(0, free-max(leastLeft, total/20))
	say("test: memory: %d of %d MiB", try>>20, total>>20)
	var all sync.WaitGroup
	var memory muster.CleanStep
	all.Go(func() {
		memory = selftest.Memory{CPUs: w.cpus, Bytes: try, Total: total, Fill: effort * fillTime, Clock: w.clock}.Run(ctx)
	})
	found := make([]muster.CleanStep, len(disks))
	for i, d := range disks {
		all.Go(func() { found[i] = w.tryDisk(ctx, d) })
	}
	all.Wait()
	steps := []muster.CleanStep{cores, memory}
	links := w.links(ctx, o.Links)
	loaded := span{began, w.errors()}
	after := w.ask(ctx, disks, before)
	for i, f := range found {
		steps = append(steps, judge(f, before[i], after[i]))
	}
	steps = append(steps, links...)
	steps = append(steps, counted(computed, loaded, grown(before, after)))
	for _, s := range steps {
		say("test: %s: %s", s.What, s.Check)
	}
	return steps, ctx.Err()
}

// tryDisk reads a disk in many places.
func (w *worker) tryDisk(ctx context.Context, d muster.Disk) muster.CleanStep {
	step := muster.CleanStep{What: wipe.Title(d)}
	dev, err := w.read(d)
	if err == nil {
		defer dev.Close()
		var t wipe.Tried
		if t, err = wipe.Try(ctx, dev, dev.Size(), diskReads, w.clock, diskTime); err == nil {
			step.OK, step.Check = true, fmt.Sprintf("read in %d places, the slowest in %v; nothing written", t.Places, t.Slowest.Round(10*time.Microsecond))
			return step
		}
	}
	step.Check = "FAILED: " + describe(err)
	return step
}

// up starts the cards of links.
func (w *worker) up(links []wire.BootLink, say func(string, ...any)) {
	nics, err := w.network.NICs()
	if err != nil {
		say("test: links: %s", describe(err))
	}
	for _, n := range nics {
		if slices.ContainsFunc(links, func(l wire.BootLink) bool { return l.MAC == n.MAC }) {
			if err := w.network.Up(n.Name); err != nil {
				say("test: %s cannot be started: %s", n.Name, describe(err))
			}
		}
	}
}

// links waits until all links are up and as fast as they shall be, for some time.
func (w *worker) links(ctx context.Context, links []wire.BootLink) []muster.CleanStep {
	end := w.clock.Now().Add(linkWait)
	for {
		nics, err := w.network.NICs()
		steps := make([]muster.CleanStep, len(links))
		ok := true
		for i, l := range links {
			steps[i] = tryLink(l, nics)
			if err != nil {
				steps[i].Check = "FAILED: " + describe(err)
			}
			ok = ok && steps[i].OK
		}
		if ok || !w.clock.Now().Before(end) || sleep(ctx, w.clock, 100*time.Millisecond) != nil {
			return steps
		}
	}
}

// tryLink reports how one link is now.
func tryLink(l wire.BootLink, nics []NIC) muster.CleanStep {
	step := muster.CleanStep{What: "link " + l.Name + " " + l.MAC}
	i := slices.IndexFunc(nics, func(n NIC) bool { return n.MAC == l.MAC })
	switch {
	case i < 0:
		step.Check = "FAILED: no such card"
	case !nics[i].Carrier:
		step.Check = "FAILED: the card is there, its link is down: look at its cable and its switch port"
	case nics[i].Speed == 0:
		step.OK, step.Check = true, "up; the card does not report its speed"
	case nics[i].Speed < l.Speed:
		step.Check = fmt.Sprintf("FAILED: up with %s, not %s: look at its cable and its switch port", speed(nics[i].Speed), speed(l.Speed))
	default:
		step.OK, step.Check = true, "up with "+speed(nics[i].Speed)
	}
	return step
}

func speed(bits int64) string {
	if bits >= 1e9 {
		return fmt.Sprintf("%g Gb/s", float64(bits)/1e9)
	}
	return fmt.Sprintf("%g Mb/s", float64(bits)/1e6)
}
