package dhcp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

func TestAMachineIsItsMAC(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.book.verdicts[mac(1)] = Verdict{Standing: Known, Hostname: "n01"}
	// Firmware, iPXE and systemd each with a client ID of its own, or none.
	first := r.lease(mac(1), opt(61, 0, 1, 2, 3))
	if again := r.lease(mac(1), opt(61, 255, 9, 9)); again != first {
		t.Errorf("another client ID got %s, not %s", again, first)
	}
	if again := r.lease(mac(1)); again != first {
		t.Errorf("no client ID got %s, not %s", again, first)
	}
	if m, ok := r.Owner(ip(first)); !ok || m != mac(1) {
		t.Errorf("owner of %s is %v, %v", first, m, ok)
	}
}

func TestWhatAMachineIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.book.verdicts[mac(1)] = Verdict{Standing: Known, Address: ip("10.1.0.50"), Hostname: "n01"}
	got := r.local(discover(mac(1), opt(61, 1, 2, 3), opt(55, 1, 3, 26)))
	if got.YourIPAddr.String() != "10.1.0.50" || got.ServerIdentifier().String() != "10.1.0.1" ||
		net.IP(got.SubnetMask()).String() != "255.255.255.0" || got.Router()[0].String() != "10.1.0.254" ||
		got.DNS()[0].String() != "10.1.0.253" || got.HostName() != "n01" || got.DomainName() != "rack.example" ||
		got.IPAddressLeaseTime(0) != time.Hour || got.IPAddressRenewalTime(0) != time.Hour/2 ||
		string(got.Options[26]) != "\x23\x28" || string(got.Options[61]) != "\x01\x02\x03" {
		t.Errorf("told: %s", got.Summary())
	}
	if got.BootFileName != "" || got.Options[67] != nil || got.Options[175] != nil {
		t.Errorf("one that did not ask to boot is told to: %s", got.Summary())
	}
}

func TestWhatEachFirmwareLoads(t *testing.T) {
	t.Parallel()
	ipxe := opt(77, []byte("iPXE")...)
	for name, c := range map[string]struct {
		mods []mod
		file string
	}{
		"bios":                {[]mod{pxe(0)}, "undionly.kpxe"},
		"old bios":            {[]mod{opt(60, []byte("PXEClient")...)}, "undionly.kpxe"},
		"uefi 7":              {[]mod{pxe(7)}, "snponly.efi"},
		"uefi 9":              {[]mod{pxe(9)}, "snponly.efi"},
		"arm":                 {[]mod{pxe(11)}, "arm.efi"},
		"uefi http":           {[]mod{pxe(16), opt(60, []byte("HTTPClient:Arch:00016")...)}, "http://10.1.0.1:7780/loader/snponly.efi"},
		"uefi http by class":  {[]mod{pxe(7), opt(60, []byte("HTTPClient:Arch:00007")...)}, "http://10.1.0.1:7780/loader/snponly.efi"},
		"arm http":            {[]mod{pxe(19)}, "http://10.1.0.1:7780/loader/arm.efi"},
		"32 bit":              {[]mod{pxe(6)}, ""},
		"unknown":             {[]mod{pxe(4711)}, ""},
		"ipxe":                {[]mod{pxe(0), ipxe}, "http://10.1.0.1:7780/boot/b1a2/script"},
		"ipxe, RFC 3004":      {[]mod{pxe(7), opt(77, []byte("\x03abc\x04iPXE")...)}, "http://10.1.0.1:7780/boot/b1a2/script"},
		"ipxe with http":      {[]mod{pxe(0), ipxe, opt(175, 0xb1, 1, 1, 0x13, 1, 1)}, "http://10.1.0.1:7780/boot/b1a2/script"},
		"ipxe without http":   {[]mod{pxe(0), ipxe, opt(175, 0xb1, 1, 1)}, "undionly.kpxe"},
		"not quite ipxe":      {[]mod{pxe(0), opt(77, []byte("iPXE2")...)}, "undionly.kpxe"},
		"an operating system": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.book.verdicts[mac(1)] = Verdict{Standing: Known, Boot: "b1a2"}
			got := r.local(discover(mac(1), c.mods...))
			if got == nil {
				t.Fatal("no answer")
			}
			if got.BootFileName != c.file {
				t.Errorf("loads %q, not %q", got.BootFileName, c.file)
			}
			if next := got.ServerIPAddr.String(); (next == "10.1.0.1") != (c.file != "") {
				t.Errorf("next server %s", next)
			}
			if waits := string(got.Options[175]) != "\xb0\x01\x01"; waits == r.book.last().IPXE && c.file != "" {
				t.Errorf("option 175 is %x", got.Options[175])
			}
			if http := string(got.Options[60]) == "HTTPClient"; http != strings.Contains(c.file, "/loader/") {
				t.Errorf("class is %q", got.Options[60])
			}
			// Nothing was ordered: an address, and no loader.
			r.book.verdicts[mac(1)] = Verdict{Standing: Known}
			if got := r.local(discover(mac(1), c.mods...)); got == nil || got.BootFileName != "" || got.Options[67] != nil {
				t.Errorf("without an order it loads %v", got)
			}
		})
	}
}

