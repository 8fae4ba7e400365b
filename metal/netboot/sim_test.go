package netboot_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/metal/netboot"
)

// sim is a pretended machine that really boots: firmware, iPXE and initramfs as
// the service sees them.
type sim struct {
	wire   *ether
	mac    netboot.MAC
	in     chan []byte
	addr   netip.Addr
	server netip.Addr
	router netboot.MAC // the server's card
	port   uint16
}

func newSim(e *ether, mac netboot.MAC) *sim {
	m := &sim{wire: e, mac: mac, in: make(chan []byte, 256), port: 20000 + uint16(mac[4])<<8 + uint16(mac[5])}
	e.byMAC.Store(mac, m)
	return m
}

// hear takes a frame; a machine that does not listen loses it.
func (m *sim) hear(f []byte) {
	select {
	case m.in <- f:
	default:
	}
}

// next is the next packet that fits, within d.
func (m *sim) next(d time.Duration, fits func(packet) bool) (packet, bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case f := <-m.in:
			if p, ok := unframe(f); ok && fits(p) {
				return p, true
			}
		case <-t.C:
			return packet{}, false
		}
	}
}

// dhcp asks and waits for the answer of a kind, again and again as firmware does.
func (m *sim) dhcp(p *dhcpv4.DHCPv4, want dhcpv4.MessageType) (*dhcpv4.DHCPv4, error) {
	all := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	b := p.ToBytes()
	for try := range 5 {
		m.wire.send(packet{protocol: unix.IPPROTO_UDP, src: netip.IPv4Unspecified(), dst: all, from: 68, to: 67, payload: b}.
			frame(m.mac, netboot.MAC{255, 255, 255, 255, 255, 255}))
		var got *dhcpv4.DHCPv4
		_, ok := m.next(time.Second<<try, func(q packet) bool {
			if q.protocol != unix.IPPROTO_UDP || q.to != 68 {
				return false
			}
			r, err := dhcpv4.FromBytes(q.payload)
			if err != nil || r.TransactionID != p.TransactionID || !bytes.Equal(r.ClientHWAddr, m.mac[:]) {
				return false
			}
			got, m.router, m.server = r, q.source, q.src
			return true
		})
		if !ok {
			continue
		}
		if got.MessageType() != want {
			return nil, fmt.Errorf("%v instead of %v: %s", got.MessageType(), want, got.Options[56])
		}
		return got, nil
	}
	return nil, fmt.Errorf("no answer to %v", p.MessageType())
}

// lease gets an address by the four packets and returns the file to load.
func (m *sim) lease(mods ...dhcpv4.Modifier) (string, error) {
	p, err := dhcpv4.NewDiscovery(net.HardwareAddr(m.mac[:]), mods...)
	if err != nil {
		return "", err
	}
	offer, err := m.dhcp(p, dhcpv4.MessageTypeOffer)
	if err != nil {
		return "", err
	}
	p, err = dhcpv4.NewRequestFromOffer(offer, mods...)
	if err != nil {
		return "", err
	}
	p.SetUnicast()
	ack, err := m.dhcp(p, dhcpv4.MessageTypeAck)
	if err != nil {
		return "", err
	}
	a, _ := netip.AddrFromSlice(ack.YourIPAddr.To4())
	if m.addr.IsValid() && m.addr != a {
		return "", fmt.Errorf("had %v, and is given %v", m.addr, a)
	}
	m.addr = a
	m.wire.byIP.Store(a, m)
	return ack.BootFileName, nil
}

// tftp loads a file as firmware does: large blocks, one after the other.
func (m *sim) tftp(name string) ([]byte, error) {
	m.port++
	send := func(to uint16, b []byte) {
		m.wire.send(packet{protocol: unix.IPPROTO_UDP, src: m.addr, dst: m.server, from: m.port, to: to, payload: b}.frame(m.mac, m.router))
	}
	const block = 1468
	last, to := append([]byte{0, 1}, name+"\x00octet\x00tsize\x000\x00blksize\x001468\x00"...), uint16(69)
	send(to, last)
	var data []byte
	have := uint16(0)
	for quiet := 0; quiet < 8; {
		p, ok := m.next(time.Second, func(p packet) bool {
			return p.protocol == unix.IPPROTO_UDP && p.to == m.port && len(p.payload) >= 4
		})
		if !ok {
			quiet++
			send(to, last)
			continue
		}
		switch number := binary.BigEndian.Uint16(p.payload[2:]); p.payload[1] {
		case 6:
			to, last = p.from, []byte{0, 4, 0, 0}
		case 3:
			if number != have+1 {
				continue
			}
			have++
			data = append(data, p.payload[4:]...)
			to, last = p.from, binary.BigEndian.AppendUint16([]byte{0, 4}, have)
			if len(p.payload) < 4+block {
				send(to, last)
				return data, nil
			}
		default:
			return nil, fmt.Errorf("TFTP: %s", p.payload[4:])
		}
		send(to, last)
	}
	return nil, errors.New("TFTP: nothing heard")
}

const (
	fin = 1
	syn = 2
	psh = 8
	ack = 16
)

