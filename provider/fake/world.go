package fake

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/client"
	"github.com/muster-hpc/muster/provider"
)

// Options of a World. The zero Options are no machines.
type Options struct {
	Machines int
	Classes  int // machines are spread over so many classes; 0: 1
	PerRack  int // machines in a rack; 0: 32
	Cores    int // of the first class; each next one has twice as many; 0: 4
	NICs     int // for messages, of each machine; 0: 1
	// VM: its machines can be booted as virtual machines, which can be saved.
	VM bool
	// Hibernate: its machines can write their memory to their disks.
	Hibernate bool
	// BootMin and BootMax bound the time from power on until the agent starts.
	BootMin, BootMax time.Duration
	// BootTime draws the time of one boot; nil: evenly between the two above.
	BootTime                       func(r *rand.Rand) time.Duration
	CleanTime, FenceTime, TestTime time.Duration
	Rates                          Rates
	// SlurmNotice and SlurmDown are how long the pretended scheduler takes to
	// mark a silent node with a star, and as down. 0: 12 s and a minute.
	SlurmNotice, SlurmDown time.Duration
	// Agent runs in each machine that has booted, until its context ends. Nil:
	// an agent that speaks the real protocol and pretends the rest.
	Agent func(ctx context.Context, m *Machine, b provider.Boot)
	// Link connects the pretended agents; nil: by the protocol of real ones, over
	// real connections.
	Link func(m *Machine, b provider.Boot) Link
	// Goodbye is told when a machine with such an Agent goes down in order.
	Goodbye func(m *Machine, attempt int64, how string)
	// Speeds let pretended agents pretend to measure; nil: they have nothing to
	// measure with.
	Speeds *Speeds
	Seed   uint64
	Clock  muster.Clock
	Log    *slog.Logger
}

// Rates are how often things go wrong, from 0 (never) to 1 (always).
type Rates struct {
	Refuse float64 // starting a machine fails at once
	Hang   float64 // a boot never ends
	Die    float64 // a boot ends in the machine going off
	Fail   float64 // the node's own checks fail
	Clean  float64 // a cleaning fails
	Test   float64 // a test finds something
	// Crash and Stall are how often a running machine goes off, or hangs, in an
	// hour.
	Crash, Stall float64
}

// World is hardware that outlives servers.
type World struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	sched  *schedulers
	// hosts are lists that agents got: a real node reads one on its own processor,
	// but thousands of pretended nodes share one processor.
	hosts client.Hosts

	mu       sync.Mutex
	rand     *rand.Rand
	machines []*Machine
	nodes    map[nodeName]*Machine
	byID     map[muster.MachineID]*Machine
	networks map[muster.ClusterID]provider.Network
	watchers map[*Provider]bool

	kernel  string        // of the machines' hosts
	lives   int64         // of states that were saved
	resumed map[int64]int // how often machines went on from each

	loose     *looseLink // nil: none is
	slow      time.Duration
	failCalls float64
}

// Machine is one fake machine.
type Machine struct {
	w     *World
	id    muster.MachineID
	index int
	facts muster.Facts

	life // guarded by the world's mutex

	// Guarded by the world's mutex.
	absent  bool // does not answer
	dark    bool // has no power
	state   provider.State
	attempt int64
	since   time.Time
	err     error
	stop    context.CancelFunc // of what runs
	dirty   bool               // ran for somebody since it was last cleaned
	next    Fault              // what happens to its next boot
	doom    Fault              // and to each boot after it
	boots   int
	cleans  int
	weak    float64 // the share of its speed that it lacks
	written *written
	awake   string // why it cannot hibernate
}

// Fault is something that goes wrong once.
type Fault string

// Faults of the next boot.
const (
	FaultNone   Fault = ""
	FaultRefuse Fault = "refuse"
	FaultHang   Fault = "hang"
	FaultDie    Fault = "die"
	FaultFail   Fault = "fail"
)

