package metal

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/bootapi"
	"github.com/muster-hpc/muster/metal/bootqueue"
	"github.com/muster-hpc/muster/metal/kernels"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// Name is the provider's name.
const Name = "metal"

// Registry knows which bare machines the site has.
type Registry interface {
	Registrations(ctx context.Context) ([]muster.Registration, error)
	// Password is that of a machine's management controller; empty where it has none.
	Password(ctx context.Context, id muster.MachineID) ([]byte, error)
	// PowerKey is the key K_G of an IPMI controller; empty where it has none.
	PowerKey(ctx context.Context, id muster.MachineID) ([]byte, error)
}

// Power switches machines: a *power.Control.
type Power interface {
	Boot(ctx context.Context, t power.Target) (power.Result, error)
	Off(ctx context.Context, t power.Target) (power.Result, error)
	State(ctx context.Context, t power.Target) (power.Reading, error)
	Fence(ctx context.Context, t power.Target) muster.FenceRecord
	Abilities(t power.Target) (power.Abilities, error)
}

// Switches set the switch ports of machines. What a machine is plugged into may be
// unknown: then nothing is set, and nothing isolates it.
type Switches interface {
	// Known reports whether a machine's ports are known.
	Known(id muster.MachineID) bool
	// Join puts a machine's message ports into a network and opens all its ports.
	Join(ctx context.Context, id muster.MachineID, vlan int) error
	// Leave closes its message ports.
	Leave(ctx context.Context, id muster.MachineID) error
	// Manage opens its management port and closes the others.
	Manage(ctx context.Context, id muster.MachineID) error
	// Link reports what its switch sees of it.
	Link(ctx context.Context, id muster.MachineID) (power.Link, error)
	// Through reports whether its own port is where it was seen, and nowhere else.
	Through(ctx context.Context, id muster.MachineID) (bool, error)
}

// Images gives machines what they boot.
type Images interface {
	// Boot returns an image whose files were compared with their digests, and the
	// directory in which they are.
	Boot(ctx context.Context, id muster.ImageID) (*muster.Image, string, error)
	// Discovery is the image whose kernel machines start with that run no image.
	Discovery(ctx context.Context) (muster.ImageID, error)
	// Bootable lists the images with a kernel.
	Bootable(ctx context.Context) ([]muster.ImageID, error)
}

// Options of a Provider. All are required but those that say otherwise.
type Options struct {
	Dir      string // for what must outlive a crash
	Registry Registry
	Power    Power
	Images   Images
	Switches Switches // nil: the site's switches are not Muster's to set
	// Kernels are those of the images.
	Kernels *kernels.Store
	// Interface is that of the management network, and Address this server's in it.
	Interface string
	Address   netip.Prefix
	// Closed are parts of the management network in which machines have their addresses:
	// nodes reach the server and what else is there, and not each other. May be empty.
	Closed []netip.Prefix
	// URL is where machines find the boot server, over TLS, and CA the SHA-256 of the
	// authority that signed for it, in hexadecimal.
	URL, CA string
	// Plain is the URL of the boot service's HTTP, from which machines may have their
	// images too, which is quicker; "": over TLS alone.
	Plain string
	// Hibernate: machines may write their memory to disks of their own when their cluster is paused.
	Hibernate bool
	// Args are arguments of the kernels: where its console is.
	Args []string
	// Leased is the address that a MAC has now.
	Leased func(mac string) (netip.Addr, bool)
	// VLANs are the first and last network that clusters may have; zeros: 100 to 1999.
	VLANs [2]int
	// Limits, Least, Discovery, Alive and Told are those of Config.
	Limits    func(rack string) bootqueue.Limits
	Least     muster.Trust
	Discovery bool
	Alive     func(id muster.MachineID) time.Time
	OnFacts   func(id muster.MachineID, f muster.Facts, trust muster.Trust)
	// OnDiscovered takes what an unknown machine says of itself; nil: nobody does.
	OnDiscovered func(ctx context.Context, g muster.DiscoveredMachine) error
	// BootLog is what the boot service did for a machine lately; may be nil.
	BootLog func(mac string) []netboot.Event
	Clock   muster.Clock
	Log     *slog.Logger
}

// Provider makes clusters of bare machines.
type Provider struct {
	o        Options
	boots    *Boots
	pieces   *pieces
	networks *networks
	keys     fileKeys
	changes  chan muster.MachineID
	wake     chan struct{}

	ctx  context.Context // ends with the provider
	stop context.CancelFunc
	jobs sync.WaitGroup

	syncing  sync.Mutex // one at a time takes over what is registered
	mu       sync.Mutex
	machines map[muster.MachineID]*machineState
	order    []muster.MachineID // sorted
}

var _ provider.Provider = (*Provider)(nil)