// get loads a URL by HTTP over a small TCP of its own: what comes out of order is
// dropped, and sent again by the server.
func (m *sim) get(link string) ([]byte, error) {
	u, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	to, err := netip.ParseAddrPort(u.Host)
	if err != nil {
		return nil, err
	}
	m.port++
	port := m.port
	seq, expect := uint32(port)<<16|1, uint32(0)
	send := func(flags byte, payload, options []byte) {
		m.wire.send(packet{protocol: unix.IPPROTO_TCP, src: m.addr, dst: to.Addr(), from: port, to: to.Port(), seq: seq, ack: expect, flags: flags, payload: payload, options: options}.frame(m.mac, m.router))
	}
	hear := func(d time.Duration) (packet, bool) {
		return m.next(d, func(p packet) bool { return p.protocol == unix.IPPROTO_TCP && p.to == port && p.from == to.Port() })
	}
	for try := 0; ; try++ {
		send(syn, nil, []byte{2, 4, 5, 180})
		if p, ok := hear(time.Second); ok && p.flags&(syn|ack) == syn|ack {
			seq, expect = seq+1, p.seq+1
			break
		}
		if try == 5 {
			return nil, errors.New("HTTP: no connection")
		}
	}
	ask := []byte("GET " + u.Path + " HTTP/1.1\r\nHost: " + u.Host + "\r\nConnection: close\r\n\r\n")
	send(ack|psh, ask, nil)
	var data []byte
	for quiet := 0; ; {
		p, ok := hear(time.Second)
		if !ok {
			if quiet++; quiet == 20 {
				return nil, fmt.Errorf("HTTP: nothing heard after %d bytes", len(data))
			}
			if len(data) == 0 {
				send(ack|psh, ask, nil)
			} else {
				seq += uint32(len(ask))
				send(ack, nil, nil)
				seq -= uint32(len(ask))
			}
			continue
		}
		if p.flags&4 != 0 {
			return nil, fmt.Errorf("HTTP: connection reset after %d bytes", len(data))
		}
		// What was heard already may come again, with new bytes behind it.
		old := expect - p.seq
		if int32(old) < 0 || int(old) > len(p.payload) || len(p.payload) == 0 && p.flags&fin == 0 {
			if len(p.payload) > 0 {
				seq += uint32(len(ask))
				send(ack, nil, nil)
				seq -= uint32(len(ask))
			}
			continue
		}
		data = append(data, p.payload[old:]...)
		expect += uint32(len(p.payload)) - old
		end := p.flags&fin != 0
		seq += uint32(len(ask))
		if end {
			expect++
			send(fin|ack, nil, nil)
			return body(data)
		}
		send(ack, nil, nil)
		seq -= uint32(len(ask))
	}
}

func body(data []byte) ([]byte, error) {
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(data)), nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP: %s", res.Status)
	}
	return b, err
}

// boot is one whole boot; it ends where the initramfs would say hello. breaks has
// it end after the first answer, as a machine does whose disk or cable is bad.
func (m *sim) boot(breaks bool) error {
	pxe := []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00000:UNDI:002001")), dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(93), []byte{0, 0}),
		dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(97), append([]byte{0}, "0123456789abcdef"...)),
	}
	loader, err := m.lease(pxe...)
	if err != nil {
		return fmt.Errorf("firmware: %w", err)
	}
	if breaks {
		return errors.New("broken")
	}
	data, err := m.tftp(loader)
	if err != nil || len(data) < 60_000 {
		return fmt.Errorf("%s: %d bytes, %w", loader, len(data), err)
	}
	script, err := m.lease(append(pxe, dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(77), []byte("iPXE")), dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(61), []byte{1, 2, 3}))...)
	if err != nil {
		return fmt.Errorf("iPXE: %w", err)
	}
	text, err := m.get(script)
	if err != nil {
		return fmt.Errorf("script %s: %w", script, err)
	}
	links := regexp.MustCompile(`http://\S+/(kernel|initramfs)`).FindAllString(string(text), -1)
	if len(links) != 2 || !strings.Contains(string(text), "muster.boot=") {
		return fmt.Errorf("script: %s", text)
	}
	for _, link := range links {
		data, err := m.get(link)
		if err != nil || len(data) < 80_000 {
			return fmt.Errorf("%s: %d bytes, %w", link, len(data), err)
		}
	}
	if _, err := m.lease(dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(61), []byte{255, 1, 2, 3, 4})); err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	return nil
}

// beside asks for a boot loader as firmware does that has its address from another
// server: by the offer, and at port 4011 if that names none.
func (m *sim) beside(arch byte) (out answer) {
	ours := netip.AddrFrom4([4]byte{10, 113, 0, 1})
	m.addr = netip.AddrFrom4([4]byte{10, 113, 40, m.mac[5]})
	m.wire.byIP.Store(m.addr, m)
	p, err := dhcpv4.NewDiscovery(net.HardwareAddr(m.mac[:]),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient")), dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(93), []byte{0, arch}))
	if err != nil {
		return answer{err: err}
	}
	ask := func(to netip.Addr, port uint16, mac netboot.MAC) (*dhcpv4.DHCPv4, error) {
		for range 5 {
			m.wire.send(packet{protocol: unix.IPPROTO_UDP, src: addr(p.ClientIPAddr), dst: to, from: 68, to: port, payload: p.ToBytes()}.frame(m.mac, mac))
			if q, ok := m.next(time.Second, func(q packet) bool { return q.protocol == unix.IPPROTO_UDP && q.to == 68 && q.src == ours }); ok {
				m.router = q.source
				return dhcpv4.FromBytes(q.payload)
			}
		}
		return nil, fmt.Errorf("no answer at port %d", port)
	}
	got, err := ask(netip.AddrFrom4([4]byte{255, 255, 255, 255}), 67, netboot.MAC{255, 255, 255, 255, 255, 255})
	if err != nil {
		return answer{err: err}
	}
	if out.offered = got.BootFileName; out.offered != "" {
		return out
	}
	p.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeRequest))
	p.ClientIPAddr = m.addr.AsSlice()
	if got, out.err = ask(ours, 4011, m.router); out.err == nil {
		out.acked = got.BootFileName
	}
	return out
}

func addr(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip.To4())
	return a
}
