package metal

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/bootqueue"
	"github.com/muster-hpc/muster/wire"
)

// Config of Boots. Dir, On, Tell and Files are required.
type Config struct {
	// Dir is where records lie.
	Dir string
	// On makes a machine boot from the network, from the beginning, and returns when it
	// is on as far as that can be known. Its context ends when the boot is not wanted
	// any more.
	On func(ctx context.Context, id muster.MachineID) error
	// Report makes what the first program of a machine is told of the payload of its order.
	// It is asked when that program is believed, and again when an answer was lost.
	Report func(ctx context.Context, s State, payload []byte) (*wire.BootTask, error)
	// Files are what a machine loads for a task of this kind: kernel and initramfs.
	// Discovered machines have no ID.
	Files func(id muster.MachineID, k wire.BootKind) (Files, error)
	// Leased is the address that a MAC has now.
	Leased func(mac string) (netip.Addr, bool)
	// Limits of a rack; nil: bootqueue.DefaultLimits for each.
	Limits func(rack string) bootqueue.Limits
	// Least is the trust below which the site gives out no seeds; "": network.
	Least muster.Trust
	// Discovery: unknown machines get an address, and are told to tell what they are.
	Discovery bool
	// OnDiscovered is given what a discovered machine says of itself. Its error is told to the discovered machine, which
	// says it again. May be nil.
	OnDiscovered func(ctx context.Context, g muster.DiscoveredMachine) error
	// OnChange is told of a machine whose State changed. It must be quick. May be nil.
	OnChange func(id muster.MachineID)
	// Alive is when the agent of a machine's node was last heard; zero: never. While it is
	// heard nobody is believed who says that the machine was started again. May be nil.
	Alive func(id muster.MachineID) time.Time
	// OnFacts is given the facts that a believed machine tells of itself. It must be
	// quick. May be nil.
	OnFacts func(id muster.MachineID, f muster.Facts, trust muster.Trust)
	// PortMatches reports whether a machine speaks through its own switch port, by what the
	// switch itself has seen. May be nil.
	PortMatches func(ctx context.Context, id muster.MachineID) bool
	Clock       muster.Clock
	Log         *slog.Logger
}

// Files are what a machine loads.
type Files struct {
	Kernel, Initramfs []string
	// Root is the root file system of the image; "": it comes over TLS alone.
	Root string
	// Server is Muster's own URL as machines reach it, and CA the SHA-256 of its
	// authority's certificate, in hexadecimal.
	Server, CA string
	// Args are further arguments of the kernel.
	Args []string
}

// Boots boots bare machines. It is safe for concurrent use.
type Boots struct {
	c     Config
	files files

	mu          sync.Mutex
	machines    map[muster.MachineID]*machine
	macs        map[string]muster.MachineID
	numbers     map[string]muster.MachineID
	racks       map[string]*bootqueue.Rack
	rackless    int // machines of no rack
	discoveries discoveries

	wake  chan struct{}
	power sync.WaitGroup
}

// machine is one that is registered; b.mu guards it.
type machine struct {
	reg   muster.Registration
	known bool    // reg was given since this program started
	rec   *record // nil: nothing is ordered
	// stop ends the switching on.
	stop  context.CancelFunc
	heard *wire.BootCheckIn // the last one that was believed
	// heardAt is when that was.
	heardAt time.Time
	// refused is why it was not believed when it asked last; nil once it is.
	refused *wire.BootFailure
	mode    muster.BootMode // that its firmware had when it asked last; "": it has not asked
	guess   muster.BootMode // that is tried next, as long as neither is known
	port    bool            // its request for an address came through its own port
	saving  chan struct{}   // held while its record is written
}