// Capabilities are those of whole machines, which boot as their racks' power allows and
// have no directory of the server.
func (p *Provider) Capabilities() muster.Capabilities {
	return muster.Capabilities{
		OwnKernel: true, RootInMemory: true, OffWhenFree: true,
		Fabric: Name, Trust: muster.TrustNetwork,
		Volumes: []muster.VolumeDriver{muster.DriverManagedNFS, muster.DriverNFS},
		Egress:  []muster.Egress{muster.EgressNone, muster.EgressProxy},
		// Their agents hold their links.
		LinkRates: true, Hibernates: p.o.Hibernate,
	}
}

// New opens a provider and takes up what an earlier one left under way. Close ends it;
// machines go on.
func New(ctx context.Context, o Options) (*Provider, error) {
	if o.Clock == nil {
		o.Clock = muster.SystemClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.VLANs == [2]int{} {
		o.VLANs = [2]int{100, 1999}
	}
	p := &Provider{
		o: o, changes: make(chan muster.MachineID, 1024), wake: make(chan struct{}, 1), machines: map[muster.MachineID]*machineState{},
	}
	p.ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if p.boots, err = Open(Config{
		Dir: o.Dir + "/boots", On: p.switchOn, Report: p.buildTask, Files: p.files, Leased: o.Leased, Limits: o.Limits, Least: o.Least, Discovery: o.Discovery,
		OnChange: p.changed, OnFacts: o.OnFacts, OnDiscovered: o.OnDiscovered, Alive: o.Alive, PortMatches: p.through, Clock: o.Clock, Log: o.Log,
	}); err != nil {
		return nil, err
	}
	if p.networks, err = openNetworks(o.Dir+"/networks.json", o.VLANs); err != nil {
		return nil, err
	}
	if p.keys, err = openFileKeys(o.Dir + "/files.key"); err != nil {
		return nil, err
	}
	p.pieces = newPieces()
	if err := p.sync(ctx); err != nil {
		return nil, err
	}
	p.jobs.Go(func() { p.boots.Run(p.ctx) })
	p.jobs.Go(func() { p.watch(p.ctx) })
	p.jobs.Go(func() { p.prepare(p.ctx) })
	return p, nil
}

// Name is metal.
func (p *Provider) Name() string { return Name }

// Close lets go of the machines, which go on as they are.
func (p *Provider) Close() error {
	p.stop()
	p.jobs.Wait()
	return nil
}

// Halt ends what the provider does by itself: no machine is switched, and none waits for its
// turn, until a later one takes it up. What is known of machines can still be asked.
func (p *Provider) Halt() { p.stop() }

// Changes reports which machines changed.
func (p *Provider) Changes() <-chan muster.MachineID { return p.changes }

func (p *Provider) changed(id muster.MachineID) {
	if !p.listed(id) {
		return // nobody knows of it yet
	}
	select {
	case p.changes <- id:
	default: // Observe is the truth
	}
}

// BootRegistry and Directory are what the boot server and the boot service ask.
func (p *Provider) BootRegistry() bootapi.Registry { return p.boots.Registry() }

// Directory is what the boot service asks.
func (p *Provider) Directory() netboot.Directory { return p.boots.Directory() }

// Boots reports the boots under way.
func (p *Provider) Boots() *Boots { return p.boots }

// NICs are the interfaces of an approved machine.
func (p *Provider) NICs(id muster.MachineID) []muster.RegisteredNIC {
	u, err := p.unit(id)
	if err != nil {
		return nil
	}
	return u.registration().NICs
}

// Management is the address that a machine has on the management network; false: none now.
func (p *Provider) Management(id muster.MachineID) (netip.Addr, bool) {
	for _, nic := range p.NICs(id) {
		if a, ok := p.o.Leased(nic.MAC); ok && nic.Use == muster.UseManagement {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Trust is how far a machine was believed when it was given what it runs.
func (p *Provider) Trust(id muster.MachineID) muster.Trust {
	for _, st := range p.boots.States(id) {
		if st.Kind == wire.BootImage && st.Trust != "" {
			return st.Trust
		}
	}
	return muster.TrustNetwork
}

// Heard is when a machine was last heard here: its first program, or what it asked of the
// boot service.
func (p *Provider) Heard(id muster.MachineID) time.Time {
	at := p.boots.Heard(id)
	if p.o.BootLog == nil {
		return at
	}
	for _, n := range p.NICs(id) {
		if events := p.o.BootLog(n.MAC); len(events) > 0 && events[len(events)-1].At.After(at) {
			at = events[len(events)-1].At
		}
	}
	return at
}

func (p *Provider) through(ctx context.Context, id muster.MachineID) bool {
	if p.o.Switches == nil {
		return false
	}
	ok, err := p.o.Switches.Through(ctx, id)
	if err != nil {
		p.o.Log.Warn("reading switch port failed", "machine", id, "error", err)
	}
	return ok
}

// Registered says that registrations changed.
func (p *Provider) Registered() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Discover lists the machines that are approved, told what they are, and can be
// switched. One that did not tell yet is asked to.
func (p *Provider) Discover(ctx context.Context) ([]muster.Machine, error) {
	if err := p.sync(ctx); err != nil {
		return nil, err
	}
	var out []muster.Machine
	for _, u := range p.all(nil) {
		if f, ok := u.facts(p.o.Clock.Now()); ok && p.arrived(u) {
			f.Management, _ = p.o.Leased(managementOf(u.registration()))
			out = append(out, muster.Machine{ID: u.id, Provider: Name, Facts: f})
		}
	}
	return out, nil
}

// arrived reports whether a machine is one of the site: one that is new has done with
// telling what it is, and is off.
func (p *Provider) arrived(u *machineState) bool {
	busy := false
	for _, st := range p.boots.States(u.id) {
		busy = st.Kind == wire.BootDiscover
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.listed = u.listed || !busy
	return u.listed
}

// listed reports whether Discover lists a machine, or would now.
func (p *Provider) listed(id muster.MachineID) bool {
	u, err := p.unit(id)
	if err != nil {
		return false
	}
	u.mu.Lock()
	listed := u.listed
	u.mu.Unlock()
	if listed {
		return true
	}
	_, told := u.facts(p.o.Clock.Now())
	return told && p.arrived(u)
}

// sync takes over what is registered, and has machines discovered that must be.
func (p *Provider) sync(ctx context.Context) error {
	p.syncing.Lock()
	defer p.syncing.Unlock()
	list, err := p.o.Registry.Registrations(ctx)
	if err != nil {
		return err
	}
	if err := p.boots.Register(list); err != nil {
		return err
	}
	p.mu.Lock()
	there := make(map[muster.MachineID]bool, len(list))
	p.order = p.order[:0]
	for _, r := range list {
		if r.State != muster.RegistrationApproved {
			continue
		}
		u := p.machines[r.ID]
		if u == nil {
			u = &machineState{id: r.ID}
			p.machines[r.ID] = u
		}
		u.set(r)
		there[r.ID] = true
		p.order = append(p.order, r.ID)
	}
	for id := range p.machines {
		if !there[id] {
			delete(p.machines, id)
		}
	}
	slices.Sort(p.order)
	p.mu.Unlock()
	for _, u := range p.all(nil) {
		p.discover(ctx, u)
	}
	return nil
}

// all returns machines in the order of their names: those named, or every one.
func (p *Provider) all(ids []muster.MachineID) []*machineState {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(ids) == 0 {
		ids = p.order
	}
	out := make([]*machineState, 0, len(ids))
	for _, id := range ids {
		if u := p.machines[id]; u != nil {
			out = append(out, u)
		}
	}
	return out
}

func (p *Provider) unit(id muster.MachineID) (*machineState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u := p.machines[id]; u != nil {
		return u, nil
	}
	return nil, muster.Errorf(muster.ENotFound, "no bare machine %q is approved", id).Because(muster.ReasonNotApproved).WithHint("see 'muster machine list --registered'")
}

// Dial reaches a machine at its management address.
func (p *Provider) Dial(ctx context.Context, id muster.MachineID, port int) (net.Conn, error) {
	u, err := p.unit(id)
	if err != nil {
		return nil, err
	}
	a, ok := p.o.Leased(managementOf(u.registration()))
	if !ok || p.seen(u).State != provider.StateRunning {
		return nil, muster.Errorf(muster.EUnavailable, "machine %s is not up", id).Because(muster.ReasonNodeUnreachable).WithHint("see 'muster machine show %s'", id)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), strconv.Itoa(port)))
}

func managementOf(r muster.Registration) string {
	for _, n := range r.NICs {
		if n.Use == muster.UseManagement {
			return n.MAC
		}
	}
	return ""
}

// messagesOf are the interfaces that carry a cluster's messages.
func messagesOf(r muster.Registration) (macs []string) {
	for _, n := range r.NICs {
		if n.Use == muster.UseMessage {
			macs = append(macs, n.MAC)
		}
	}
	return macs
}

// className makes a name for machines that nobody named: those with the same name have
// the same processor, cores and memory.
func className(f muster.Facts) string {
	words := strings.FieldsFunc(strings.ToLower(f.Processor), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	words = slices.DeleteFunc(words, func(w string) bool {
		return slices.Contains([]string{"r", "tm", "cpu", "processor", "core", "amd", "intel", "with", "at"}, w) || strings.HasSuffix(w, "ghz")
	})
	name := strings.Join(words[:min(3, len(words))], "-")
	gib := (f.Memory + 1<<29) >> 30
	return strings.Trim(cmp.Or(name, "machine")+"-"+strconv.Itoa(f.Cores)+"c-"+strconv.FormatInt(max(gib, 1), 10)+"g", "-")
}
