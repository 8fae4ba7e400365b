package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local/network"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/device"
	"github.com/muster-hpc/muster/vm/function"
	vmhost "github.com/muster-hpc/muster/vm/host"
	"github.com/muster-hpc/muster/vm/hugepages"
)

// Provider is the local provider; see package provider for its methods.
type Provider struct {
	cfg     Config
	dir     string // of records
	seed    string // directory of the seed layer
	groups  *groups
	lowers  *lowers
	rack    *network.Rack
	host    *host
	tasks   int // of each machine, at most
	changes chan muster.MachineID

	hypervisor hypervisor
	hasQEMU    bool // when it was opened, with kernels to start there

	unpacking sync.Mutex // held while an image is unpacked
	// tamper lets tests spoil a machine that is about to be tried.
	tamper func(muster.MachineID, *trial)
	// tried lets tests hold up the server when a machine has said what it found.
	tried func()

	// pressure reports how short the host is of memory; tests pretend.
	pressure func() (pressure, error)
	// functions are the virtual functions of this host's cards, and card is the one whose functions virtual machines
	// may have; nil: none.
	functions function.Host
	card      *function.Card
	devices   device.Host // of this host
	reserve   int64       // bytes that the host keeps for itself
	watching  func()      // ends the look at it
	// ended is closed with the provider; following are those that wait for something of machines until then.
	ended     chan struct{}
	following sync.WaitGroup

	mu       sync.Mutex
	shortOf  string // why the host is short of memory; "" while it is not
	machines map[muster.MachineID]*machine
	nets     map[muster.ClusterID]provider.Network
	closed   bool
	// promised are free huge pages of the host that a virtual machine is about to take, with Pages left out of the key.
	promised map[muster.MachineID]map[hugepages.Want]int64
}

var _ provider.Provider = (*Provider)(nil)

// machine is one slice of the host.
type machine struct {
	id    muster.MachineID
	index int
	addr  netip.Addr
	facts muster.Facts
	// function is the virtual function that its virtual machine may have; nil: none.
	function *function.Function
	devices  []device.Device // that its virtual machine has whole
	gone     bool            // not in the configuration any more: only to be cleaned

	console *consoleLog // what it printed

	op sync.Mutex // held while something is done to it

	mu      sync.Mutex         // guards what follows
	rec     *record            // nil: nothing was ever started
	fault   error              // why the last Ensure failed
	watch   *watch             // of the running first process
	cancel  context.CancelFunc // of a boot or test under way
	printer *net.UnixConn      // from which what it prints comes
	ended   bool               // its first process has ended, or never was
	// incoming: the boot is that of a virtual machine which waits for its memory.
	incoming bool
	// virtual is how it is set up as a virtual machine, once that was read back.
	virtual *muster.VMFacts
	vm      bool // its first process is the supervisor of a virtual machine, in the host's namespaces
}