func TestPXEIsEchoed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.book.verdicts[mac(1)] = Verdict{Standing: Known, Boot: "b1a2"}
	uuid := append([]byte{0}, []byte("0123456789abcdef")...)
	got := r.local(discover(mac(1), pxe(iana.Arch(0)), opt(97, uuid...), opt(55, 67)))
	if string(got.Options[97]) != string(uuid) || string(got.Options[67]) != "undionly.kpxe" {
		t.Errorf("%s", got.Summary())
	}
	if string(r.book.last().UUID) != "0123456789abcdef" {
		t.Errorf("directory saw UUID %q", r.book.last().UUID)
	}
}

func TestStandings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.book.verdicts[mac(1)] = Verdict{Standing: Known}
	r.book.verdicts[mac(2)] = Verdict{Standing: Forbidden, Why: "retired"}
	if a := r.lease(mac(1)); a != "10.1.0.10" {
		t.Errorf("known got %s", a)
	}
	if a := r.lease(mac(3)); a != "10.1.0.100" {
		t.Errorf("unknown got %s", a)
	}
	for _, p := range []*dhcpv4.DHCPv4{discover(mac(2)), ask(mac(2), wants("10.1.0.15")), ask(mac(2), has("10.9.9.9"))} {
		if got := r.local(p); got != nil {
			t.Errorf("forbidden got %v", got)
		}
	}
	if len(r.notes) == 0 || r.notes[len(r.notes)-1].Text != "retired" {
		t.Errorf("operator is not told why: %v", r.notes)
	}
	// Unknown machines cannot use up what known ones need.
	for i := range 3 {
		r.lease(mac(10 + i))
	}
	if got := r.local(discover(mac(99))); got != nil || !strings.Contains(r.said(), "no free address") {
		t.Errorf("a fifth guest got %v; %s", got, r.said())
	}
	// A discovered machine that becomes known moves.
	r.book.verdicts[mac(3)] = Verdict{Standing: Known}
	if a := r.lease(mac(3)); a != "10.1.0.11" {
		t.Errorf("former guest got %s", a)
	}
}

func TestRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.book.verdicts[mac(1)] = Verdict{Standing: Known}
	r.book.verdicts[mac(2)] = Verdict{Standing: Known}
	a := r.lease(mac(1))
	for name, p := range map[string]*dhcpv4.DHCPv4{
		"wrong network, after a reboot": ask(mac(2), wants("192.168.7.7")),
		"wrong network, renewing":       ask(mac(2), has("192.168.7.7")),
		"another's address":             ask(mac(2), wants(a)),
		"outside of the ranges":         ask(mac(2), wants("10.1.0.200")),
		"another network's":             ask(mac(2), wants("10.2.0.10")),
	} {
		got := r.local(p)
		if got == nil || got.MessageType() != dhcpv4.MessageTypeNak || !got.YourIPAddr.Equal(net.IPv4zero) || len(got.Options[56]) == 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	// One who took another server's offer is left alone, and its address is free.
	b := r.local(discover(mac(2))).YourIPAddr.String()
	if got := r.local(ask(mac(2), wants("10.1.0.77"), chose("10.1.0.2"))); got != nil {
		t.Errorf("answered for another server: %v", got)
	}
	if _, taken := r.table.entries[ip(b)]; taken {
		t.Error("its offer is kept")
	}
	// One with an address of ours that we forgot may keep it.
	if got := r.local(ask(mac(2), wants("10.1.0.17"))); got == nil || got.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("forgotten lease: %v", got)
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.book.verdicts[mac(1)] = Verdict{Standing: Known}
	r.book.verdicts[mac(2)] = Verdict{Standing: Known}
	// A stranger was seen at the next address: it is passed over.
	r.table.Seen(ip("10.1.0.10"), mac(77), r.clock.Now())
	a := r.lease(mac(1))
	if a != "10.1.0.11" {
		t.Fatalf("got %s", a)
	}
	// Between offer and request: NAK, then another one.
	offered := r.local(discover(mac(2))).YourIPAddr.String()
	r.table.Seen(ip(offered), mac(77), r.clock.Now())
	if got := r.local(ask(mac(2), wants(offered), chose("10.1.0.1"))); got == nil || got.MessageType() != dhcpv4.MessageTypeNak {
		t.Errorf("a conflicting address was given: %v", got)
	}
	if b := r.lease(mac(2)); b == offered {
		t.Error("offered again")
	}
	// What has the address itself is no conflict; what pretends to is told.
	if _, other := r.table.Seen(ip(a), mac(1), r.clock.Now()); other {
		t.Error("a machine conflicts with itself")
	}
	if owner, other := r.table.Seen(ip(a), mac(66), r.clock.Now()); !other || owner != mac(1) {
		t.Error("a second user of an address goes unnoticed")
	}
	// Declined by who has it: out of use for a while. By another: nothing.
	decline := func(m MAC) {
		p := ask(m, wants(a), chose("10.1.0.1"))
		p.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeDecline))
		if got := r.local(p); got != nil {
			t.Errorf("a DECLINE is answered: %v", got)
		}
	}
	decline(mac(2))
	if m, ok := r.Owner(ip(a)); !ok || m != mac(1) {
		t.Error("somebody declined another's address")
	}
	decline(mac(1))
	if _, ok := r.Owner(ip(a)); ok {
		t.Error("declined address is still lent")
	}
	if b := r.lease(mac(1)); b == a {
		t.Error("declined address is given again")
	}
	r.clock.pass(takenHold)
	for i := range 8 {
		r.book.verdicts[mac(20+i)] = Verdict{Standing: Known}
		r.lease(mac(20 + i)) // ten addresses, two in use: all others come back
	}
}

