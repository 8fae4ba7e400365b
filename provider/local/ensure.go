package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cpulist"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local/network"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/sys/unix"
)

// Ensure starts and stops machines, all of them at once.
func (p *Provider) Ensure(ctx context.Context, wants []provider.DesiredState) []error {
	errs := make([]error, len(wants))
	var wg sync.WaitGroup
	for i := range wants {
		wg.Go(func() { errs[i] = p.ensure(ctx, &wants[i]) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}

func (p *Provider) ensure(ctx context.Context, w *provider.DesiredState) error {
	m, err := p.machine(w.Machine)
	if err != nil {
		return err
	}
	m.op.Lock()
	defer m.op.Unlock()
	switch w.Power {
	case provider.PowerOff:
		return p.stop(ctx, m)
	case provider.PowerFreeze:
		return p.freeze(ctx, m)
	case provider.PowerThaw:
		return p.thaw(ctx, m)
	case provider.PowerBoot:
		if w.Boot == nil {
			return muster.Errorf(muster.EInvalid, "no boot order for %s", m.id)
		}
		m.mu.Lock()
		m.incoming = w.VM != nil && w.Incoming
		m.mu.Unlock()
		boot, done := m.abortable(ctx)
		err := p.boot(boot, m, w.Boot, w.VM)
		done()
		m.mu.Lock()
		m.fault = err
		m.mu.Unlock()
		return err
	}
	return muster.Errorf(muster.EInvalid, "unknown power %q", w.Power)
}

// boot brings a machine up unless it already runs this attempt.
func (p *Provider) boot(ctx context.Context, m *machine, b *provider.Boot, vm *muster.VMOptions) error {
	alive, err := p.groups.populated(string(m.id))
	if err != nil {
		return err
	}
	m.mu.Lock()
	same := m.rec != nil && m.rec.Attempt == b.Attempt
	m.mu.Unlock()
	if alive && same {
		return nil
	}
	// Whatever there is belongs to another attempt, or to a start that a crash
	// cut short.
	if err := p.stop(ctx, m); err != nil {
		return err
	}
	if err := p.awaitMemory(ctx); err != nil {
		return err
	}
	image, err := p.cfg.ImagePath(ctx, b.Image)
	if err != nil {
		return err
	}
	rec := &record{Machine: m.id, Index: m.index, Attempt: b.Attempt, Epoch: p.cfg.Epoch, Cluster: b.Cluster, Image: image, Since: p.cfg.Clock.Now()}
	if b.Message != nil {
		rec.Egress = b.Message.Network.Egress
	}
	if err := p.save(rec); err != nil {
		return err
	}
	m.mu.Lock()
	before := m.rec
	m.rec, m.ended, m.vm = rec, false, vm != nil
	m.mu.Unlock()
	if before == nil || before.Cluster != b.Cluster {
		if err := m.console.remove(); err != nil { // nobody reads what another printed
			return err
		}
	}
	m.console.mark(rec.Since, "boot %d as %s", b.Attempt, b.Hostname)
	proc, err := p.launch(ctx, m, b, rec, vm)
	if err != nil {
		m.console.mark(p.cfg.Clock.Now(), "it did not start: %s", printable([]byte(err.Error())))
		undo := p.stop(context.WithoutCancel(ctx), m)
		var known *muster.Error // says better what to do
		if errors.As(err, &known) {
			return known.Wrap(errors.Join(err, undo))
		}
		return muster.Errorf(muster.EUnavailable, "machine %s did not start: %v", m.id, err).Because(muster.ReasonBootFailed).
			WithHint("run `muster doctor` on the server").Wrap(errors.Join(err, undo))
	}
	if vm != nil {
		p.followVM(m)
	} else {
		p.listenConsole(m, proc.pid(), proc.pidfd)
	}
	w, err := watchPID(proc.pidfd, proc.child, func() { p.died(m, rec) })
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.watch = w
	m.mu.Unlock()
	p.changed(m.id)
	return nil
}

// launch starts the first process and sees it become the image's init.
func (p *Provider) launch(ctx context.Context, m *machine, b *provider.Boot, rec *record, vm *muster.VMOptions) (*process, error) {
	if vm != nil {
		return p.bootVM(ctx, m, b, rec, *vm)
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	part, err := p.host.partOf(&m.facts, b.Shape)
	if err != nil {
		return nil, err
	}
	proc, err := p.spawn(m, part)
	if err != nil {
		return nil, err
	}
	err = p.equip(ctx, m, b, rec, proc, part)
	if err != nil {
		proc.end()
		return nil, err
	}
	return proc, nil
}

// spawn makes a machine's control groups and starts its first process.
func (p *Provider) spawn(m *machine, part part) (*process, error) {
	base := p.cfg.idBase(m.index)
	lim := &limits{CPUs: part.cpus, Mems: p.host.mems, Memory: part.memory, Pids: p.tasks}
	if err := p.groups.create(string(m.id), lim, base); err != nil {
		return nil, err
	}
	return spawn(p.cfg.InitCommand, base, p.cfg.owner(m.index), p.boundsOf(m))
}

// boundsOf is what the kernel may keep for a machine.
func (p *Provider) boundsOf(m *machine) *bounds {
	return machineBounds(m.facts.Memory, p.tasks, p.cfg.Networks)
}

// equip gives a waiting first process its groups, links and mounts, then lets
// it go on.
func (p *Provider) equip(ctx context.Context, m *machine, b *provider.Boot, rec *record, proc *process, part part) error {
	if err := m.runs(rec, proc.pid()); err != nil {
		return err
	}
	if err := p.save(rec); err != nil {
		return err
	}
	var fds []int
	var jobs sync.WaitGroup
	errs := make([]error, 3)
	jobs.Go(func() { errs[0] = errors.Join(p.groups.enter(string(m.id), proc.pid()), proc.raise()) })
	jobs.Go(func() { errs[1] = p.connect(ctx, m, b, proc) })
	jobs.Go(func() { fds, errs[2] = p.mounts(ctx, rec.Image, b.Shares, proc) })
	jobs.Wait()
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	cfg, err := p.initConfig(m, b, part)
	if err != nil {
		return err
	}
	return proc.start(ctx, cfg, fds)
}

// connect gives the process its links.
func (p *Provider) connect(ctx context.Context, m *machine, b *provider.Boot, proc *process) error {
	ns, err := proc.namespace("net")
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	if err := p.rack.AddMachine(m.index, ns); err != nil {
		return err
	}
	if b.Message == nil {
		return nil
	}
	n := &b.Message.Network
	if err := p.rack.PlugMachine(network.Plug{Machine: m.index, Bridge: n.Index, Switch: p.switchOf(m), Speed: n.Speed, MTU: messageMTU}, ns); err != nil {
		return err
	}
	return p.setWay(ctx, m, n.Egress)
}

// setWay opens a machine's way out.
func (p *Provider) setWay(ctx context.Context, m *machine, e muster.Egress) error {
	err := p.rack.SetWay(ctx, m.addr, way(e))
	if errors.Is(err, network.ErrNoForwarding) {
		return muster.Errorf(muster.EConflict, "outgoing traffic by nat needs a host that forwards packets").Because(muster.ReasonEgressRefused).
			WithHint("run `sysctl -w net.ipv4.ip_forward=1` on the server, or ask for egress proxy").Wrap(err)
	}
	return err
}

// mounts opens the layers of the root, owned by the machine, and puts the
// shares where it finds them.
func (p *Provider) mounts(ctx context.Context, image string, shares []provider.BindMount, proc *process) (layers []int, err error) {
	user, err := proc.namespace("user")
	if err != nil {
		return nil, err
	}
	defer func() { _ = user.Close() }()
	own := func(fds *[]int, fd int, err error) error {
		if err != nil {
			return err
		}
		*fds = append(*fds, fd)
		return mapIDs(fd, user)
	}
	fd, err := cloneTree(p.seed, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID)
	if err := own(&layers, fd, err); err != nil {
		return layers, err
	}
	fd, err = p.lowers.mount(image)
	if err != nil {
		return layers, err
	}
	layers = append(layers, fd)
	if err = mapIDs(fd, user); errors.Is(err, unix.EINVAL) {
		_ = unix.Close(fd)
		if layers[1], err = p.unpacked(ctx, image, user); err != nil {
			layers = layers[:1]
		}
	}
	if err != nil {
		return layers, err
	}
	var placed []int
	defer func() {
		for _, fd := range placed {
			_ = unix.Close(fd)
		}
	}()
	for _, s := range shares {
		var attr uint64 = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
		if s.ReadOnly {
			attr |= unix.MOUNT_ATTR_RDONLY
		}
		fd, err := cloneTree(s.Path, attr)
		err = own(&placed, fd, err)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
			return layers, muster.Errorf(muster.EUnavailable, "the file system of volume %s cannot map owners", s.Target).Because(muster.ReasonVolumeFailed).
				WithHint("keep the state directory on ext4, xfs or btrfs").Wrap(err)
		}
		if err != nil {
			return layers, fmt.Errorf("share %s: %w", s.Target, err)
		}
	}
	return layers, proc.place(placed)
}

// unpacked opens an image that had to be unpacked, owned by the machine.
func (p *Provider) unpacked(ctx context.Context, image string, user *os.File) (int, error) {
	p.unpacking.Lock()
	defer p.unpacking.Unlock()
	dir, err := unpack(ctx, p.dir, image)
	if err != nil {
		return -1, err
	}
	fd, err := cloneTree(dir, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return -1, err
	}
	if err := mapIDs(fd, user); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// seedOf is what the machine's agent gets.
func (p *Provider) seedOf(m *machine, b *provider.Boot) wire.Bootstrap {
	seed := b.Bootstrap
	seed.Machine, seed.Attempt, seed.Trust = m.id, b.Attempt, muster.TrustLocal
	if seed.Started.IsZero() {
		seed.Started = p.cfg.Clock.Now()
	}
	return seed
}

func (p *Provider) initConfig(m *machine, b *provider.Boot, part part) (*initConfig, error) {
	seed := p.seedOf(m, b)
	body, err := json.Marshal(&seed)
	if err != nil {
		return nil, err
	}
	cfg := &initConfig{
		Hostname: b.Hostname, Layers: 2, RootSize: min(m.facts.Disk, part.memory/2), ShmSize: part.memory / 2, Inodes: 1 << 20,
		Bootstrap: body, Open: p.cfg.Open, CPUInfo: []byte(filterCPUInfo(p.host.cpuinfo, part.cpus)), Online: cpulist.Format(part.cpus) + "\n",
		Argv: []string{"/sbin/init", "systemd.unit=" + p.cfg.Unit, "systemd.show_status=0"},
		Env:  []string{"container=muster", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"},
	}
	if p.cfg.ImageMasks != nil {
		cfg.Masks = p.cfg.ImageMasks(b.Image)
	}
	for c := range p.groups.v1 {
		if !strings.Contains(c, "=") {
			cfg.V1 = append(cfg.V1, c)
		}
	}
	slices.Sort(cfg.V1)
	cfg.Links = []initLink{{Name: network.ManagementLink, Address: hostPrefix(m.addr), Gateway: network.Gateway(),
		Default: b.Message != nil && b.Message.Network.Egress == muster.EgressNAT}}
	if b.Message != nil {
		// Programs that take every interface for one of their network, such as Open MPI 4.1, also
		// connect nodes from one management address to another, by which no machine reaches another.
		cfg.Links = append(cfg.Links, initLink{Name: network.MessageLink, Address: b.Message.Address, Detour: network.Management(), DetourNot: network.Gateway()})
	}
	for _, s := range b.Shares {
		cfg.Shares = append(cfg.Shares, s.Target)
		cfg.Seeded = append(cfg.Seeded, s.Seed)
	}
	return cfg, nil
}

// messageMTU is large because no wire limits it: fewer, larger segments.
const messageMTU = 9000

func way(e muster.Egress) network.Way {
	switch e {
	case muster.EgressProxy:
		return network.WayProxy
	case muster.EgressNAT:
		return network.WayNAT
	}
	return network.WayNone
}

// stop kills a machine and removes everything of it but its record.
func (p *Provider) stop(ctx context.Context, m *machine) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	if err := p.groups.kill(ctx, string(m.id)); err != nil {
		return fmt.Errorf("kill machine %s: %w", m.id, err)
	}
	m.hangUp()
	m.mu.Lock()
	w := m.watch
	m.watch = nil
	m.mu.Unlock()
	if w != nil {
		// The end of the last process is told twice: here and to the watch.
		select {
		case <-w.done:
		case <-ctx.Done():
			w.stop()
		}
	}
	return errors.Join(
		p.endVM(ctx, m),
		p.rack.SetWay(ctx, m.addr, network.WayNone),
		p.rack.RemoveMachine(m.index),
		p.groups.remove(ctx, string(m.id)))
}

// died runs when the first process of a machine has ended.
func (p *Provider) died(m *machine, rec *record) {
	m.mu.Lock()
	if m.rec == rec {
		rec.PID, m.ended = 0, true
	}
	m.mu.Unlock()
	m.console.mark(p.cfg.Clock.Now(), "its first process ended")
	p.changed(m.id)
}

// open opens the process of the record while it lives, or returns -1.
func (r *record) open() int {
	if r == nil || r.PID <= 0 {
		return -1
	}
	fd, err := unix.PidfdOpen(r.PID, 0)
	if err != nil {
		return -1
	}
	// The descriptor is held, so the number cannot change hands any more.
	t, err := startTime(r.PID)
	if err != nil || t != r.Started || ended(fd) {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}
