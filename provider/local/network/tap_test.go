package network_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/provider/local/network"
)

// frame is what a machine with a kernel of its own makes up.
type frame struct {
	to, from net.HardwareAddr
	vlan     []byte // tags
	kind     uint16
	body     []byte
}

func (f frame) bytes() []byte {
	b := make([]byte, 10) // struct virtio_net_hdr: nothing to say
	b = append(append(b, f.to...), f.from...)
	b = append(b, f.vlan...)
	return append(binary.BigEndian.AppendUint16(b, f.kind), f.body...)
}

var broadcast = net.HardwareAddr{255, 255, 255, 255, 255, 255}

// datagram is an IPv4 packet with UDP's number and a text.
func datagram(from, to netip.Addr, text string) []byte {
	b := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0}
	b = append(append(b, from.AsSlice()...), to.AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, 9)
	b = binary.BigEndian.AppendUint16(b, 9)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(text)))
	b = append(append(b, 0, 0), text...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[10:], sum16(b[:20]))
	return b
}

func sum16(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

// arp says that an address belongs to a card, and more after it.
func arp(mac net.HardwareAddr, ip netip.Addr, text string) []byte {
	b := []byte{0, 1, 8, 0, 6, 4, 0, 2}
	b = append(append(b, mac...), ip.AsSlice()...)
	b = append(append(b, broadcast...), ip.AsSlice()...)
	return append(b, text...)
}

// icmp6 is a message of neighbour discovery about an address.
func icmp6(from netip.Addr, kind byte, about netip.Addr, text string) []byte {
	body := append([]byte{kind, 0, 0, 0, 0x20, 0, 0, 0}, about.AsSlice()...)
	body = append(body, text...)
	b := []byte{0x60, 0, 0, 0, 0, byte(len(body)), 58, 255}
	to := netip.MustParseAddr("ff02::1")
	return append(append(append(b, from.AsSlice()...), to.AsSlice()...), body...)
}

// listen opens a socket that hears every frame of a device.
func listenAll(t *testing.T, ns *os.File, device string) int {
	t.Helper()
	fd := -1
	inside(t, ns, func() (err error) {
		const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
			return err
		}
		dev, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		return errors.Join(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: dev.Index}),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60}))
	})
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// hears returns every marker ("<...>") that comes until the last one does.
func hears(t *testing.T, fd int, last string) []string {
	t.Helper()
	var out []string
	buf := make([]byte, 9200)
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatalf("%v before %s came; heard %q", err, last, out)
		}
		_, rest, ok := bytes.Cut(buf[:n], []byte("<"))
		text, _, closed := bytes.Cut(rest, []byte(">"))
		if !ok || !closed {
			continue
		}
		out = append(out, string(text))
		if string(text) == last {
			return out
		}
	}
}

func write(t *testing.T, tap *os.File, f frame) {
	t.Helper()
	if _, err := tap.Write(f.bytes()); err != nil {
		t.Fatal(err)
	}
}