// Open reads what is remembered. Machines are unknown until Register names them; Run
// lets them start.
func Open(c Config) (*Boots, error) {
	if c.On == nil || c.Report == nil || c.Files == nil || c.Dir == "" {
		return nil, muster.Errorf(muster.EInternal, "boots need a directory, files, and somebody who switches machines on and tells them what to do")
	}
	if c.Limits == nil {
		c.Limits = func(string) bootqueue.Limits { return bootqueue.DefaultLimits() }
	}
	if c.Leased == nil {
		c.Leased = func(string) (netip.Addr, bool) { return netip.Addr{}, false }
	}
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.OnChange == nil {
		c.OnChange = func(muster.MachineID) {}
	}
	if c.PortMatches == nil {
		c.PortMatches = func(context.Context, muster.MachineID) bool { return false }
	}
	if c.Alive == nil {
		c.Alive = func(muster.MachineID) time.Time { return time.Time{} }
	}
	if c.OnFacts == nil {
		c.OnFacts = func(muster.MachineID, muster.Facts, muster.Trust) {}
	}
	if c.OnDiscovered == nil {
		c.OnDiscovered = func(context.Context, muster.DiscoveredMachine) error { return nil }
	}
	b := &Boots{
		discoveries: discoveries{map[string]*discovered{}, map[string]*discovered{}},
		c:           c, files: files{c.Dir}, wake: make(chan struct{}, 1),
		machines: map[muster.MachineID]*machine{}, macs: map[string]muster.MachineID{}, numbers: map[string]muster.MachineID{}, racks: map[string]*bootqueue.Rack{},
	}
	list, damaged, err := b.files.load()
	if muster.CodeOf(err) == muster.EConflict {
		return nil, err
	}
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "what machines are to boot cannot be read from %s", c.Dir).
			WithHint("see whether the server may read it").Wrap(err)
	}
	for _, name := range damaged {
		c.Log.Warn("reading boot record failed, restarting boot", "file", name)
	}
	for _, r := range list {
		m := newMachine()
		m.reg.ID, m.rec = r.Machine, r
		m.heardAt = c.Clock.Now() // who had the order a moment ago still has it
		b.machines[r.Machine] = m
		b.numbers[r.Number] = r.Machine
	}
	return b, nil
}

func newMachine() *machine { return &machine{saving: make(chan struct{}, 1)} }

// Register says which machines there are. Those that are left out are forgotten,
// with what they were to do.
func (b *Boots) Register(list []muster.Registration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countRackless(list)
	there := make(map[muster.MachineID]bool, len(list))
	clear(b.macs)
	for _, r := range list {
		there[r.ID] = true
		m := b.machines[r.ID]
		if m == nil {
			m = newMachine()
			b.machines[r.ID] = m
		}
		was := m.reg
		m.reg = r
		for _, n := range r.NICs {
			b.macs[n.MAC] = r.ID
		}
		if m.rec != nil && (!m.known || was.Rack != r.Rack) {
			b.rack(was.Rack).Remove(string(r.ID))
			b.resume(m, !m.known)
		}
		m.known = true
	}
	for id, m := range b.machines {
		if there[id] {
			continue
		}
		if m.rec != nil {
			b.drop(m)
			if err := b.files.remove(id); err != nil {
				return err
			}
		}
		delete(b.machines, id)
	}
	b.nudge()
	return nil
}

// resume takes up a boot that was under way, anew: when this program ended.
func (b *Boots) resume(m *machine, anew bool) {
	switch r := b.rack(m.reg.Rack); m.rec.Step {
	case StepQueued:
		r.Enqueue(string(m.reg.ID), m.rec.For)
	case StepStarting:
		if anew { // whether it was switched on is not known: it is started from the beginning
			m.rec.Step = StepQueued
			r.Enqueue(string(m.reg.ID), m.rec.For)
			return
		}
		r.Booting(string(m.reg.ID), m.rec.For, m.rec.Changed)
	case StepBooting: // it has its patience to speak
		r.Booting(string(m.reg.ID), m.rec.For, m.rec.Changed)
	}
}

// rack is where a machine's turn is decided; b.mu is held.
func (b *Boots) rack(name string) *bootqueue.Rack {
	r := b.racks[name]
	if r == nil {
		limits := b.limits(name)
		var err error
		if r, err = bootqueue.New(limits, b.c.Clock.Now()); err != nil {
			b.c.Log.Error("invalid rack limits, using defaults", "rack", name, "error", err)
			r, _ = bootqueue.New(bootqueue.DefaultLimits(), b.c.Clock.Now())
		}
		b.racks[name] = r
	}
	return r
}

// rackSize is how many machines a rack is taken to hold where nobody says which stand in
// it.
const rackSize = 64

// limits are those of a rack; b.mu is held. Machines whose rack nobody named stand in as
// many as they fill: a site that names none boots as fast as one that does.
func (b *Boots) limits(name string) bootqueue.Limits {
	l := b.c.Limits(name)
	if name == "" {
		l = l.Times((b.rackless + rackSize - 1) / rackSize)
	}
	return l
}