func TestReservationInUse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.book.verdicts[mac(1)] = Verdict{Standing: Known}
	a := r.lease(mac(1))
	r.book.verdicts[mac(2)] = Verdict{Standing: Known, Address: ip(a)}
	if got := r.local(discover(mac(2))); got != nil || !strings.Contains(r.said(), "02:00:00:00:00:01") {
		t.Errorf("%v; %s", got, r.said())
	}
	r.book.verdicts[mac(3)] = Verdict{Standing: Known, Address: ip("10.2.0.50")}
	if got := r.local(discover(mac(3))); got != nil || !strings.Contains(r.said(), "10.2.0.50") {
		t.Errorf("%v; %s", got, r.said())
	}
	// The first machine's time is over: the second gets its own.
	r.clock.pass(time.Hour)
	if b := r.lease(mac(2)); b != a {
		t.Errorf("got %s", b)
	}
	// A machine that is given an address of its own moves to it by a NAK...
	r.book.verdicts[mac(1)] = Verdict{Standing: Known}
	old := r.lease(mac(1))
	r.book.verdicts[mac(1)] = Verdict{Standing: Known, Address: ip("10.1.0.60")}
	if got := r.local(ask(mac(1), has(old))); got == nil || got.MessageType() != dhcpv4.MessageTypeNak {
		t.Errorf("renewed: %v", got)
	}
	// ...but not while its node is up.
	r.book.up[mac(1)] = true
	if got := r.local(ask(mac(1), has(old))); got == nil || got.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("a running node lost its address: %v", got)
	}
}

func TestLeasesEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 10 {
		r.book.verdicts[mac(i+1)] = Verdict{Standing: Known}
		r.lease(mac(i + 1))
	}
	r.book.verdicts[mac(50)] = Verdict{Standing: Known}
	r.book.up[mac(1)] = true
	if got := r.local(discover(mac(50))); got != nil {
		t.Fatalf("an eleventh address of ten: %v", got)
	}
	r.clock.pass(time.Hour)
	if _, ok := r.Owner(ip("10.1.0.11")); ok {
		t.Error("a lease that ran out still has an owner")
	}
	seen := map[string]bool{}
	for i := range 9 {
		r.book.verdicts[mac(50+i)] = Verdict{Standing: Known}
		seen[r.lease(mac(50+i))] = true
	}
	if seen["10.1.0.10"] || len(seen) != 9 {
		t.Errorf("the lease of a node that is up ran out: %v", seen)
	}
	if m, _ := r.Owner(ip("10.1.0.10")); m != mac(1) {
		t.Errorf("owner is %v", m)
	}
	// Given back by its owner, unless held; not by others.
	release := func(m MAC, a string) {
		p := ask(m, has(a))
		p.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeRelease))
		r.local(p)
	}
	release(mac(50), "10.1.0.10")
	release(mac(1), "10.1.0.10")
	if m, _ := r.Owner(ip("10.1.0.10")); m != mac(1) {
		t.Error("a held lease was given back")
	}
	var a string
	for s := range seen {
		if m, _ := r.Owner(ip(s)); m == mac(50) {
			a = s
		}
	}
	release(mac(50), a)
	if _, ok := r.Owner(ip(a)); ok {
		t.Error("a lease that was given back is lent")
	}
}

