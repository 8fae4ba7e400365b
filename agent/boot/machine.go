package boot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Greeter is the server as a machine that boots knows it: a *Server.
type Greeter interface {
	CheckIn(ctx context.Context, h wire.BootCheckIn) (*wire.BootReply, error)
	// Key is the public key that hellos are proven with.
	Key() []byte
}

// Attester is the machine's TPM.
type Attester interface {
	Shown() wire.BootTPM
	Answer(c wire.BootChallenge, boot string, key []byte) ([]byte, error)
}

// Rooter puts the root file system together.
type Rooter interface {
	// Available is how much memory is free, in bytes.
	Available() int64
	// Fetch brings the image's file into memory.
	Fetch(ctx context.Context, f *wire.BootFiles) error
	// Mount makes the root of it, with what a task puts there.
	Mount(o *wire.BootTask) error
	// Switch leaves seed and stages to the service and becomes the image's init.
	// It returns only when that fails.
	Switch(o *wire.BootTask, st []wire.BootStage) error
}

// Machine is a machine that boots. All fields are required but TPM and Work.
type Machine struct {
	Settings Settings
	Server   Greeter
	Network  Network
	Drivers  *Drivers
	Root     Rooter
	Console  *Console
	Clock    muster.Clock
	// Up is the time since the kernel's clock began.
	Up func() time.Duration
	// Began is when this program started, by Up.
	Began time.Duration
	// Facts reads what the machine is.
	Facts func() muster.Facts
	// TPM is asked once; nil, or a nil Attester: there is none.
	TPM func() Attester
	// Work does orders to discover, test or clean.
	Work func(ctx context.Context, o *wire.BootTask, say func(string, ...any)) (wire.BootTaskResult, *muster.Facts, error)
	// GoOn has the machine go on from what it wrote of its memory, and returns only when it does not.
	// nil: it cannot.
	GoOn func(ctx context.Context, o *wire.BootTask) error
	// Off switches the machine off.
	Off func()
	// SetClock sets the machine's clock, which may be years behind.
	SetClock func(time.Time)

	stages stages
	lease  lease
	tpm    Attester
	facts  muster.Facts
	told   bool   // the facts
	answer []byte // to the challenge
	again  pauses // between tries of one order
	state  string
}

// Times that are not the order's.
const (
	clockSlack   = 2 * time.Second  // clocks that differ by less are left alone
	finalAsk     = 10 * time.Second // between hellos of a machine that has given up
	giveUpUnsaid = 5 * time.Minute  // where a task says nothing
	tellTime     = 30 * time.Second // for telling a failure
	maxAsked     = 3                // challenges in a row
)

