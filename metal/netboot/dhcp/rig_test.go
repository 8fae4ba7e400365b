package dhcp

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

// The tests write and read packets with a library that the server does not encode
// with: a reply that only its own author understands fails them.

type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fakeClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *fakeClock) After(time.Duration) <-chan time.Time { return nil }

func (c *fakeClock) pass(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// book is a Directory: what is not in it is Unknown.
type book struct {
	mu       sync.Mutex
	verdicts map[MAC]Verdict
	up       map[MAC]bool
	asked    []Request
}

func newBook() *book { return &book{verdicts: map[MAC]Verdict{}, up: map[MAC]bool{}} }

func (b *book) Decide(r *Request) Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, *r)
	if v, ok := b.verdicts[r.MAC]; ok {
		return v
	}
	return Verdict{Standing: Unknown}
}

func (b *book) Holds(m MAC) bool { b.mu.Lock(); defer b.mu.Unlock(); return b.up[m] }

func (b *book) last() Request { b.mu.Lock(); defer b.mu.Unlock(); return b.asked[len(b.asked)-1] }

type rig struct {
	*Server
	t     testing.TB
	clock *fakeClock
	book  *book
	notes []Note
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func mac(n int) MAC { return MAC{2, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)} }

func networks() []Network {
	return []Network{
		{
			Prefix: netip.MustParsePrefix("10.1.0.0/24"), Lease: time.Hour,
			Ranges: []Range{{ip("10.1.0.10"), ip("10.1.0.19")}}, Discovery: []Range{{ip("10.1.0.100"), ip("10.1.0.103")}},
			Routers: []netip.Addr{ip("10.1.0.254")}, DNS: []netip.Addr{ip("10.1.0.253")}, Domain: "rack.example", MTU: 9000,
		},
		{
			Prefix: netip.MustParsePrefix("10.2.0.0/24"), Lease: time.Hour,
			Ranges: []Range{{ip("10.2.0.10"), ip("10.2.0.19")}}, Relays: []netip.Addr{ip("10.2.0.254")},
		},
	}
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, clock: &fakeClock{now: time.Unix(2_000_000_000, 0)}, book: newBook()}
	c := Config{
		Interface: "rack0", Address: ip("10.1.0.1"), Networks: networks(), Directory: r.book, Clock: r.clock,
		Loaders: Loaders{BIOS: "undionly.kpxe", UEFI: "snponly.efi", ARM64: "arm.efi", Base: "http://10.1.0.1:7780/"},
		Note:    func(n Note) { r.notes = append(r.notes, n) },
	}
	for _, f := range change {
		f(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Server = s
	return r
}

// send has a packet answered; nil is no answer.
func (r *rig) send(p *dhcpv4.DHCPv4, from string, port int) *dhcpv4.DHCPv4 {
	r.t.Helper()
	out, ok := r.handle(p.ToBytes(), netip.MustParseAddrPort(from), port, r.clock.Now())
	if !ok {
		return nil
	}
	b := out.append(nil, r.Address)
	got, err := dhcpv4.FromBytes(b)
	if err != nil {
		r.t.Fatalf("the reply cannot be read: %v", err)
	}
	if got.TransactionID != p.TransactionID || got.OpCode != dhcpv4.OpcodeBootReply || got.ClientHWAddr.String() != p.ClientHWAddr.String() {
		r.t.Fatalf("a reply to somebody else: %v", got)
	}
	if len(b) < 300 {
		r.t.Fatalf("reply of %d bytes", len(b))
	}
	return got
}

func (r *rig) local(p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	r.t.Helper()
	return r.send(p, "0.0.0.0:68", 67)
}

type mod = dhcpv4.Modifier

func opt(code uint8, v ...byte) mod {
	return dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(code), v)
}

func discover(m MAC, mods ...mod) *dhcpv4.DHCPv4 {
	p, err := dhcpv4.NewDiscovery(net.HardwareAddr(m[:]), mods...)
	if err != nil {
		panic(err)
	}
	return p
}

func ask(m MAC, mods ...mod) *dhcpv4.DHCPv4 {
	p := discover(m, mods...)
	p.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeRequest))
	return p
}

func wants(a string) mod { return dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.ParseIP(a))) }

func chose(a string) mod { return dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.ParseIP(a))) }

func has(a string) mod { return dhcpv4.WithClientIP(net.ParseIP(a).To4()) }

func relayed(giaddr string) mod {
	return func(d *dhcpv4.DHCPv4) { d.GatewayIPAddr = net.ParseIP(giaddr).To4() }
}

func pxe(arch iana.Arch) mod {
	return func(d *dhcpv4.DHCPv4) {
		d.UpdateOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00000:UNDI:002001"))
		d.UpdateOption(dhcpv4.OptClientArch(arch))
	}
}

// lease takes a machine through the four packets and returns its address.
func (r *rig) lease(m MAC, mods ...mod) string {
	r.t.Helper()
	offer := r.local(discover(m, mods...))
	if offer == nil {
		r.t.Fatalf("no offer for %v: %v", m, r.notes)
		return ""
	}
	a := offer.YourIPAddr.String()
	ack := r.local(ask(m, append(mods, wants(a), chose("10.1.0.1"))...))
	if ack == nil || ack.MessageType() != dhcpv4.MessageTypeAck || ack.YourIPAddr.String() != a {
		r.t.Fatalf("no ACK of %s for %v: %v", a, m, ack)
	}
	return a
}

func (r *rig) said() string {
	if len(r.notes) == 0 {
		return ""
	}
	n := r.notes[len(r.notes)-1]
	return n.Stage + " " + n.Text
}