func TestRelays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.book.verdicts[mac(1)] = Verdict{Standing: Known}
	info := opt(82, 1, 4, 'p', 'o', 'r', 't', 2, 2, 's', 'w')
	got := r.send(discover(mac(1), relayed("10.2.0.254"), info), "10.2.0.254:67", 67)
	if got == nil || got.YourIPAddr.String() != "10.2.0.10" || got.GatewayIPAddr.String() != "10.2.0.254" {
		t.Fatalf("%v", got)
	}
	if string(got.Options[82]) != "\x01\x04port\x02\x02sw" {
		t.Errorf("option 82 is not echoed: %x", got.Options[82])
	}
	if e := r.book.last().Evidence; !e.Trusted || string(e.Circuit) != "port" || string(e.Remote) != "sw" || e.Interface != "rack0" || e.Relay != ip("10.2.0.254") {
		t.Errorf("evidence %+v", e)
	}
	// A machine that writes these fields itself is answered, and not believed.
	for name, send := range map[string]func() *dhcpv4.DHCPv4{
		"direct, with option 82": func() *dhcpv4.DHCPv4 { return r.local(discover(mac(1), info)) },
		"another source than the relay": func() *dhcpv4.DHCPv4 {
			return r.send(discover(mac(1), relayed("10.2.0.254"), info), "10.2.0.66:67", 67)
		},
		"a relay that is not named": func() *dhcpv4.DHCPv4 {
			return r.send(discover(mac(1), relayed("10.2.0.253"), info), "10.2.0.253:67", 67)
		},
	} {
		if got := send(); got == nil || r.book.last().Evidence.Trusted || r.book.last().Evidence.Circuit != nil {
			t.Errorf("%s: %v, evidence %+v", name, got, r.book.last().Evidence)
		}
	}
	// Networks that were not given get nothing.
	before := r.Dropped()
	if got := r.send(discover(mac(1), relayed("10.9.0.254")), "10.9.0.254:67", 67); got != nil || r.Dropped() != before+1 {
		t.Errorf("answered a network that was not given: %v", got)
	}
	// The relay's own address is elsewhere; it selects the link by option 82.
	r2 := newRig(t, func(c *Config) { c.Networks[1].Relays = append(c.Networks[1].Relays, ip("172.16.0.1")) })
	got = r2.send(discover(mac(1), relayed("172.16.0.1"), opt(82, 5, 4, 10, 2, 0, 0)), "172.16.0.1:67", 67)
	if got == nil || got.YourIPAddr.String() != "10.2.0.10" {
		t.Errorf("link selection: %v", got)
	}
	// A renewal comes past the relay, from the address itself.
	if got := r.send(ask(mac(1), has("10.2.0.10")), "10.2.0.10:68", 67); got == nil || got.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("renewal: %v", got)
	}
	// NAKs through a relay are for all: the machine's address is wrong.
	if got := r.send(ask(mac(1), wants("10.1.0.10"), relayed("10.2.0.254")), "10.2.0.254:67", 67); got == nil || got.MessageType() != dhcpv4.MessageTypeNak || !got.IsBroadcast() {
		t.Errorf("NAK by relay: %v", got)
	}
	sw := newRig(t, func(c *Config) { c.TrustSwitch = true })
	sw.local(discover(mac(1), info))
	if e := sw.book.last().Evidence; !e.Trusted || string(e.Circuit) != "port" {
		t.Errorf("a trusted switch's word is not believed: %+v", e)
	}
}

func TestInform(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := ask(mac(1), has("10.1.0.77"))
	p.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeInform))
	got := r.local(p)
	if got == nil || got.MessageType() != dhcpv4.MessageTypeAck || !got.YourIPAddr.Equal(net.IPv4zero) || got.Options[51] != nil || got.DNS() == nil {
		t.Errorf("%v", got)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases")
	open := func() (*rig, *LeaseFile) {
		f, err := OpenLeaseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, func(c *Config) { c.Leases = f })
		for i := range 5 {
			r.book.verdicts[mac(i+1)] = Verdict{Standing: Known}
		}
		return r, f
	}
	r, f := open()
	w := &worker{Server: r.Server, neighbours: &neighbours{}}
	a, b := r.lease(mac(1)), r.lease(mac(2))
	if !w.keep() {
		t.Fatal("leases were not kept")
	}
	f.Close()
	r, f = open()
	defer f.Close()
	if m, ok := r.Owner(ip(a)); !ok || m != mac(1) {
		t.Errorf("%s belongs to %v after a restart", a, m)
	}
	if c := r.lease(mac(3)); c == a || c == b {
		t.Errorf("%s was given twice", c)
	}
	if again := r.lease(mac(2)); again != b {
		t.Errorf("got %s, had %s", again, b)
	}
}

