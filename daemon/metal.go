package daemon

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/internal/connlimit"
	"github.com/muster-hpc/muster/internal/wildcard"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/metal/bootapi"
	"github.com/muster-hpc/muster/metal/bootqueue"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/drivers"
	"github.com/muster-hpc/muster/metal/switches/ports"
	"github.com/muster-hpc/muster/provider/local/network"
	"github.com/muster-hpc/muster/store"
)

// Metal says how bare machines are reached. An empty Interface: there are none.
type Metal struct {
	// Hibernate: machines may write their memory to disks of their own when their cluster is paused.
	Hibernate bool
	// Interface is that of the management network. Its first IPv4 address is the
	// server's.
	Interface string
	// Ranges are addresses for machines of the site, Discovery those for unknown ones.
	// None: three quarters and one quarter of the lower half of the network.
	Ranges, Discovery []dhcp.Range
	// Proxy: another server lends the addresses.
	Proxy bool
	// Ignore leaves unknown machines without any answer.
	Ignore bool
	// MTU is what the network carries, if machines are to be told; 0: they have what is usual.
	MTU int
	// Least is the trust below which machines are given no seeds. "": network.
	Least muster.Trust
	// VLANs are the first and the last network that Muster may give to clusters; zeros:
	// 100 and 1999.
	VLANs [2]int
	// SecretImages serves images over TLS alone. They hold no secrets of Muster's, but
	// perhaps of the site's.
	SecretImages bool
	// Args are further arguments of the kernels of machines: where their console is.
	Args []string
	// Limits of every rack; nil: the usual ones.
	Limits *bootqueue.Limits
	// Racks are those with limits of their own: the first whose name matches counts.
	Racks []RackLimits
}

// RackLimits are how many machines of some racks start.
type RackLimits struct {
	Name   string // of the racks, a pattern with * and ?
	Limits bootqueue.Limits
}

// limits are those of a rack.
func (c Metal) limits(rack string) bootqueue.Limits {
	for _, r := range c.Racks {
		if wildcard.Match(r.Name, rack) {
			return r.Limits
		}
	}
	if c.Limits != nil {
		return *c.Limits
	}
	return bootqueue.DefaultLimits()
}

// BootPort is where machines that boot find the server, over TLS.
const BootPort = 7701

// metalParts are what serves bare machines.
type metalParts struct {
	provider *metal.Provider
	service  atomic.Pointer[netboot.Service] // made last; nil until then
	power    *power.Control
	wiring   *ports.Wiring
	desk     *bootapi.Server
	address  netip.Addr
	// facts and discovered machines said something; kept in order, beside who asks.
	words chan func(context.Context)
}

