package netboot

import (
	"context"
	"crypto/tls"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/metal/netboot/httpboot"
	"github.com/muster-hpc/muster/metal/netboot/ra"
	"github.com/muster-hpc/muster/metal/netboot/sntp"
	"github.com/muster-hpc/muster/metal/netboot/tftp"
)

// HTTPPort is where machines find the boot service's HTTP if nothing else is said.
const HTTPPort = 7780

// Config is what a Service needs.
type Config struct {
	Interface string     // the one interface that is served
	Address   netip.Addr // this server's address on it
	Mode      dhcp.Mode
	Networks  []Network // that are answered, and no others
	// TrustSwitch believes option 82 of requests that came by no relay.
	TrustSwitch bool
	// LoaderDir has iPXE's files; LoaderDir of this package if empty.
	LoaderDir string
	HTTPPort  int         // HTTPPort of this package if 0
	TLS       *tls.Config // HTTPS instead of HTTP
	// Advertise answers IPv6 router solicitations, so that iPXE does not wait for
	// a router; Prefix is what they say, and may be empty.
	Advertise bool
	Prefix    netip.Prefix
	// Transfers by TFTP and Connections by HTTP at once, and PerSource of them of
	// one machine; 0: the packages' own.
	Transfers, Connections, PerSource int

	Directory Directory
	Leases    dhcp.Leases
	Clock     muster.Clock
}

// Service is the boot service of one interface. Make it with Open, run it with Run.
type Service struct {
	directory Directory
	clock     muster.Clock
	trace     *trace
	dhcp      *dhcp.Server
	tftp      *tftp.Server
	web       *httpboot.Server
	ra        *ra.Server
	time      *sntp.Server
}

// Open checks the configuration, reads boot loaders and leases, and opens nothing
// on the network yet.
func Open(c Config) (*Service, error) {
	if c.Clock == nil || c.Directory == nil {
		return nil, muster.Errorf(muster.EInvalid, "the boot service needs a directory and a clock")
	}
	if c.LoaderDir == "" {
		c.LoaderDir = LoaderDir
	}
	if c.HTTPPort == 0 {
		c.HTTPPort = HTTPPort
	}
	scheme := "http://"
	if c.TLS != nil {
		scheme = "https://"
	}
	base := scheme + netip.AddrPortFrom(c.Address, uint16(c.HTTPPort)).String() + "/"
	names, files, err := loaders(c.LoaderDir, base)
	if err != nil {
		return nil, err
	}
	s := &Service{directory: c.Directory, clock: c.Clock, trace: newTrace()}
	s.dhcp, err = dhcp.New(dhcp.Config{
		Interface: c.Interface, Address: c.Address, Mode: c.Mode, Networks: c.Networks, Loaders: names,
		TrustSwitch: c.TrustSwitch, Directory: c.Directory, Leases: c.Leases, Clock: c.Clock,
		Note: func(n dhcp.Note) { s.trace.add(n, c.Clock.Now()) },
	})
	if err != nil {
		return nil, err
	}
	var prefixes []netip.Prefix
	for _, n := range c.Networks {
		prefixes = append(prefixes, n.Prefix.Masked())
	}
	s.tftp, err = tftp.New(tftp.Config{
		Interface: c.Interface, Address: c.Address, Files: files, Networks: prefixes,
		Transfers: c.Transfers, Note: s.noteAddress,
	})
	if err != nil {
		return nil, err
	}
	s.web, err = httpboot.New(httpboot.Config{
		Interface: c.Interface, Address: c.Address, Port: c.HTTPPort, Base: base, TLS: c.TLS, Networks: prefixes,
		Boots: boots{s}, Loader: files, Connections: c.Connections, PerSource: c.PerSource, Note: s.noteAddress,
	})
	if err != nil {
		return nil, err
	}
	s.time, err = sntp.New(sntp.Config{Interface: c.Interface, Address: c.Address, Networks: prefixes, Now: c.Clock.Now})
	if err != nil {
		return nil, err
	}
	if c.Advertise {
		s.ra, err = ra.New(ra.Config{Interface: c.Interface, Prefix: c.Prefix})
	}
	return s, err
}

// Run serves until the context ends or a part fails. ready is called once all
// parts listen; it may be nil.
func (s *Service) Run(ctx context.Context, ready func()) error {
	g, ctx := errgroup.WithContext(ctx)
	listener, err := s.web.Listen(ctx)
	if err != nil {
		return err
	}
	var up sync.WaitGroup
	part := func(serve func(context.Context, func()) error) {
		up.Add(1)
		once := sync.OnceFunc(up.Done)
		g.Go(func() error {
			defer once() // one that fails is not waited for
			return serve(ctx, once)
		})
	}
	g.Go(func() error { return s.web.Serve(ctx, listener) })
	part(s.dhcp.Serve)
	part(s.tftp.Serve)
	part(s.time.Serve)
	if s.ra != nil {
		part(s.ra.Serve)
	}
	g.Go(func() error {
		up.Wait()
		if ready != nil && ctx.Err() == nil {
			ready()
		}
		return nil
	})
	return g.Wait()
}

// Owner is the machine that has an address now: by its lease or, in mode Proxy, by
// what it told the site's DHCP server.
func (s *Service) Owner(a netip.Addr) (MAC, bool) { return s.dhcp.Owner(a) }

// AddressOf is the address that a machine has now.
func (s *Service) AddressOf(m MAC) (netip.Addr, bool) { return s.dhcp.AddressOf(m) }

// Leases are the addresses that machines have.
func (s *Service) Leases() []dhcp.Lease { return s.dhcp.Leases() }

// Machine is what happened to one machine lately; false if it was not seen.
func (s *Service) Machine(m MAC) (Seen, bool) { return s.trace.machine(m) }

// Machines are all that were seen, the most recent first. Requests by HTTP or TFTP
// from addresses that no machine is known to have are under the empty MAC.
func (s *Service) Machines() []Seen { return s.trace.all() }

// Counts are what the service left unanswered since it was opened.
type Counts struct {
	DHCP uint64 `json:"dhcp"` // packets
	TFTP uint64 `json:"tftp"` // requests
	HTTP uint64 `json:"http"` // connections
}

// Unanswered counts what was not answered: it came from networks that were not
// given, could not be read, or was beyond the limits.
func (s *Service) Unanswered() Counts {
	return Counts{s.dhcp.Dropped(), s.tftp.Refused(), s.web.Refused()}
}

// noteAddress notes what TFTP or HTTP did for an address.
func (s *Service) noteAddress(a netip.Addr, stage, text string) {
	m, _ := s.dhcp.Owner(a)
	s.trace.add(dhcp.Note{MAC: m, Address: a, Stage: stage, Text: text}, s.clock.Now())
}

// boots lets a machine see its own boot.
type boots struct{ *Service }

// Boot is the boot of that number, if the machine at that address may have it.
func (s boots) Boot(number string, from netip.Addr) (httpboot.Boot, bool) {
	b, ok := s.directory.Boot(number)
	m, known := s.dhcp.Owner(from)
	if !ok || !known || !slices.Contains(b.MACs, m) {
		return httpboot.Boot{}, false
	}
	if b.Seen != nil {
		b.Seen()
	}
	return b.Boot, true
}
