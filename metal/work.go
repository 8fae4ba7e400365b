package metal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// discover inventories a machine that never was, or for which an administrator asked.
func (p *Provider) discover(ctx context.Context, u *machineState) {
	r := u.registration()
	if r.Facts != nil && !r.Asked.After(r.Seen) {
		return
	}
	for _, st := range p.boots.States(u.id) {
		// What it does now comes first; what failed is tried again after a while.
		if st.Step != StepDone && st.Step != StepFailed || p.o.Clock.Now().Sub(st.Changed) < discoverAgain {
			return
		}
	}
	if err := p.work(ctx, u, wire.BootDiscover, &wire.BootTask{Kind: wire.BootDiscover}); err != nil {
		p.o.Log.Warn("hardware discovery failed", "machine", u.id, "error", err)
	}
}

// discoverAgain is after how long a machine that did not tell what it is is asked again.
const discoverAgain = 5 * time.Minute

// work orders a machine to do something for the site.
func (p *Provider) work(ctx context.Context, u *machineState, kind wire.BootKind, o *wire.BootTask) error {
	image, err := p.o.Images.Discovery(ctx)
	if err != nil {
		return err
	}
	if _, err := p.o.Kernels.Of(ctx, image); err != nil {
		return err
	}
	if p.o.Switches != nil && p.o.Switches.Known(u.id) {
		plug := func() error { return p.o.Switches.Manage(ctx, u.id) }
		if kind == wire.BootTest { // a closed port has no link
			plug = func() error { return p.o.Switches.Join(ctx, u.id, p.networks.tests()) }
		}
		if err := plug(); err != nil {
			return err
		}
	}
	attempt := p.o.Clock.Now().UnixMilli()
	o.Machine, o.Attempt = u.id, attempt
	payload, err := workDoc.Encode(o)
	if err != nil {
		return err
	}
	u.cancelPowerOff()
	return p.boots.Start(ctx, u.id, Task{Kind: kind, Attempt: attempt, For: "site", Payload: payload})
}

// done orders work and waits until the machine has done it and is off.
func (p *Provider) done(ctx context.Context, u *machineState, kind wire.BootKind, o *wire.BootTask) (*wire.BootTaskResult, error) {
	u.working.Store(true)
	defer u.working.Store(false)
	if err := p.work(ctx, u, kind, o); err != nil {
		return nil, err
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		if err := p.off(ctx, u); err != nil {
			p.o.Log.Warn("power off after task failed", "machine", u.id, "error", err)
		}
	}()
	for {
		states := p.boots.States(u.id)
		if len(states) == 0 || states[0].Attempt != o.Attempt {
			return nil, muster.Errorf(muster.EConflict, "machine %s has another task", u.id).Because(muster.ReasonAttemptOver)
		}
		switch st := states[0]; {
		case st.Step == StepRunning && !st.Heard.IsZero() && p.o.Clock.Now().Sub(st.Heard) > workSilence:
			return nil, muster.Errorf(muster.ETimeout, "nothing was heard of machine %s for %v while it did its work", u.id, workSilence).Because(muster.ReasonNoAnswer).WithHint("look at its console")
		case st.Step == StepDone:
			done := *st.Done
			if o.Stay > 0 {
				step := p.tryOff(ctx, u)
				done.Steps, done.Passed = append(slices.Clone(done.Steps), step), done.Passed && step.OK
			}
			return &done, p.awaitOff(ctx, u)
		case st.Step == StepFailed:
			return nil, failureError(st)
		}
		if err := p.pause(ctx); err != nil {
			return nil, err
		}
	}
}

// tryOff switches off a machine that waits for that, to see whether its controller does
// what it says.
func (p *Provider) tryOff(ctx context.Context, u *machineState) muster.CleanStep {
	begin := p.o.Clock.Now()
	r, err := p.o.Power.Off(ctx, p.target(u.registration()))
	p.note(u, r, err)
	step := muster.CleanStep{What: "power", OK: err == nil && r.State == power.Off}
	text := ""
	if n := len(r.Steps); n > 0 {
		text = ": " + r.Steps[n-1].Check
	}
	step.Check = fmt.Sprintf("switched off while it ran, in %.1fs%s", p.o.Clock.Now().Sub(begin).Seconds(), text)
	if !step.OK {
		step.Check = fmt.Sprintf("NOT switched off within %.0fs%s", p.o.Clock.Now().Sub(begin).Seconds(), text)
	}
	return step
}

// testStay is how long a machine that was tested waits to be switched off: longer than
// that takes at most.
const testStay = 90 * time.Second