// openMetal makes what serves bare machines, and opens their provider.
func (s *Server) openMetal(ctx context.Context) error {
	c := s.cfg.Metal
	if c.Interface == "" {
		return nil
	}
	prefix, mtu, err := s.awaitAddress(ctx, c.Interface)
	if err != nil {
		return err
	}
	if c.MTU > mtu {
		return muster.Errorf(muster.EInvalid, "machines are to send packets of %d bytes, and %s takes %d", c.MTU, c.Interface, mtu).Because(muster.ReasonInterfaceUnfit).
			WithHint("`ip link set %s mtu %d`, or a smaller --metal-mtu", c.Interface, c.MTU)
	}
	if err := os.MkdirAll(s.state.path("metal"), 0o700); err != nil {
		return err
	}
	leases, err := dhcp.OpenLeaseFile(s.state.path("metal", "leases"))
	if err != nil {
		return err
	}
	s.closes(leases.Close)
	m := &metalParts{address: prefix.Addr(), words: make(chan func(context.Context), 4096)}
	m.wiring = ports.New(ports.Config{Log: s.log, NICs: func(id muster.MachineID) []muster.RegisteredNIC {
		if m.provider == nil {
			return nil
		}
		return m.provider.NICs(id)
	}})
	m.power = power.NewControl(power.Config{
		Drivers: drivers.All(), Log: s.log, AtOnce: controllerPlaces(s.files),
		Deps: power.Deps{
			Clock: s.cfg.Clock, Agent: s.agents, SwitchPort: m.wiring, Liveness: &s.contacts,
			ManualFence: &control.ManualFencing{Store: s.db, Clock: s.cfg.Clock, Contacts: &s.contacts},
		},
	})
	s.closes(m.power.Close)
	lan := netboot.Network{Prefix: prefix.Masked(), Ranges: c.Ranges, Discovery: c.Discovery, Lease: time.Hour, MTU: c.MTU}
	if len(lan.Ranges) == 0 && len(lan.Discovery) == 0 {
		lan.Ranges, lan.Discovery = halves(prefix)
	}
	o := metal.Options{
		Dir: s.state.path("metal"), Registry: registry{s.db}, Power: m.power, Images: metalImages{s.catalog}, Switches: m.wiring,
		Kernels: s.kernels, Interface: c.Interface, Address: prefix, Hibernate: c.Hibernate, CA: s.authority.Fingerprint(), Args: c.Args, VLANs: c.VLANs,
		URL:    "https://" + netip.AddrPortFrom(prefix.Addr(), BootPort).String(),
		Leased: m.leased, Least: c.Least, Discovery: !c.Ignore, Clock: s.cfg.Clock, Log: s.log,
		Alive:        s.agents.Heard,
		OnFacts:      func(id muster.MachineID, f muster.Facts, trust muster.Trust) { s.told(m, id, f, trust) },
		OnDiscovered: func(ctx context.Context, g muster.DiscoveredMachine) error { return s.control.RecordDiscovered(ctx, g) },
		BootLog:      func(mac string) []netboot.Event { return m.story(mac).Events },
	}
	mode := dhcp.Proxy // whose addresses are another's to give, and not known
	if !c.Proxy {
		mode = dhcp.Serve
		for _, r := range slices.Concat(lan.Ranges, lan.Discovery) {
			o.Closed = append(o.Closed, r.Prefixes()...)
		}
	}
	if !c.SecretImages {
		o.Plain = "http://" + netip.AddrPortFrom(prefix.Addr(), netboot.HTTPPort).String()
	}
	o.Limits = c.limits
	if m.provider, err = metal.New(ctx, o); err != nil {
		return err
	}
	s.closes(m.provider.Close)
	s.contacts.AddHeard(m.provider.Heard)
	s.contacts.AddAnswered(m.provider.Boots().Heard)
	if m.desk, err = bootapi.New(bootapi.Config{Registry: m.provider.BootRegistry(), Clock: s.cfg.Clock, Log: s.log, Shown: func(id muster.MachineID, key []byte) {
		m.say(func(ctx context.Context) error { return s.control.RecordObservedEK(ctx, id, key) }, s)
	}}); err != nil {
		return err
	}
	service, err := netboot.Open(netboot.Config{
		Interface: c.Interface, Address: prefix.Addr(), Mode: mode, Networks: []netboot.Network{lan}, Advertise: true,
		Prefix: netip.MustParsePrefix("fd6d:7573:7465:7200::/64"), Directory: m.provider.Directory(), Leases: leases, Clock: s.cfg.Clock,
	})
	if err != nil {
		return err
	}
	m.service.Store(service)
	s.metal = m
	s.providers = append(s.providers, m.provider)
	s.endpoints[m.provider.Name()] = &endpoint{addr: prefix.Addr(), port: network.AgentPort, listen: func(ctx context.Context) (net.Listener, error) {
		return listenOn(ctx, netip.AddrPortFrom(prefix.Addr(), network.AgentPort))
	}, proxy: m.proxyOn(netip.AddrPortFrom(prefix.Addr(), network.ProxyPort)), cluster: m.clusterAt, listenAt: func(ctx context.Context, port uint16) (net.Listener, error) {
		return listenOn(ctx, netip.AddrPortFrom(prefix.Addr(), port))
	}}
	return nil
}

// say records a word of a machine beside who heard it. What comes when too much
// is waiting already is lost: the machine says it again at its next boot.
func (m *metalParts) say(f func(context.Context) error, s *Server) {
	select {
	case m.words <- func(ctx context.Context) {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("recording hardware inventory failed", "error", err)
		}
	}:
	default:
		s.log.Warn("hardware inventory dropped: queue full")
	}
}

// told records what a believed machine says of its hardware: what it lost since
// is a finding.
func (s *Server) told(m *metalParts, id muster.MachineID, f muster.Facts, trust muster.Trust) {
	at := s.cfg.Clock.Now()
	m.say(func(ctx context.Context) error { return s.control.RecordFacts(ctx, id, f, trust, at) }, s)
}

// hear writes down what machines said, until ctx ends.
func (m *metalParts) hear(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-m.words:
			f(ctx)
		}
	}
}