// Of all that a virtual machine may send on its cluster's network, only what it is arrives: its own MAC,
// its own IPv4 address, its own address of IPv6. Frames arrive in order: what has not come before the last has not
// come.
func TestTapFilter(t *testing.T) {
	root(t)
	r := rack(t, newNS(t))
	if err := r.AddBridge(0, "c-one"); err != nil {
		t.Fatal(err)
	}
	other := machine(t, r, 1, "10.91.0.3/24")
	mac := net.HardwareAddr{0x52, 1, 2, 3, 4, 5}
	stranger := net.HardwareAddr{0x52, 1, 2, 3, 4, 6}
	own, others := netip.MustParseAddr("10.91.0.2"), netip.MustParseAddr("10.91.0.3")
	local, foreign := netip.MustParseAddr("fe80::5001:2ff:fe03:405"), netip.MustParseAddr("fe80::1")
	tap, err := r.PlugTap(t.Context(), network.Plug{Machine: 0, Bridge: 0, MTU: 9000}, network.Card{MAC: mac, Address: own, Several: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	queues, err := r.TapQueues(0, network.MessagePort, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer queues[0].Close()
	fd := listenAll(t, other, "msg0")
	const ip4, arp4, ip6 = 0x0800, 0x0806, 0x86dd
	solicit, advert, router, redirect := byte(135), byte(136), byte(134), byte(137)
	tag := func(n byte) []byte { return []byte{0x81, 0, 0, n} }
	var want []string
	send := func(passes bool, name string, f frame) {
		write(t, tap, f)
		if passes {
			want = append(want, name)
		}
	}
	m := func(name string) string { return "<" + name + ">" }
	send(true, "own", frame{broadcast, mac, nil, ip4, datagram(own, others, m("own"))})
	send(true, "arp", frame{broadcast, mac, nil, arp4, arp(mac, own, m("arp"))})
	send(true, "nd", frame{broadcast, mac, nil, ip6, icmp6(local, advert, local, m("nd"))})
	send(true, "dad", frame{broadcast, mac, nil, ip6, icmp6(netip.IPv6Unspecified(), solicit, local, m("dad"))})
	send(true, "who has", frame{broadcast, mac, nil, ip6, icmp6(local, solicit, foreign, m("who has"))})
	send(false, "mac", frame{broadcast, stranger, nil, ip4, datagram(own, others, m("mac"))})
	send(false, "ip", frame{broadcast, mac, nil, ip4, datagram(others, own, m("ip"))})
	send(false, "dhcp", frame{broadcast, mac, nil, ip4, datagram(netip.IPv4Unspecified(), others, m("dhcp"))})
	send(false, "arp mac", frame{broadcast, mac, nil, arp4, arp(stranger, own, m("arp mac"))})
	send(false, "arp ip", frame{broadcast, mac, nil, arp4, arp(mac, others, m("arp ip"))})
	send(false, "arp frame", frame{broadcast, stranger, nil, arp4, arp(mac, own, m("arp frame"))})
	send(false, "nd source", frame{broadcast, mac, nil, ip6, icmp6(foreign, advert, foreign, m("nd source"))})
	send(false, "nd target", frame{broadcast, mac, nil, ip6, icmp6(local, advert, foreign, m("nd target"))})
	send(false, "nd claim", frame{broadcast, mac, nil, ip6, icmp6(netip.IPv6Unspecified(), solicit, foreign, m("nd claim"))})
	send(false, "router", frame{broadcast, mac, nil, ip6, icmp6(local, router, local, m("router"))})
	send(false, "redirect", frame{broadcast, mac, nil, ip6, icmp6(local, redirect, local, m("redirect"))})
	send(false, "vlan", frame{broadcast, mac, tag(5), ip4, datagram(own, others, m("vlan"))})
	send(false, "vlan 0", frame{broadcast, mac, tag(0), ip4, datagram(own, others, m("vlan 0"))})
	send(false, "two vlans", frame{broadcast, mac, slices.Concat([]byte{0x88, 0xa8, 0, 5}, tag(6)), ip4, datagram(own, others, m("two vlans"))})
	send(false, "spanning tree", frame{broadcast, mac, nil, 38, []byte(m("spanning tree"))})
	send(false, "experimental", frame{broadcast, mac, nil, 0x88b5, []byte(m("experimental"))})
	hop := icmp6(local, router, local, m("hidden"))
	hidden := slices.Concat(hop[:40], []byte{58, 0, 1, 4, 0, 0, 0, 0}, hop[40:])
	hidden[6], hidden[5] = 0, hidden[5]+8 // an extension header before it
	send(false, "hidden", frame{broadcast, mac, nil, ip6, hidden})
	torn := slices.Concat(hop[:40], []byte{58, 0, 0, 1, 0, 0, 0, 9}, hop[40:])
	torn[6], torn[5] = 44, torn[5]+8 // a fragment
	send(false, "torn", frame{broadcast, mac, nil, ip6, torn})
	tap = queues[0] // no other way out
	send(false, "mac by another queue", frame{broadcast, stranger, nil, ip4, datagram(own, others, m("mac by another queue"))})
	send(false, "ip by another queue", frame{broadcast, mac, nil, ip4, datagram(others, own, m("ip by another queue"))})
	send(true, "last", frame{broadcast, mac, nil, ip4, datagram(own, others, m("last"))})
	if got := hears(t, fd, "last"); !slices.Equal(got, want) {
		t.Errorf("heard %q\n  not %q", got, want)
	}

	// The filter goes with the machine, also one that an earlier server left.
	if err := r.RemoveMachine(0); err != nil {
		t.Fatal(err)
	}
	if out := netdevTables(t, r); out != "" {
		t.Errorf("left: %s", out)
	}
}

func netdevTables(t *testing.T, r *network.Rack) string {
	t.Helper()
	var out []byte
	if err := r.Do(func() (err error) {
		out, err = exec.Command("nft", "list", "tables", "netdev").CombinedOutput()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// A virtual machine reaches its server by the management network, and no other machine; and a slice that
// follows it, in a rack that was opened again, is not held to what the other was.
func TestTapManagement(t *testing.T) {
	root(t)
	host := newNS(t)
	r := rack(t, host)
	mac := net.HardwareAddr{0x52, 1, 2, 3, 4, 5}
	a0, _ := network.ManagementAddress(0)
	a1, _ := network.ManagementAddress(1)
	taps := make([]*os.File, 2)
	for i := range taps {
		addr, err := network.ManagementAddress(i)
		if err != nil {
			t.Fatal(err)
		}
		m := slices.Clone(mac)
		m[5] += byte(i)
		if taps[i], err = r.AddTap(t.Context(), i, network.Card{MAC: m, Address: addr}); err != nil {
			t.Fatal(err)
		}
		defer taps[i].Close()
	}
	var server net.HardwareAddr
	if err := r.Do(func() error {
		dev, err := net.InterfaceByName("m0")
		if err != nil {
			return err
		}
		server = dev.HardwareAddr
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// To the other machine, by the server and past it, as itself and as somebody else: nothing arrives before
	// what the server sends.
	for _, f := range []frame{
		{server, mac, nil, 0x0800, datagram(a0, a1, "<by the server>")},
		{broadcast, mac, nil, 0x0800, datagram(a0, a1, "<past it>")},
		{server, mac, nil, 0x0800, datagram(network.Gateway(), a1, "<as the server>")},
		{server, mac, nil, 0x0800, datagram(a1, a1, "<as the other>")},
		{broadcast, mac, nil, 0x0806, arp(mac, a1, "<arp>")},
		{broadcast, mac, nil, 0x86dd, icmp6(netip.MustParseAddr("fe80::5001:2ff:fe03:405"), 136, netip.MustParseAddr("fe80::1"), "<nd>")},
	} {
		write(t, taps[0], f)
	}
	go func() { _, _ = r.Dial(t.Context(), netip.AddrPortFrom(a1, 22)) }() // asks who has its address
	if err := taps[1].SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 9200)
	n, err := taps[1].Read(buf)
	if err != nil || n < 10+14+28 || binary.BigEndian.Uint16(buf[22:]) != 0x0806 || bytes.Contains(buf[:n], []byte("<")) {
		t.Errorf("the other machine hears %q, %v", buf[:max(0, n)], err)
	}
	// A server that was killed leaves the taps to their machines, and its filters. The next one finds them.
	again, err := network.OpenAt(t.Context(), r.Name(), host)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := netdevTables(t, again); strings.Count(got, "vm-m") != 2 {
		t.Errorf("filters: %s", got)
	}
	for _, f := range taps {
		_ = f.Close()
	}
	if err := again.RemoveMachine(1); err != nil {
		t.Fatal(err)
	}
	slice := machine(t, again, 0, "")
	if got := netdevTables(t, again); got != "" {
		t.Errorf("a slice is filtered as the virtual machine before it was: %s", got)
	}
	serve(t, slice, a0.String()+":22")
	if got, err := dialed(t, again, a0); err != nil || got == "" {
		t.Errorf("%q, %v", got, err)
	}
}

// dialed reads what a machine's port says.
func dialed(t *testing.T, r *network.Rack, a netip.Addr) (string, error) {
	c, err := r.Dial(t.Context(), netip.AddrPortFrom(a, 22))
	if err != nil {
		return "", err
	}
	defer c.Close()
	b := make([]byte, 64)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// virtual are the addresses that may come where virtual machines alone may.
func virtual(t *testing.T, r *network.Rack) string {
	t.Helper()
	var out []byte
	if err := r.Do(func() (err error) {
		out, err = exec.Command("nft", "list", "set", "inet", "muster", "virtual").CombinedOutput()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(out), "elements = {")
	list, _, _ = strings.Cut(list, "}")
	return strings.Join(strings.Fields(list), " ")
}

// What serves volumes in the rack is reached from addresses of virtual machines, which cannot be made up, and from
// no others: also once the rack was opened again, and a slice follows a virtual machine.
func TestTapVolumes(t *testing.T) {
	root(t)
	host := newNS(t)
	r := rack(t, host)
	a0, _ := network.ManagementAddress(0)
	f, err := r.AddTap(t.Context(), 0, network.Card{MAC: net.HardwareAddr{0x52, 1, 2, 3, 4, 5}, Address: a0})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	slice := machine(t, r, 1, "")
	a1, _ := network.ManagementAddress(1)
	if got := virtual(t, r); got != a0.String() {
		t.Errorf("%q may", got)
	}
	if err := r.Do(func() error { return exec.Command("nft", "flush", "set", "inet", "muster", "virtual").Run() }); err != nil {
		t.Fatal(err)
	}
	again, err := network.OpenAt(t.Context(), r.Name(), host)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := virtual(t, again); got != a0.String() {
		t.Errorf("opened again, %q may", got)
	}
	for _, port := range []uint16{network.VolumePort, network.FirstOwnVolumePort, network.LastOwnVolumePort} {
		ln, err := again.Listen(t.Context(), netip.AddrPortFrom(network.Gateway(), port))
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		comes := func() bool {
			ok := false
			inside(t, slice, func() error {
				c, err := net.DialTimeout("tcp4", ln.Addr().String(), 300*time.Millisecond)
				if ok = err == nil; ok {
					_ = c.Close()
				}
				return nil
			})
			return ok
		}
		if comes() {
			t.Errorf("a slice comes to port %d of the volumes of virtual machines", port)
		}
		// From the address of a virtual machine it is open.
		change := func(what string) {
			if err := again.Do(func() error {
				return exec.Command("nft", what, "element", "inet", "muster", "virtual", "{ "+a1.String()+" }").Run()
			}); err != nil {
				t.Fatal(err)
			}
		}
		change("add")
		if !comes() {
			t.Errorf("no virtual machine comes to port %d", port)
		}
		change("delete")
	}
	if err := again.RemoveMachine(0); err != nil {
		t.Fatal(err)
	}
	if got := virtual(t, again); got != "" {
		t.Errorf("when it is gone, %q may", got)
	}
}

// A tap is held to a rate each way, and nothing is left of that once the machine is gone.
func TestTapRate(t *testing.T) {
	root(t)
	r := rack(t, newNS(t))
	if err := r.AddBridge(0, "c-x"); err != nil {
		t.Fatal(err)
	}
	const rate = 200e6
	f, err := r.PlugTap(t.Context(), network.Plug{Machine: 0, Bridge: 0, MTU: 9000, Speed: rate}, network.Card{MAC: net.HardwareAddr{0x52, 1, 2, 3, 4, 5}, Address: netip.MustParseAddr("10.91.0.2")})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := r.Rate(0); err != nil || got != rate {
		t.Errorf("held to %d, %v", got, err)
	}
	if err := r.RemoveMachine(0); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Rate(0); err != nil || got != 0 {
		t.Errorf("left: held to %d, %v", got, err)
	}
	if out := netdevTables(t, r); out != "" {
		t.Errorf("left: %s", out)
	}
}

// A card that is none is refused.
func TestTapRefuses(t *testing.T) {
	root(t)
	r := rack(t, newNS(t))
	for _, c := range []network.Card{{}, {MAC: broadcast, Address: netip.MustParseAddr("10.90.0.2")}, {MAC: net.HardwareAddr{0x52, 1, 2, 3, 4, 5}, Address: netip.MustParseAddr("fe80::1")}} {
		if f, err := r.AddTap(t.Context(), 0, c); err == nil {
			_ = f.Close()
			t.Errorf("%+v is a card", c)
		}
	}
	if _, err := r.PlugTap(t.Context(), network.Plug{Speed: 1e9}, network.Card{}); err == nil {
		t.Error("a card that is none has a link to a bridge that is none")
	}
}