// awaitOff waits until a machine that goes off by itself is off.
func (p *Provider) awaitOff(ctx context.Context, u *machineState) error {
	end := p.o.Clock.Now().Add(offPatience)
	told := false
	for {
		p.lookNow(ctx, []*machineState{u})
		u.mu.Lock()
		state := u.reading.State
		u.mu.Unlock()
		switch now := p.o.Clock.Now(); {
		case state == power.Off:
			return p.boots.Forget(ctx, u.id)
		case now.After(end):
			return muster.Errorf(muster.ETimeout, "machine %s did what it should and did not go off", u.id).Because(muster.ReasonPowerUnconfirmed).WithHint("look at its console")
		case !told && now.After(end.Add(-offPatience/2)):
			told = true
			if err := p.off(ctx, u); err != nil {
				return err
			}
		}
		if err := p.pause(ctx); err != nil {
			return err
		}
	}
}

// workSilence is how long a machine that works may say nothing: it reports how far it is
// every half minute.
const workSilence = 2 * time.Minute

// offPatience is how long a machine may take to go off by itself.
const offPatience = time.Minute

func (p *Provider) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ctx.Done():
		return muster.Errorf(muster.EUnavailable, "the server ends").Because(muster.ReasonServerStopping)
	case <-p.o.Clock.After(200 * time.Millisecond):
		return nil
	}
}

// isOff makes sure that a machine is off now. One that is just telling what it is has a
// moment to come to an end with that.
func (p *Provider) isOff(ctx context.Context, u *machineState) (power.Reading, error) {
	for end := p.o.Clock.Now().Add(offPatience); ; {
		p.lookNow(ctx, []*machineState{u})
		u.mu.Lock()
		r, err := u.reading, u.lookErr
		u.mu.Unlock()
		if err != nil {
			return r, err
		}
		telling := false
		for _, st := range p.boots.States(u.id) {
			if st.Kind == wire.BootImage && !st.Step.over() {
				return r, muster.Errorf(muster.EConflict, "machine %s runs or is about to", u.id).Because(muster.ReasonMachineInUse)
			}
			telling = st.Kind == wire.BootDiscover
		}
		switch {
		case r.State == power.Off && !telling:
			return r, nil
		case !telling || p.o.Clock.Now().After(end):
			return r, muster.Errorf(muster.EConflict, "machine %s is not off: %s", u.id, r.Text).Because(muster.ReasonMachineInUse)
		}
		if err := p.pause(ctx); err != nil {
			return r, err
		}
	}
}

// Clean erases the disks of a machine, which boots for that, and verifies it. What was
// in its memory went with its power. A machine that nobody used since it was cleaned
// last is not started.
func (p *Provider) Clean(ctx context.Context, id muster.MachineID) (muster.CleanRecord, error) {
	rec := muster.CleanRecord{Machine: id, At: p.o.Clock.Now()}
	u, err := p.unit(id)
	if err != nil {
		return rec, err
	}
	u.op.Lock()
	defer u.op.Unlock()
	power, err := p.isOff(ctx, u)
	if err != nil {
		return rec, err
	}
	step := func(what string, ok bool, format string, args ...any) {
		rec.Steps = append(rec.Steps, muster.CleanStep{What: what, Check: fmt.Sprintf(format, args...), OK: ok})
	}
	step("memory", true, "it was without power: %s", power.Text)
	if err := p.boots.Forget(ctx, id); err != nil {
		return rec, err
	}
	step("boot keys and orders", true, "forgotten, and read back")
	switch {
	case p.o.Switches == nil || !p.o.Switches.Known(id):
		step("message network", true, "not looked at: its switch is not known")
	default:
		if err := p.o.Switches.Leave(ctx, id); err != nil {
			return rec, err
		}
		step("message network", true, "its ports are closed and were read back")
	}
	ok := true
	disks, nameless := cleanDisks(u.registration())
	for _, name := range nameless {
		ok = false
		step("disk "+name, false, "it has neither a serial number nor a model by which it could be told from others")
	}
	since, clean := p.cleanSince(id)
	switch {
	case len(disks) == 0:
		step("disks", true, "there is none to be erased")
	case clean:
		step("disks", true, "nobody had the machine since they were erased at %s", since.UTC().Format(time.RFC3339))
	default:
		done, err := p.done(ctx, u, wire.BootClean, &wire.BootTask{Kind: wire.BootClean, Clean: &wire.CleanOrder{Disks: disks}})
		if err != nil {
			return rec, err
		}
		rec.Steps = append(rec.Steps, done.Steps...)
		if ok = ok && done.Passed && len(done.Steps) > 0; ok {
			if err := p.markClean(id); err != nil {
				return rec, err
			}
		}
	}
	rec.Took = muster.Duration(p.o.Clock.Now().Sub(rec.At))
	rec.Verified = ok
	return rec, nil
}