// serveMetal runs what serves bare machines, while this server acts.
func (s *Server) serveMetal(ctx context.Context, g *errgroup.Group) error {
	m := s.metal
	if m == nil {
		return nil
	}
	ln, err := listenOn(ctx, netip.AddrPortFrom(m.address, BootPort))
	if err != nil {
		return err
	}
	srv := s.bootServer(m)
	serve(ctx, g, srv, func() error { return serveBoots(srv, ln) })
	g.Go(func() error { m.hear(ctx); return nil })
	context.AfterFunc(s.succession.lost, m.provider.Halt)
	service := m.service.Load()
	g.Go(func() error {
		return s.whileActing(ctx, func(ctx context.Context) error {
			return service.Run(ctx, func() {
				s.log.Info("boot service started", "interface", s.cfg.Metal.Interface, "address", m.address, "boot_server", ln.Addr())
			})
		})
	})
	return nil
}

// leased is the address that a MAC has now.
func (m *metalParts) leased(mac string) (netip.Addr, bool) {
	service := m.service.Load()
	a, err := dhcp.ParseMAC(mac)
	if service == nil || err != nil {
		return netip.Addr{}, false
	}
	return service.AddressOf(a)
}

// story is what the boot service did for a MAC.
func (m *metalParts) story(mac string) netboot.Seen {
	service := m.service.Load()
	a, err := dhcp.ParseMAC(mac)
	if service == nil || err != nil {
		return netboot.Seen{}
	}
	seen, _ := service.Machine(a)
	return seen
}

// registry is the store as the provider of bare machines knows it.
type registry struct{ db *store.DB }

func (r registry) Registrations(ctx context.Context) (list []muster.Registration, err error) {
	err = r.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err = tx.Registrations(store.RegistrationFilter{})
		return err
	})
	return list, err
}

func (r registry) Password(ctx context.Context, id muster.MachineID) (b []byte, err error) {
	err = r.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		b, err = tx.PowerSecret(id)
		return err
	})
	if muster.CodeOf(err) == muster.ENotFound {
		return nil, nil
	}
	return b, err
}

func (r registry) PowerKey(ctx context.Context, id muster.MachineID) (b []byte, err error) {
	err = r.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		b, err = tx.PowerKey(id)
		return err
	})
	if muster.CodeOf(err) == muster.ENotFound {
		return nil, nil
	}
	return b, err
}

// metalImages gives bare machines their images.
type metalImages struct{ c catalog }

func (i metalImages) Boot(ctx context.Context, id muster.ImageID) (*muster.Image, string, error) {
	m, f, err := i.c.OpenForBoot(ctx, id)
	if err != nil {
		return nil, "", err
	}
	return m, i.c.Path(id), f.Close()
}

// Discovery is the newest of the images whose kernel has drivers for most machines: not one
// for virtual machines alone, when there is another.
func (i metalImages) Discovery(context.Context) (muster.ImageID, error) {
	list, err := i.bootable()
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", muster.Errorf(muster.ENotFound, "no image has a kernel: bare machines cannot be started").Because(muster.ReasonNoSuchImage).WithHint("build one: muster image build hpc")
	}
	most := 0
	for _, m := range list {
		most = max(most, len(m.Modaliases))
	}
	list = slices.DeleteFunc(list, func(m *muster.Image) bool { return len(m.Modaliases) < most/2 })
	return slices.MaxFunc(list, func(a, b *muster.Image) int { return a.Created.Compare(b.Created) }).ID, nil
}

// Bootable lists the images with a kernel.
func (i metalImages) Bootable(context.Context) ([]muster.ImageID, error) {
	list, err := i.bootable()
	var ids []muster.ImageID
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return ids, err
}

func (i metalImages) bootable() ([]*muster.Image, error) {
	list, err := i.c.Store.List()
	return slices.DeleteFunc(list, func(m *muster.Image) bool { return m.Kernel == "" }), err
}

const (
	// addressEvery is how often the address of the boot network is looked for.
	addressEvery = time.Second
	// addressTold is how often the log says that there is none yet.
	addressTold = 30 * time.Second
)

// awaitAddress waits for the boot network: after a power cut this host may be up before
// whoever gives it its addresses. Nothing else of the server could go on without: machines
// that it knows boot from there.
func (s *Server) awaitAddress(ctx context.Context, name string) (netip.Prefix, int, error) {
	for told := (time.Time{}); ; {
		p, mtu, err := addressOf(name)
		if err == nil {
			if !told.IsZero() {
				s.log.Info("boot network ready", "interface", name, "address", p)
			}
			return p, mtu, nil
		}
		if time.Since(told) >= addressTold {
			told = time.Now()
			s.log.Warn("waiting for boot network", "interface", name, "error", err)
		}
		select {
		case <-ctx.Done():
			return p, mtu, err
		case <-time.After(addressEvery):
		}
	}
}