// full is a disk without room.
type full struct{ fails bool }

func (f *full) Load() ([]Lease, error) { return nil, nil }

func (f *full) Put([]Lease) error {
	if f.fails {
		return errors.New("no space")
	}
	return nil
}

func TestNobodyIsToldWhatIsNotKept(t *testing.T) {
	t.Parallel()
	disk := &full{fails: true}
	r := newRig(t, func(c *Config) { c.Leases = disk })
	w := &worker{Server: r.Server, neighbours: &neighbours{}}
	r.book.verdicts[mac(1)] = Verdict{Standing: Known}
	a := r.local(discover(mac(1))).YourIPAddr.String()
	r.local(ask(mac(1), wants(a), chose("10.1.0.1")))
	if w.keep() {
		t.Fatal("kept on a full disk")
	}
	// It asks again, of which nothing changes in memory: still not kept.
	r.local(ask(mac(1), wants(a), chose("10.1.0.1")))
	if w.keep() {
		t.Fatal("the second ACK would be sent")
	}
	disk.fails = false
	if !w.keep() || len(r.table.dirty) != 0 {
		t.Error("not kept once there is room")
	}
}

func TestConfigurationFaultsAtOnce(t *testing.T) {
	t.Parallel()
	bad := networks()
	bad[0].Ranges = []Range{{ip("10.1.0.0"), ip("10.1.0.5")}, {ip("10.1.0.4"), ip("10.1.0.9")}, {ip("10.7.0.1"), ip("10.7.0.2")}}
	bad[0].Lease = time.Second
	bad[1].Prefix = bad[0].Prefix
	_, err := New(Config{Networks: bad, Directory: newBook(), Clock: &fakeClock{}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"address:", "networks[0].ranges[0]:", "networks[0].ranges[1]:", "networks[0].ranges[2]:", "networks[0].lease:", "networks[1].prefix:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in: %v", want, err)
		}
	}
	for _, s := range []string{"", "10.0.0.9-10.0.0.1", "10.0.0.1-", "::1", "a-b"} {
		if _, err := ParseRange(s); err == nil {
			t.Errorf("%q is taken for a range", s)
		}
	}
	for text, want := range map[string]string{
		"10.0.0.1": "[10.0.0.1/32]", "10.0.0.16-10.0.0.99": "[10.0.0.16/28 10.0.0.32/27 10.0.0.64/27 10.0.0.96/30]",
		"0.0.0.0-255.255.255.255": "[0.0.0.0/0]", "255.255.255.254-255.255.255.255": "[255.255.255.254/31]",
	} {
		if r, err := ParseRange(text); err != nil || fmt.Sprint(r.Prefixes()) != want {
			t.Errorf("%s: %v %v", text, r.Prefixes(), err)
		}
	}
	if got, err := ParseRange("10.0.0.1-10.0.0.9"); err != nil || got.size() != 9 {
		t.Errorf("%v, %v", got, err)
	}
}

// The name of the loader ends with a zero wherever it is: some ROMs read on to one.
func TestLoaderNameEndsWithZero(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.book.verdicts[mac(1)] = Verdict{Standing: Known, Boot: "b1a2"}
	out, ok := r.handle(discover(mac(1), pxe(iana.Arch(0)), opt(55, 67)).ToBytes(), netip.MustParseAddrPort("0.0.0.0:68"), 67, r.clock.Now())
	if !ok {
		t.Fatal("no answer")
	}
	const name = "undionly.kpxe"
	b := out.append(nil, r.Address)
	if field := b[108:236]; string(field) != name+strings.Repeat("\x00", 128-len(name)) {
		t.Errorf("the field file is %q", field)
	}
	option := append([]byte{67, byte(len(name))}, name...)
	if !bytes.Contains(b[240:], append(option, 0)) {
		t.Errorf("option 67 does not end with a zero: %q", b[240:])
	}
	if got, err := dhcpv4.FromBytes(b); err != nil || string(got.Options[67]) != name {
		t.Errorf("option 67 is %q, %v", got.Options[67], err)
	}
}