// New makes the hardware, all of it off.
func New(o Options) *World {
	if o.Clock == nil {
		o.Clock = muster.SystemClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Classes, o.PerRack, o.Cores = max(o.Classes, 1), orElse(o.PerRack, 32), orElse(o.Cores, 4)
	w := &World{
		o: o, rand: rand.New(rand.NewPCG(o.Seed, 1)), sched: newSchedulers(&o),
		nodes:    map[nodeName]*Machine{},
		resumed:  map[int64]int{},
		byID:     make(map[muster.MachineID]*Machine, o.Machines),
		networks: map[muster.ClusterID]provider.Network{}, watchers: map[*Provider]bool{},
	}
	w.hosts.Most = 16 // a few are in use at a time
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for i := range o.Machines {
		class := i % o.Classes
		cores := o.Cores << class
		m := &Machine{
			w: w, index: i, id: muster.MachineID(fmt.Sprintf("fake-%04d", i+1)), state: provider.StateOff, since: o.Clock.Now(),
			facts: muster.Facts{
				Architecture: "amd64", Processor: fmt.Sprintf("Fake %d", class+1), CPULevel: 3, Sockets: 1,
				Cores: cores, Threads: cores, Memory: int64(cores) << 30, Disk: 100 << 30,
				NICs:  nics(i, max(o.NICs, 1)),
				Class: fmt.Sprintf("fake-%dc", cores), Rack: fmt.Sprintf("r%02d", i/o.PerRack+1),
				// Each speaks from its own loopback address, so that the server
				// can tell where a join comes from.
				Management: netip.AddrFrom4([4]byte{127, 64 + byte(i>>16), byte(i >> 8), byte(i)}),
			},
		}
		if o.Hibernate {
			m.facts.Disks = []muster.Disk{{Name: "sda", Serial: fmt.Sprintf("FAKE%d", i+1), Size: 100 << 30}}
		}
		if o.VM {
			m.facts.VMHost = &muster.VMHost{KVM: true}
		}
		w.machines = append(w.machines, m)
		w.byID[m.id] = m
	}
	return w
}

func orElse(v, d int) int {
	if v == 0 {
		return d
	}
	return v
}

// nics are the interfaces for messages of a machine of a number.
func nics(i, n int) (list []muster.NIC) {
	for k := range n {
		mac := fmt.Sprintf("02:fa:%02x:%02x:%02x:%02x", 0xce+k, byte(i>>16), byte(i>>8), byte(i))
		list = append(list, muster.NIC{Name: provider.MessageLink(k), MAC: mac, Kind: "ethernet", Speed: 10e9, Use: muster.UseMessage})
	}
	return list
}

// Close ends everything that runs in the world.
func (w *World) Close() {
	w.cancel()
	w.mu.Lock()
	for _, m := range w.machines {
		m.halt()
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// Break makes the machine's next boot fail.
func (w *World) Break(id muster.MachineID, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id].next = f
}

// Doom makes every boot of the machine go wrong; FaultNone ends that.
func (w *World) Doom(id muster.MachineID, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id].doom = f
}

// Kill powers the machine off by itself, as a crash or a reboot from inside
// does.
func (w *World) Kill(id muster.MachineID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.byID[id]
	if m.state == provider.StateRunning {
		m.halt()
		w.tell(id)
	}
}

// Hide makes the machine not answer, or answer again.
func (w *World) Hide(id muster.MachineID, hidden bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id].absent = hidden
}

// Start starts a machine although nobody asked, as one that a lost server
// left behind.
func (w *World) Start(id muster.MachineID, attempt int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.byID[id]
	m.halt()
	m.state, m.attempt, m.dirty, m.since, m.up = provider.StateRunning, attempt, true, w.o.Clock.Now(), true
	w.tell(id)
}

// Running lists the machines that are not off, with their attempts.
func (w *World) Running() map[muster.MachineID]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[muster.MachineID]int64{}
	for _, m := range w.machines {
		if m.state != provider.StateOff {
			out[m.id] = m.attempt
		}
	}
	return out
}

// Dirty lists the machines that ran for somebody and were not cleaned since.
func (w *World) Dirty() []muster.MachineID {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []muster.MachineID
	for _, m := range w.machines {
		if m.dirty {
			out = append(out, m.id)
		}
	}
	return out
}

// Boots counts how often the machine was started.
func (w *World) Boots(id muster.MachineID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byID[id].boots
}

// halt switches the machine off; the world's mutex is held.
func (m *Machine) halt() {
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
	if m.state == provider.StateRunning {
		m.print("off")
		m.w.sched.silent(m.id)
	}
	m.state, m.attempt, m.since = provider.StateOff, 0, m.w.o.Clock.Now()
	m.up, m.still, m.partial, m.loaded, m.memory = false, false, false, false, memory{}
	for _, c := range m.shells {
		_ = c.Close()
	}
	m.shells = nil
	m.turn(TroubleNone, "")
}

// ID of the machine.
func (m *Machine) ID() muster.MachineID { return m.id }

// draws is a source of chance for one thing about the machine, the n-th time
// it happens: the same whatever else goes on at the site.
func (m *Machine) draws(about, n int) *rand.Rand {
	return rand.New(rand.NewPCG(m.w.o.Seed, uint64(m.index)<<40|uint64(about)<<32|uint64(uint32(n))))
}

// chance reports whether something of the given rate happens the n-th time.
func (m *Machine) chance(about, n int, rate float64) bool {
	return rate > 0 && m.draws(about, n).Float64() < rate
}

// tell informs every open provider that a machine changed; the world's mutex is
// held. A slow reader misses it, which the contract allows.
func (w *World) tell(id muster.MachineID) {
	for p := range w.watchers {
		select {
		case p.changes <- id:
		default:
		}
	}
}