// cleanDisks are the disks that a machine's users can write to, by what is written on
// them, and the names of those on which nothing is.
func cleanDisks(r muster.Registration) (out []wire.CleanDisk, nameless []string) {
	if r.Facts == nil {
		return nil, nil
	}
	for _, d := range r.Facts.Disks {
		switch {
		case d.Size <= 0:
		case d.Serial == "" && d.Model == "" && d.ReadOnly: // nobody can write to it
		case d.Serial == "" && d.Model == "":
			nameless = append(nameless, d.Name)
		default:
			out = append(out, wire.CleanDisk{Serial: d.Serial, Model: d.Model, Size: d.Size, ReadOnly: d.ReadOnly})
		}
	}
	return out, nameless
}

// Whether somebody had a machine since it was cleaned is a file, which is gone before
// the machine is given an image.
func (p *Provider) cleanFile(id muster.MachineID) string {
	return filepath.Join(p.o.Dir, "clean", string(id))
}

// markDirty notes that somebody has the machine.
func (p *Provider) markDirty(id muster.MachineID) error {
	err := os.Remove(p.cleanFile(id))
	if err == nil {
		err = atomicfile.SyncDir(filepath.Dir(p.cleanFile(id)))
	}
	if err != nil && !os.IsNotExist(err) {
		return muster.Errorf(muster.EUnavailable, "that machine %s is used cannot be written down", id).
			WithHint("see whether the server may write its state directory").Wrap(err)
	}
	return nil
}

func (p *Provider) markClean(id muster.MachineID) error {
	if err := os.MkdirAll(filepath.Dir(p.cleanFile(id)), 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(p.cleanFile(id), nil, 0o600)
}

// ForgetCleaned makes every machine of a site be erased before somebody else has it, whatever the
// notes below dir (the folder metal of a state directory) say: in a new epoch of the records
// nobody knows whose it was since.
func ForgetCleaned(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, "clean")); err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil //nolint:nilerr // there are no bare machines
	}
	return atomicfile.SyncDir(dir)
}

func (p *Provider) cleanSince(id muster.MachineID) (time.Time, bool) {
	st, err := os.Stat(p.cleanFile(id))
	if err != nil {
		return time.Time{}, false
	}
	return st.ModTime(), true
}

// Test makes a machine test itself, without a tenant, and its controller switch it off.
func (p *Provider) Test(ctx context.Context, id muster.MachineID, effort int) (muster.TestRecord, error) {
	rec := muster.TestRecord{Machine: id, At: p.o.Clock.Now()}
	u, err := p.unit(id)
	if err != nil {
		return rec, err
	}
	u.op.Lock()
	defer u.op.Unlock()
	if _, err := p.isOff(ctx, u); err != nil {
		return p.powerless(rec, err)
	}
	o := &wire.BootTask{Kind: wire.BootTest, Effort: effort}
	r := u.registration()
	if able, err := p.o.Power.Abilities(p.target(r)); err == nil && able.Off && able.State && r.Power.Kind != muster.PowerWOL {
		o.Stay = muster.Duration(testStay)
	}
	o.Links = testedLinks(r)
	done, err := p.done(ctx, u, wire.BootTest, o)
	if done == nil || err != nil {
		return p.powerless(rec, err)
	}
	rec.Steps, rec.Passed, rec.Took = done.Steps, done.Passed, muster.Duration(p.o.Clock.Now().Sub(rec.At))
	return rec, nil
}

// powerless makes a failed test of a controller that lets nobody in, or whose machine does
// not do what it was told: that is the machine's fault, and does not pass by itself. Of
// any other error nothing is known of the machine.
func (p *Provider) powerless(rec muster.TestRecord, err error) (muster.TestRecord, error) {
	if code := muster.CodeOf(err); err == nil || code != muster.EUnauth && code != muster.EForbidden && !errors.Is(err, power.ErrUnverified) {
		return rec, err
	}
	text, _ := muster.Explain(err)
	rec.Steps = []muster.CleanStep{{What: "power", Check: strings.TrimPrefix(text, "power: ")}}
	rec.Took = muster.Duration(p.o.Clock.Now().Sub(rec.At))
	return rec, nil
}

// testedLinks are a machine's interfaces, as they are called in the words of a test.
func testedLinks(r muster.Registration) (list []wire.BootLink) {
	messages := 0
	for _, n := range r.NICs {
		name := "mgmt0"
		if n.Use == muster.UseMessage {
			name = provider.MessageLink(messages)
			messages++
		}
		list = append(list, wire.BootLink{MAC: n.MAC, Name: name})
	}
	return list
}