// New opens the provider of a state directory. Machines that run are found
// again; what a crash left half made is removed.
func New(ctx context.Context, cfg Config) (*Provider, error) {
	cfg.setDefaults()
	if cfg.Instance == "" {
		return nil, muster.Errorf(muster.EInvalid, "the local provider needs an instance name")
	}
	if err := checkDoors(cfg.Open); err != nil {
		return nil, err
	}
	if err := cfg.checkKernelMemory("/"); err != nil {
		return nil, err
	}
	h, err := readHost("/")
	if err != nil {
		return nil, err
	}
	p := &Provider{
		cfg: cfg, dir: filepath.Join(cfg.Dir, "machines"), host: h, lowers: newLowers(cfg.KeepImages),
		changes: make(chan muster.MachineID, 1024), machines: map[muster.MachineID]*machine{},
		nets:      map[muster.ClusterID]provider.Network{},
		functions: function.This(), devices: device.This(hostDisks{}), ended: make(chan struct{}),
		pressure: func() (pressure, error) { return readPressure("/") }, reserve: cfg.reserve(h.memory),
	}
	slots, err := layOut(h, &cfg)
	if err != nil {
		return nil, err
	}
	source := vmhost.Source{FS: os.DirFS("/")}
	var functions []function.Function
	if cfg.VMCard != nil { // before anything is read of the host's devices
		if functions, err = p.openVMCard(); err != nil {
			return nil, err
		}
	}
	virtual, built := source.Facts(), source.Topology()
	for i, f := range slots {
		id := machineID(i)
		addr, err := network.ManagementAddress(i)
		if err != nil {
			return nil, err
		}
		f.Management, f.VMHost, f.Topology = addr, virtual, new(h.within(built, f.CPUs))
		p.machines[id] = &machine{id: id, index: i, addr: addr, facts: f, console: p.consoleOf(id)}
	}
	if len(functions) > 0 {
		p.shareFunctions(functions, source.Read().Devices)
	}
	if err := p.openVMDevices(ctx, source); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(accel.Program); err == nil {
		p.hasQEMU = cfg.Kernel != nil
	}
	raiseHostLimits("/", len(slots), cfg.Log)
	p.tasks = tasksEach("/", len(slots))
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	if p.groups, err = hostGroups(ctx, cfg.name()); err != nil {
		return nil, err
	}
	if p.seed, err = makeSeedLayer(p.dir, cfg.AgentBinary); err != nil {
		return nil, fmt.Errorf("make the seed layer: %w", err)
	}
	if p.rack, err = network.Open(ctx, cfg.name()); err != nil {
		return nil, err
	}
	if err := p.rack.SetSwitches(cfg.Switches); err != nil {
		_ = p.Close()
		return nil, err
	}
	if err := p.recover(ctx); err != nil {
		_ = p.Close()
		return nil, err
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	var looking sync.WaitGroup
	looking.Go(func() { p.watchPressure(watch) })
	p.watching = func() { stop(); looking.Wait() }
	return p, nil
}

func (p *Provider) consoleOf(id muster.MachineID) *consoleLog {
	return &consoleLog{path: filepath.Join(p.dir, string(id)+".console")}
}

// machineID names the machine with this index, from 0.
func machineID(index int) muster.MachineID {
	return muster.MachineID(fmt.Sprintf("local-%02d", index+1))
}

// Name is "local".
func (p *Provider) Name() string { return "local" }

// Capabilities are those of parts of this host: its kernel, its directories, and its
// copy of an image, which no machine holds in its own memory. That kernel mounts no
// file server's export for them.
func (p *Provider) Capabilities() muster.Capabilities {
	c := muster.Capabilities{
		SharesHost: true, Freezes: true, Fabric: p.Name(), Trust: muster.TrustLocal, BootsAtOnce: p.cfg.BootsAtOnce,
		Volumes:    []muster.VolumeDriver{muster.DriverHostPath, muster.DriverManagedNFS},
		LargestUID: idRange - 1, LinkRates: true,
	}
	if p.hasQEMU {
		c.VM = &muster.Capabilities{
			OwnKernel: true, Saves: true, SharesHost: true, Fabric: c.Fabric, Trust: c.Trust, BootsAtOnce: c.BootsAtOnce,
			Volumes: []muster.VolumeDriver{muster.DriverManagedNFS},
		}
	}
	return c
}

// Rack is the network namespace in which the server listens for agents.
func (p *Provider) Rack() *network.Rack { return p.rack }

// Changes delivers the IDs of machines that started or died.
func (p *Provider) Changes() <-chan muster.MachineID { return p.changes }

func (p *Provider) changed(id muster.MachineID) {
	select {
	case p.changes <- id:
	default: // whoever does not read looks for himself
	}
}

// Discover lists the machines.
func (p *Provider) Discover(context.Context) ([]muster.Machine, error) {
	out := make([]muster.Machine, 0, len(p.machines))
	now := p.cfg.Clock.Now()
	for _, m := range p.all(nil) {
		if m.gone {
			continue
		}
		out = append(out, muster.Machine{ID: m.id, Provider: p.Name(), Phase: muster.MachineNew, Facts: m.facts,
			PhaseSince: now, LastSeen: now})
	}
	return out, nil
}

// switchOf is the switch that a machine is plugged into; "": the one that joins all.
func (p *Provider) switchOf(m *machine) string {
	for _, name := range []string{m.facts.Chassis, m.facts.Leaf} {
		if slices.ContainsFunc(p.cfg.Switches, func(s network.Switch) bool { return s.Name == name }) {
			return name
		}
	}
	return ""
}

// Dial opens a connection to a port of a machine's management address.
func (p *Provider) Dial(ctx context.Context, id muster.MachineID, port int) (net.Conn, error) {
	m, err := p.machine(id)
	if err != nil {
		return nil, err
	}
	if port < 1 || port > 65535 {
		return nil, muster.Errorf(muster.EInvalid, "no port %d", port)
	}
	return p.rack.Dial(ctx, netip.AddrPortFrom(m.addr, uint16(port)))
}

// Management is the address of a machine on the management network; false: there is no such machine.
func (p *Provider) Management(id muster.MachineID) (netip.Addr, bool) {
	m, err := p.machine(id)
	if err != nil {
		return netip.Addr{}, false
	}
	return m.addr, true
}

func (p *Provider) machine(id muster.MachineID) (*machine, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.machines[id]
	if m == nil {
		return nil, muster.Errorf(muster.ENotFound, "no machine %s", id).Because(muster.ReasonNoSuchMachine)
	}
	return m, nil
}

// ClusterAt names the cluster whose machine has a management address; "" for none.
func (p *Provider) ClusterAt(a netip.Addr) muster.ClusterID {
	for _, m := range p.all(nil) {
		if m.addr != a {
			continue
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.rec != nil && !m.rec.Trial {
			return m.rec.Cluster
		}
		return ""
	}
	return ""
}

// Close lets go of everything that must not outlive the server. Machines go
// on running; without any, nothing of the instance is left on the host.
func (p *Provider) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.mu.Unlock()
	close(p.ended)
	p.following.Wait()
	if p.watching != nil {
		p.watching()
	}
	for _, m := range p.all(nil) {
		m.hangUp()
		m.mu.Lock()
		if m.watch != nil {
			m.watch.stop()
			m.watch = nil
		}
		m.mu.Unlock()
	}
	p.lowers.close()
	idle, err := p.idle()
	err = errors.Join(err, p.rack.Close(), p.groups.close(context.Background()))
	if idle && err == nil {
		err = network.Delete(p.cfg.name())
	}
	return err
}

// idle reports whether the instance has neither machines nor networks.
func (p *Provider) idle() (bool, error) {
	ids, err := p.groups.list()
	if err != nil {
		return false, err
	}
	nets, err := p.rack.Bridges()
	if err != nil {
		return false, err
	}
	links, err := p.rack.Machines()
	return len(ids) == 0 && len(nets) == 0 && len(links) == 0, err
}
