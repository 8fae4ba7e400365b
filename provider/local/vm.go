package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local/network"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/qemu"
	"github.com/muster-hpc/muster/vm/supervisor"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/sys/unix"
)

// A boot may be a virtual machine: then the machine's control groups hold a supervisor, which is its
// first process as far as anybody outside is concerned, and a QEMU with the first ID of the
// machine's range. Fence, clean-up and adoption are those of namespaces: they go by groups, IDs and links.

// vmTime bounds the time until a machine's QEMU runs.
const vmTime = 2 * time.Minute

// vmGiveUp is how long a machine's first program tries what fails, also where it is emulated.
const vmGiveUp = 10 * time.Minute

// vmFollow is how long a supervisor may take to answer who finds it, on a busy host: nobody asks again.
const vmFollow = 30 * time.Second

// vmTasks is how many threads supervisor and QEMU may have beside one for each core.
const vmTasks = 128

// rootDisk is the serial number of the disk that holds the image.
const rootDisk = "muster-root"

// hypervisor is what this host's QEMU is, once it was asked.
type hypervisor struct {
	mu   sync.Mutex
	kind string
	kvm  bool
}

// ask takes some seconds the first time. Who gives up waiting does not make the answer another one.
func (h *hypervisor) ask(ctx context.Context) (kind string, kvm bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kind != "" {
		return h.kind, h.kvm, nil
	}
	ctx = context.WithoutCancel(ctx) // both have limits of their own
	if kind, err = qemu.Type(ctx); err != nil {
		return "", false, err
	}
	h.kind, h.kvm = kind, accel.KVMWorks(ctx)
	return h.kind, h.kvm, nil
}

// startVM starts the virtual machine of a boot.
func (p *Provider) startVM(ctx context.Context, m *machine, b *provider.Boot, rec *record, o muster.VMOptions) (*supervisor.Supervisor, error) {
	if p.cfg.Kernel == nil {
		return nil, muster.Errorf(muster.EInvalid, "this server starts no virtual machines").Because(muster.ReasonBadValue).WithHint("ask for slices")
	}
	if len(b.Shares) > 0 {
		return nil, muster.Errorf(muster.EInvalid, "a virtual machine cannot mount directories of the server's host").Because(muster.ReasonBadValue).
			WithHint("use volumes that are served over the network")
	}
	kind, kvm, err := p.hypervisor.ask(ctx)
	if err != nil {
		return nil, err
	}
	if !kvm && !o.Emulate {
		return nil, muster.Errorf(muster.EConflict, "this host has no KVM that works").Because(muster.ReasonBootFailed).WithHint("run `muster doctor --vm` on it, or ask for vm.emulate: on")
	}
	m.mu.Lock()
	incoming := m.incoming
	m.mu.Unlock()
	if incoming && len(m.devices) > 0 {
		return nil, muster.Errorf(muster.EConflict, "machine %s has devices of its host, and a virtual machine that was saved has none", m.id).Because(muster.ReasonBootFailed).WithHint("resume it on another machine")
	}
	function := o.NIC == muster.VMNICFunction
	if function {
		if err := p.checkFunction(m, b); err != nil {
			return nil, err
		}
	}
	part, err := p.host.partOf(&m.facts, b.Shape)
	if err != nil {
		return nil, err
	}
	note, err := p.planVM(m, part, o, kvm)
	if err != nil {
		return nil, err
	}
	defer p.kept(m)
	memory, err := p.vmMemory(part, &note.Plan)
	if err != nil {
		return nil, err
	}
	kernel, initramfs, err := p.cfg.Kernel(ctx, b.Image)
	if err != nil {
		return nil, err
	}
	image, err := os.Open(rec.Image)
	if err != nil {
		return nil, err
	}
	defer func() { _ = image.Close() }()
	size, err := image.Seek(0, 2)
	if err != nil || size == 0 {
		return nil, fmt.Errorf("the image %s is not a file: %w", rec.Image, err)
	}
	hw := qemu.Machine{Name: string(m.id), UUID: p.uuidOf(rec), Type: kind, KVM: kvm, Cores: len(note.Plan.CPUs), Memory: note.Plan.Memory, Plan: bare(note.Plan),
		Append: []string{"console=ttyS0", "quiet", "panic=-1", "muster.channel=ttyS1"},
		Disks:  []qemu.Disk{{Serial: rootDisk, ReadOnly: true}}}
	hw.Incoming = incoming
	if !kvm {
		hw.Append = append(hw.Append, "no_timer_check") // a translated machine may be late for it
	}
	hw.Append = append(hw.Append, b.Shape.BootArgs()...)
	lim := &limits{CPUs: part.cpus, Mems: p.host.mems, Memory: memory, Pids: vmTasks + len(part.cpus), PageSize: note.Plan.PageSize}
	if lim.PageSize > 0 {
		lim.Pages = note.Plan.Memory
	}
	if err := p.groups.create(string(m.id), lim, p.cfg.idBase(m.index)); err != nil {
		return nil, err
	}
	if function {
		if err := p.takeFunction(m, b, note); err != nil {
			return nil, err
		}
	}
	if err := p.takeDevices(ctx, m, b); err != nil {
		return nil, err
	}
	hw.Devices = deviceCards(&note.Plan)
	var task json.RawMessage
	if !hw.Incoming { // who was saved had its own
		if task, err = p.vmTask(m, b, note, size); err != nil {
			return nil, err
		}
	}
	defer clear(task)
	taps, err := p.plugVM(ctx, m, b, &hw, note)
	defer closeAll(taps)
	if err != nil {
		return nil, err
	}
	s, err := supervisor.Start(ctx, supervisor.Spec{
		Dir: p.vmDir(m.id), Machine: hw, Kernel: kernel, Initramfs: initramfs, Disks: []*os.File{image}, Taps: taps,
		ID: p.cfg.idBase(m.index), Devices: note.passed(), Locked: note.Plan.Memlock, Task: task, Command: p.cfg.VMCommand,
		Enter: func(pid int) error {
			if err := p.groups.enter(string(m.id), pid); err != nil {
				return err
			}
			if err := m.runs(rec, pid); err != nil {
				return err
			}
			return p.save(rec)
		},
	})
	if err != nil {
		return nil, err
	}
	if err := p.tune(ctx, s, &note.Plan); err != nil {
		p.cfg.Log.Warn("tuning the virtual machine failed", "machine", m.id, "error", err)
	}
	facts, err := p.readVM(ctx, s, note)
	if err != nil {
		s.Close() // whoever asked for the boot ends it
		return nil, fmt.Errorf("read back how the virtual machine is set up: %w", err)
	}
	m.mu.Lock()
	m.virtual = facts
	m.mu.Unlock()
	p.placeInterrupts(m, note)
	m.console.mark(p.cfg.Clock.Now(), "virtual machine: %s", vmText(facts))
	return s, nil
}