// addressOf is the first IPv4 address of an interface, and the largest packet that it takes.
func addressOf(name string) (netip.Prefix, int, error) {
	nic, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Prefix{}, 0, muster.Errorf(muster.EInvalid, "there is no interface %q for bare machines", name).Because(muster.ReasonInterfaceUnfit).WithHint("name one of this host's with --metal-interface; `ip link` lists them")
	}
	list, err := nic.Addrs()
	if err != nil {
		return netip.Prefix{}, 0, err
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			return p, nic.MTU, nil
		}
	}
	return netip.Prefix{}, 0, muster.Errorf(muster.EInvalid, "the interface %s has no IPv4 address", name).Because(muster.ReasonInterfaceUnfit).WithHint("give it one, such as `ip address add 10.77.0.1/16 dev %s`", name)
}

// halves are addresses for known and for unknown machines: three quarters and one quarter
// of the lower half of a network, but for its beginning, which routers like to have, and
// the server's own.
func halves(p netip.Prefix) (known, guests []dhcp.Range) {
	base := p.Masked().Addr().As4()
	first := uint32(base[0])<<24 | uint32(base[1])<<16 | uint32(base[2])<<8 | uint32(base[3])
	at := func(n uint32) netip.Addr {
		n += first
		return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	half := uint32(1) << (31 - p.Bits())
	begin := min(16, half/4)
	split := begin + (half-begin)*3/4
	cut := func(a, b uint32) []dhcp.Range {
		own := p.Addr()
		r := dhcp.Range{First: at(a), Last: at(b)}
		switch {
		case !r.Contains(own):
			return []dhcp.Range{r}
		case own == r.First:
			return []dhcp.Range{{First: own.Next(), Last: r.Last}}
		case own == r.Last:
			return []dhcp.Range{{First: r.First, Last: own.Prev()}}
		}
		return []dhcp.Range{{First: r.First, Last: own.Prev()}, {First: own.Next(), Last: r.Last}}
	}
	return cut(begin, split-1), cut(split, half-1)
}

func listenOn(ctx context.Context, a netip.AddrPort) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.String())
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "cannot listen on %s, where bare machines find this server", a).Because(muster.ReasonAddressInUse).
			WithHint("see what listens there: ss -ltnp sport = :%d", a.Port()).Wrap(err)
	}
	return ln, nil
}

// proxyOn serves outgoing traffic of bare machines on an address, to those whose cluster
// asked for it.
func (m *metalParts) proxyOn(a netip.AddrPort) func(context.Context, *errgroup.Group, *slog.Logger, int) error {
	return func(ctx context.Context, g *errgroup.Group, log *slog.Logger, files int) error {
		ln, err := listenOn(ctx, a)
		if err != nil {
			return err
		}
		may := func(a netip.Addr) bool { _, ok := m.proxies(a); return ok }
		p := &network.Proxy{Log: log, Places: proxyRequests(files), Group: func(a netip.Addr) string { c, _ := m.proxies(a); return c }}
		g.Go(func() error { return p.Serve(ctx, connlimit.New(proxied{ln, may}, proxyPlaces(files))) })
		return nil
	}
}

// proxies names the cluster whose machine has an address, if that may use the proxy.
func (m *metalParts) proxies(a netip.Addr) (cluster string, ok bool) {
	cluster, egress := m.runs(a)
	return cluster, cluster != "" && egress == muster.EgressProxy
}

// clusterAt names the cluster whose machine has an address; "" for none.
func (m *metalParts) clusterAt(a netip.Addr) muster.ClusterID {
	cluster, _ := m.runs(a)
	return muster.ClusterID(cluster)
}

// runs names the cluster whose machine has an address, and what outgoing traffic it has.
func (m *metalParts) runs(a netip.Addr) (cluster string, egress muster.Egress) {
	service := m.service.Load()
	if service == nil {
		return "", ""
	}
	mac, ok := service.Owner(a.Unmap())
	if !ok {
		return "", ""
	}
	return m.provider.Boots().Runs(mac.String())
}

// proxied is a listener that hangs up on whoever may not use the proxy.
type proxied struct {
	net.Listener
	may func(netip.Addr) bool
}

func (l proxied) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if from, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil && l.may(from.Addr()) {
			return c, nil
		}
		_ = c.Close()
	}
}

// boots are those of bare machines; nil where there are none.
func (s *Server) boots() control.Boots {
	if s.metal == nil {
		return nil
	}
	return s.metal.provider.Boots()
}