// Run boots the machine. It ends when ctx does, or when the machine is switched off
// or has become the image; in life it does not return then.
func (m *Machine) Run(ctx context.Context) error {
	m.stages.up = m.Up
	m.stages.note(StageKernel, 0)
	m.stages.note(StageInit, m.Began)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go m.Drivers.Watch(watching, m.Clock)
	tpm := make(chan Attester, 1)
	go func() {
		if m.TPM != nil {
			tpm <- m.TPM()
			return
		}
		tpm <- nil
	}()
	if m.Settings.Channel != "" {
		m.state = StageCheckIn // its task says what its network is
	} else if err := m.configureNetwork(ctx); err != nil {
		return err
	}
	m.tpm = <-tpm
	m.facts = m.Facts()
	var before *wire.BootTask
	var until time.Time
	for ctx.Err() == nil {
		o, err := m.ask(ctx)
		if err != nil {
			return err
		}
		for o != nil && ctx.Err() == nil {
			if before == nil || !same(before, o) {
				// The time of a task runs from when it came first.
				until = m.Clock.Now().Add(giveUp(o))
				m.again = pauses{first: 500 * time.Millisecond, most: finalAsk, clock: m.Clock}
			}
			before = o
			if err = m.execute(ctx, o, until); err == nil {
				return nil
			}
			if o, err = m.failed(ctx, o, err, until); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// same reports whether two orders are of one attempt.
func same(a, b *wire.BootTask) bool { return a.Kind == b.Kind && a.Attempt == b.Attempt }

func giveUp(o *wire.BootTask) time.Duration {
	if o.GiveUp > 0 {
		return time.Duration(o.GiveUp)
	}
	return giveUpUnsaid
}

// reached writes the line of a stage that is behind us.
func (m *Machine) reached(stage, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if took, first := m.stages.at(stage); first {
		text += fmt.Sprintf(", %.3f s", took.Seconds())
	}
	m.Console.Say("%s: %s", stage, text)
}

// configureNetwork finds the NIC and gets an address, for as long as it takes.
func (m *Machine) configureNetwork(ctx context.Context) error {
	m.state = StageDrivers
	nics, err := find(ctx, m.Network, m.Clock, m.Settings.MAC, m.Console.Say)
	if err != nil {
		m.Console.Fail(StageDrivers, err)
		return err
	}
	m.reached(StageDrivers, "%s", listNICs(nics))
	m.state = StageAddress
	if m.lease, err = address(ctx, m.Network, m.Clock, nics, m.Console.Say); err != nil {
		m.Console.Fail(StageAddress, err)
		return err
	}
	m.lease.at = m.Up()
	m.reached(StageAddress, "%s on %s %s", m.lease.Address, m.lease.Name, m.lease.MAC)
	m.state = StageCheckIn
	return nil
}

// checkIn is what the machine says of itself now.
func (m *Machine) checkIn() wire.BootCheckIn {
	h := wire.BootCheckIn{
		MAC: m.lease.MAC, Address: m.lease.Address.Addr(), Serial: m.facts.Serial, UUID: m.facts.UUID,
		State: m.state, Stages: m.stages.all(),
	}
	if all, err := m.Network.NICs(); err == nil {
		for _, x := range all {
			h.MACs = append(h.MACs, x.MAC)
		}
	}
	if !m.told {
		h.Facts = &m.facts
	}
	if m.tpm != nil {
		shown := m.tpm.Shown()
		shown.Answer = m.answer
		h.TPM = &shown
	}
	return h
}

// say makes one exchange, and whatever goes with it: the clock, the TPM.
func (m *Machine) say(ctx context.Context, h wire.BootCheckIn) (*wire.BootReply, error) {
	for asked := 0; ; asked++ {
		r, err := m.Server.CheckIn(ctx, h)
		m.answer = nil // good for one hello
		if err != nil {
			return nil, err
		}
		m.told = m.told || h.Facts != nil && r.Challenge == nil
		if !r.Now.IsZero() && m.SetClock != nil {
			if off := r.Now.Sub(m.Clock.Now()); off > clockSlack || off < -clockSlack {
				m.SetClock(r.Now)
				m.Console.Say("check-in: the clock was wrong by %v and was set", off.Round(time.Second))
			}
		}
		if r.Challenge == nil {
			return r, nil
		}
		if m.tpm == nil || asked >= maxAsked {
			return nil, muster.Errorf(muster.EForbidden, "the server asks this machine's TPM, which it does not believe").
				WithHint("enrol the machine again")
		}
		if m.answer, err = m.tpm.Answer(*r.Challenge, m.Settings.Boot, m.Server.Key()); err != nil {
			return nil, err
		}
		h.TPM.Answer = m.answer
	}
}

// ask asks for a task, for as long as it takes.
func (m *Machine) ask(ctx context.Context) (*wire.BootTask, error) {
	m.state = StageCheckIn
	silent := pauses{first: 200 * time.Millisecond, most: 15 * time.Second, clock: m.Clock}
	for {
		m.renew(ctx)
		r, err := m.say(ctx, m.checkIn())
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			m.Console.Fail(StageCheckIn, err)
			if refused(err) && silent.n < 4 {
				silent.n = 4 // it will hardly think otherwise at once
			}
			if err := silent.wait(ctx); err != nil {
				return nil, err
			}
		case r.Task != nil:
			m.reached(StageCheckIn, "task %s%s", r.Task.Kind, forMachine(r.Task))
			return r.Task, nil
		default:
			silent.reset()
			if err := m.waits(ctx, r.Wait); err != nil {
				return nil, err
			}
		}
	}
}

func forMachine(o *wire.BootTask) string {
	s := ""
	if o.Machine != "" {
		s = fmt.Sprintf(" for %s", o.Machine)
	}
	if o.Hostname != "" {
		s += fmt.Sprintf(" as %s, attempt %d", o.Hostname, o.Attempt)
	}
	return s
}

// waits waits as the server says, and tells people why.
func (m *Machine) waits(ctx context.Context, w *wire.BootWait) error {
	d := 5 * time.Second
	if w != nil {
		text := "check-in: waiting"
		if w.Reason != "" {
			text += ": " + w.Reason
		}
		if w.Place > 0 {
			text += fmt.Sprintf("; place %d", w.Place)
		}
		if w.ETA > 0 {
			text += fmt.Sprintf(", about %.0f s", math.Ceil(w.ETA.Seconds()))
		}
		m.Console.Say("%s", text)
		if w.Next > 0 {
			d = time.Duration(w.Next)
		}
	}
	return sleep(ctx, m.Clock, d)
}

// renew asks for the address again when half of the lease is over. A server that
// does not answer changes nothing: the address stays until another one is given.
func (m *Machine) renew(ctx context.Context) {
	if m.lease.Renew <= 0 || m.Up()-m.lease.at < m.lease.Renew {
		return
	}
	try, cancel := context.WithTimeout(ctx, leaseWait)
	defer cancel()
	l, err := m.Network.Lease(try, m.lease.Name)
	if err == nil {
		err = m.Network.Use(m.lease.Name, l)
	}
	if err != nil {
		m.Console.Say("address: the lease was not renewed: %s", describe(err))
		m.lease.at = m.Up() - m.lease.Renew + 30*time.Second // soon again
		return
	}
	m.lease.Lease, m.lease.at = l, m.Up()
}

// failure is an error with the stage that it happened in.
type failure struct {
	stage, code string
	final       bool
	err         error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failed reports what went wrong and what is next: nil for asking again, a task for
// doing that one. An error ends it all.
func (m *Machine) failed(ctx context.Context, o *wire.BootTask, err error, until time.Time) (*wire.BootTask, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f := &failure{stage: m.state, code: "internal", err: err}
	errors.As(err, &f)
	m.Console.Fail(f.stage, f.err)
	late := !m.Clock.Now().Before(until)
	h := m.checkIn()
	h.Attempt, h.State = o.Attempt, f.stage
	h.Failure = &wire.BootFailure{Stage: f.stage, Code: f.code, Text: plain(describe(f.err)), Final: f.final || late}
	var known *muster.Error
	if errors.As(f.err, &known) {
		h.Failure.Hint = plain(known.Hint)
	}
	if f.final && !late {
		m.Console.Say("%s: this task is not tried again; off in %d s", f.stage, int(until.Sub(m.Clock.Now()).Seconds()))
	}
	for {
		try, cancel := context.WithTimeout(ctx, tellTime)
		r, tell := m.say(try, h)
		cancel()
		if tell != nil {
			m.Console.Say("%s: reporting to the server failed: %s", f.stage, describe(tell))
		} else if r.Task != nil && !same(r.Task, o) {
			m.Console.Say("check-in: task %s%s", r.Task.Kind, forMachine(r.Task))
			return r.Task, nil
		}
		switch {
		case !m.Clock.Now().Before(until):
			m.Console.Say("%s: given up; off", f.stage)
			m.Off()
			return nil, f
		case !f.final && tell == nil:
			return nil, m.again.wait(ctx)
		}
		if m.again.wait(ctx) != nil {
			return nil, ctx.Err()
		}
	}
}

// execute does what a task says. nil: it is done, and so is this program.
func (m *Machine) execute(ctx context.Context, o *wire.BootTask, until time.Time) error {
	switch o.Kind {
	case wire.BootOff:
		m.Console.Say("off: as the server orders")
		m.Off()
		return nil
	case wire.BootImage:
		return m.boot(ctx, o, until)
	}
	return m.work(ctx, o, until)
}

// boot becomes the image of a task.
func (m *Machine) boot(ctx context.Context, o *wire.BootTask, until time.Time) error {
	if o.Memory != nil {
		return m.goOn(ctx, o)
	}
	m.state = StageImage
	if err := enough(o.Image, m.Root.Available()); err != nil {
		return &failure{StageImage, "memory", true, err}
	}
	if missing := m.missing(o.Links); missing != "" {
		return &failure{StageImage, "task", true, muster.Errorf(muster.EInvalid, "there is no NIC with the MAC %s", missing).
			WithHint("discover the machine again: its NIC was exchanged, or has no driver")}
	}
	began := m.Up()
	try, cancel := context.WithTimeout(ctx, until.Sub(m.Clock.Now()))
	err := m.Root.Fetch(try, o.Image)
	cancel()
	if err != nil {
		if muster.CodeOf(err) == muster.ECorrupt {
			return &failure{StageImage, "digest", true, err}
		}
		return &failure{StageImage, "network", false, err}
	}
	where := "both in memory"
	if o.Image.Disk != "" {
		where = "one on a disk, the other in memory"
		m.reached(StageImage, "%s, on a disk", o.Image.ID.Short())
	} else {
		m.fetched(o, began)
	}
	if slices.ContainsFunc(o.Scratch, func(d wire.CleanDisk) bool { return d.Keep > 0 }) {
		m.Drivers.Names(memoryDrivers()...) // the image need not have what loads them
	}
	m.state = StageRoot
	if err := m.Root.Mount(o); err != nil {
		return &failure{StageRoot, "image", true, muster.Errorf(muster.EUnavailable, "the root file system cannot be made").
			WithHint("the image does not fit this machine's kernel or memory: look at the cause in brackets").Wrap(err)}
	}
	m.reached(StageRoot, "squashfs with an overlay, %s", where)
	m.state = StageSwitch
	if err := m.Network.Apply(o.Links); err != nil {
		return &failure{StageSwitch, "network", false, muster.Errorf(muster.EUnavailable, "the network cards cannot be set up").
			WithHint("look at the names and addresses of the task").Wrap(err)}
	}
	m.reached(StageSwitch, "%s", o.Hostname)
	if err := m.Root.Switch(o, m.stages.all()); err != nil {
		return &failure{StageSwitch, "image", true, muster.Errorf(muster.EUnavailable, "the image's init does not start").
			WithHint("the image must hold a program at /sbin/init").Wrap(err)}
	}
	return nil
}

// fetched says how the image came.
func (m *Machine) fetched(o *wire.BootTask, began time.Duration) {
	m.reached(StageImage, "%s, %.1f MiB verified, %.0f MB/s", o.Image.ID.Short(), float64(o.Image.Root.Size)/(1<<20),
		float64(o.Image.Root.Size)/1e6/max(0.001, (m.Up()-began).Seconds()))
}

// missing is the first MAC of a task that no NIC has.
func (m *Machine) missing(links []wire.BootLink) string {
	all, err := m.Network.NICs()
	if err != nil {
		return ""
	}
	for _, l := range links {
		if !slices.ContainsFunc(all, func(x NIC) bool { return x.MAC == l.MAC }) {
			return l.MAC
		}
	}
	return ""
}