// bare is a plan without what explains it.
func bare(pl muster.VMPlan) *muster.VMPlan {
	pl.Settings, pl.Lacks = nil, nil
	return &pl
}

// plugVM makes a machine's cards, with as many pairs of queues each as are planned.
func (p *Provider) plugVM(ctx context.Context, m *machine, b *provider.Boot, hw *qemu.Machine, note *vmNote) (taps []*os.File, err error) {
	queues := max(1, note.Plan.NIC.Queues)
	mac := p.macOf(m.index, network.ManagementPort)
	f, err := p.rack.AddTap(ctx, m.index, network.Card{MAC: mac, Address: m.addr, Several: queues > 1})
	if err != nil {
		return nil, err
	}
	taps = append(taps, f)
	hw.NICs = append(hw.NICs, qemu.NIC{ID: string(network.ManagementPort), MAC: mac.String(), Queues: queues})
	more, err := p.rack.TapQueues(m.index, network.ManagementPort, queues-1)
	if err != nil {
		return taps, err
	}
	taps = append(taps, more...)
	if b.Message == nil {
		return taps, nil
	}
	n := &b.Message.Network
	if note.Function != nil {
		hw.NICs = append(hw.NICs, p.functionCard(m, note))
		return taps, p.setWay(ctx, m, n.Egress)
	}
	mac = p.macOf(m.index, network.MessagePort)
	f, err = p.rack.PlugTap(ctx, network.Plug{Machine: m.index, Bridge: n.Index, Switch: p.switchOf(m), Speed: n.Speed, MTU: messageMTU}, network.Card{MAC: mac, Address: b.Message.Address.Addr(), Several: queues > 1})
	if err != nil {
		return taps, err
	}
	taps = append(taps, f)
	hw.NICs = append(hw.NICs, qemu.NIC{ID: string(network.MessagePort), MAC: mac.String(), Queues: queues})
	if more, err = p.rack.TapQueues(m.index, network.MessagePort, queues-1); err != nil {
		return taps, err
	}
	taps = append(taps, more...)
	return taps, p.setWay(ctx, m, n.Egress)
}

// vmTask is what the machine's first program is told. It holds a token.
func (p *Provider) vmTask(m *machine, b *provider.Boot, n *vmNote, size int64) (json.RawMessage, error) {
	seed := p.seedOf(m, b)
	t := &wire.BootTask{
		Kind: wire.BootImage, Machine: m.id, Attempt: b.Attempt, Hostname: b.Hostname, Bootstrap: &seed,
		GiveUp: muster.Duration(vmGiveUp),
		Image:  &wire.BootFiles{ID: b.Image, Root: wire.BootFile{Size: size}, Disk: rootDisk},
		Links:  p.vmLinks(m, b, n.MTU),
	}
	return json.Marshal(t)
}