// countRackless notes how many machines are of no rack; b.mu is held.
func (b *Boots) countRackless(list []muster.Registration) {
	n := 0
	for _, r := range list {
		if r.Rack == "" {
			n++
		}
	}
	if b.rackless == n {
		return
	}
	b.rackless = n
	if r := b.racks[""]; r != nil {
		if err := r.Change(b.limits(""), b.c.Clock.Now()); err != nil {
			b.c.Log.Error("invalid rack limits, keeping those before", "error", err)
		}
	}
}

// drop forgets what a machine was to do; b.mu is held.
func (b *Boots) drop(m *machine) {
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
	b.rack(m.reg.Rack).Remove(string(m.reg.ID))
	if m.rec != nil {
		delete(b.numbers, m.rec.Number)
	}
	m.rec, m.heard, m.port = nil, nil, false
}

// States reports the boots of these machines, or of all where none is named, in the
// order of their names. Machines with nothing to do are left out.
func (b *Boots) States(ids ...muster.MachineID) []State {
	var out []State
	var macs []string
	b.mu.Lock()
	tell := func(m *machine) {
		if m != nil && m.rec != nil {
			out, macs = append(out, b.state(m)), append(macs, m.management())
		}
	}
	if len(ids) == 0 {
		for _, m := range b.machines {
			tell(m)
		}
	}
	for _, id := range ids {
		tell(b.machines[id])
	}
	b.mu.Unlock()
	// Leases are asked for without the lock: who keeps them asks the directory.
	for i, mac := range macs {
		out[i].Address, _ = b.c.Leased(mac)
	}
	slices.SortFunc(out, func(x, y State) int { return cmp.Compare(x.Machine, y.Machine) })
	return out
}

func (b *Boots) state(m *machine) State {
	r := m.rec
	s := State{
		Machine: r.Machine, Number: r.Number, Kind: r.Kind, Attempt: r.Attempt, As: r.As, Step: r.Step, Since: r.Since, Changed: r.Changed,
		Trust: r.Trust, Failure: r.Failure, Done: r.Done,
	}
	if m.refused != nil && s.Failure == nil && !r.Step.over() {
		s.Failure = m.refused
	}
	if r.Step == StepQueued {
		s.Place, _ = b.rack(m.reg.Rack).Place(string(r.Machine), b.c.Clock.Now())
	}
	if m.heard != nil {
		s.Heard = m.heardAt
		s.Stages, s.Doing = m.heard.Stages, cmp.Or(m.heard.Progress, m.heard.State)
	}
	return s
}

// management is the MAC from which the machine boots.
func (m *machine) management() string {
	for _, n := range m.reg.NICs {
		if n.Use == muster.UseManagement {
			return n.MAC
		}
	}
	return ""
}

// nudge wakes Run.
func (b *Boots) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// longestNap is how long Run sleeps at most.
const longestNap = time.Second

// imageOf is the image that a machine is to run; "" for none.
func (b *Boots) imageOf(id muster.MachineID) muster.ImageID {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.machines[id]; m != nil && m.rec != nil {
		return m.rec.Image
	}
	return ""
}

// fetching is the image that a boot may fetch now: its order was given to a program.
func (b *Boots) fetching(number string) (muster.ImageID, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.machines[b.numbers[number]]
	if m == nil || m.rec == nil || m.rec.Number != number || m.rec.Step != StepRunning || m.rec.Image == "" || m.reg.State == muster.RegistrationBlocked {
		return "", false
	}
	return m.rec.Image, true
}

// fetched notes that the program which has a boot's order is alive. Who asks must have
// shown the key of that order: a number alone is known to everybody on the wire.
func (b *Boots) fetched(number string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.machines[b.numbers[number]]; m != nil && m.rec != nil && m.rec.Number == number {
		m.heardAt = b.c.Clock.Now()
	}
}

// Heard is when a machine's first program was heard last; zero: never.
func (b *Boots) Heard(id muster.MachineID) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.machines[id]; m != nil && m.heard != nil && m.heard.Done == nil { // who is done goes off
		return m.heardAt
	}
	return time.Time{}
}

// Runs names the cluster for which the machine with a MAC runs an image, and what outgoing
// traffic that asked for; "" for none.
func (b *Boots) Runs(mac string) (cluster string, egress muster.Egress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.machines[b.macs[mac]]
	if m == nil || m.rec == nil || m.rec.Kind != wire.BootImage || m.rec.Step != StepRunning {
		return "", ""
	}
	return m.rec.For, m.rec.Egress
}