// vmLinks are the cards of a virtual machine, as it is to have them. The message card carries packets of mtu bytes; 0: of
// messageMTU.
func (p *Provider) vmLinks(m *machine, b *provider.Boot, mtu int) []wire.BootLink {
	list := []wire.BootLink{{MAC: p.macOf(m.index, network.ManagementPort).String(), Name: network.ManagementLink, Address: netip.PrefixFrom(m.addr, 32),
		Gateway: network.Gateway(), Closed: []netip.Prefix{network.Management()}, Default: b.Message != nil && b.Message.Network.Egress == muster.EgressNAT}}
	if b.Message != nil {
		list = append(list, wire.BootLink{MAC: p.macOf(m.index, network.MessagePort).String(), Name: network.MessageLink, Address: b.Message.Address, MTU: cmp.Or(mtu, messageMTU)})
	}
	return list
}

func (p *Provider) vmDir(id muster.MachineID) string { return filepath.Join(p.dir, string(id)+".vm") }

// macOf is the address of a machine's card: the same at each boot, and another one in each instance.
func (p *Provider) macOf(index int, port network.Port) net.HardwareAddr {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.cfg.Instance))
	n := h.Sum32()
	last := byte(index << 1)
	if port == network.MessagePort {
		last |= 1
	}
	return net.HardwareAddr{0x52, byte(n), byte(n >> 8), byte(n >> 16), byte(index >> 7), last}
}

// uuidOf is that of one boot.
func (p *Provider) uuidOf(r *record) string {
	s := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", p.cfg.Instance, r.Machine, r.Attempt))
	s[6], s[8] = s[6]&0x0f|0x80, s[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", s[:4], s[4:6], s[6:8], s[8:10], s[10:16])
}

// bootVM is the part of a boot that is another one for a virtual machine.
func (p *Provider) bootVM(ctx context.Context, m *machine, b *provider.Boot, rec *record, o muster.VMOptions) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, vmTime)
	defer cancel()
	s, err := p.startVM(ctx, m, b, rec, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	fd, err := unix.PidfdOpen(s.PID(), 0)
	if err != nil {
		return nil, err
	}
	return &process{pidfd: fd}, nil // who started it reaps it
}

// followVM takes what a virtual machine prints from now on, and what nobody has heard yet.
func (p *Provider) followVM(m *machine) {
	s, err := supervisor.Find(p.vmDir(m.id))
	if err != nil {
		p.cfg.Log.Warn("console unavailable", "machine", m.id, "error", err)
		return
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), vmFollow)
	defer cancel()
	p.readAgain(ctx, m, s)
	c, err := s.Console(ctx)
	conn, ok := c.(*net.UnixConn)
	if err != nil || !ok {
		p.cfg.Log.Warn("console unavailable", "machine", m.id, "error", err)
		return
	}
	if p.hangOn(m, conn) {
		go m.console.takeLines(conn)
	}
}

// readAgain reads back how a virtual machine is set up that an earlier server started.
func (p *Provider) readAgain(ctx context.Context, m *machine, s *supervisor.Supervisor) {
	m.mu.Lock()
	known := m.virtual != nil
	m.mu.Unlock()
	if known {
		return
	}
	n, err := p.loadVMNote(m.id)
	if err == nil && n != nil {
		var f *muster.VMFacts
		if f, err = p.readVM(ctx, s, n); err == nil {
			m.mu.Lock()
			m.virtual = f
			m.mu.Unlock()
			p.changed(m.id)
			p.placeInterrupts(m, n)
		}
	}
	if err != nil {
		p.cfg.Log.Warn("reading back a virtual machine failed", "machine", m.id, "error", err)
	}
}

// endVM removes what a virtual machine that was killed has left of its own: nothing, if it was none.
func (p *Provider) endVM(ctx context.Context, m *machine) error {
	there, err := p.hasVM(m.id)
	if err == nil && there {
		dir := p.vmDir(m.id)
		if err = supervisor.End(ctx, dir); err == nil {
			err = errors.Join(p.givePages(m.id), p.giveFunction(m.id), p.giveDevices(m.id))
		}
		if err == nil {
			err = os.RemoveAll(dir)
		}
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.vm, m.virtual = false, nil // what comes next says what it is
	m.mu.Unlock()
	return nil
}

// hasVM reports whether a machine is a virtual machine, or what is left of one: its supervisor's directory is made
// before the supervisor is started, and removed when that has ended.
func (p *Provider) hasVM(id muster.MachineID) (bool, error) {
	_, err := os.Lstat(p.vmDir(id))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
