package netboot_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/metal/netboot"
)

// ether is one network card at which many machines sit, each with a MAC and an
// address of its own, in whole Ethernet frames: the kernel beneath knows of none
// of them.
type ether struct {
	fd    int
	byMAC sync.Map // netboot.MAC to *sim
	byIP  sync.Map // netip.Addr to *sim
}

func openEther(name string) (*ether, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 128<<20); err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return nil, err
	}
	return &ether{fd: fd}, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifi.Index})
}

func (e *ether) send(frame []byte) { _, _ = unix.Write(e.fd, frame) }

// read gives each frame to the machine that it is for.
func (e *ether) read() error {
	b := make([]byte, 1<<17)
	for {
		n, err := unix.Read(e.fd, b)
		if err != nil {
			return err
		}
		if n < 42 {
			continue
		}
		f := b[:n]
		switch binary.BigEndian.Uint16(f[12:]) {
		case 0x0806:
			e.arp(f)
		case 0x0800:
			to := netboot.MAC(f[:6])
			if to[0]&1 == 1 && n > 42+34 { // to all: whom it means stands in the message
				to = netboot.MAC(f[42+28 : 42+34])
			}
			if m, ok := e.byMAC.Load(to); ok {
				m.(*sim).hear(append([]byte(nil), f...))
			}
		}
	}
}

// arp answers for the machine that is asked for.
func (e *ether) arp(f []byte) {
	if f[21] != 1 {
		return
	}
	v, ok := e.byIP.Load(netip.AddrFrom4([4]byte(f[38:42])))
	if !ok {
		return
	}
	m := v.(*sim)
	r := make([]byte, 60)
	copy(r, f[6:12])
	copy(r[6:], m.mac[:])
	copy(r[12:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 2})
	copy(r[22:], m.mac[:])
	copy(r[28:], f[38:42])
	copy(r[32:], f[22:32])
	e.send(r)
}

// packet is what a machine sends or hears: UDP or TCP over IPv4.
type packet struct {
	protocol         byte
	src, dst         netip.Addr
	from, to         uint16
	seq, ack         uint32 // TCP
	flags            byte   // TCP
	payload, options []byte
	source           netboot.MAC
}

func sum16(n uint32, b []byte) uint16 {
	for ; len(b) >= 2; b = b[2:] {
		n += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		n += uint32(b[0]) << 8
	}
	for n > 0xffff {
		n = n>>16 + n&0xffff
	}
	return uint16(n)
}

// frame puts a packet into an Ethernet frame.
func (p packet) frame(from, to netboot.MAC) []byte {
	f := make([]byte, 34, 34+20+len(p.options)+len(p.payload))
	copy(f, to[:])
	copy(f[6:], from[:])
	f[12] = 8
	f = binary.BigEndian.AppendUint16(f, p.from)
	f = binary.BigEndian.AppendUint16(f, p.to)
	at := 34 + 6 // where the sum stands
	if p.protocol == unix.IPPROTO_TCP {
		f = binary.BigEndian.AppendUint32(f, p.seq)
		f = binary.BigEndian.AppendUint32(f, p.ack)
		f = append(f, byte(5+len(p.options)/4)<<4, p.flags, 0xff, 0xff, 0, 0, 0, 0)
		f = append(f, p.options...)
		at = 34 + 16
	} else {
		f = binary.BigEndian.AppendUint16(f, uint16(8+len(p.payload)))
		f = append(f, 0, 0)
	}
	f = append(f, p.payload...)
	h := f[14:34]
	h[0], h[8], h[9] = 0x45, 64, p.protocol
	binary.BigEndian.PutUint16(h[2:], uint16(len(f)-14))
	s, d := p.src.As4(), p.dst.As4()
	copy(h[12:], s[:])
	copy(h[16:], d[:])
	binary.BigEndian.PutUint16(h[10:], ^sum16(0, h))
	pseudo := uint32(sum16(0, h[12:20])) + uint32(p.protocol) + uint32(len(f)-34)
	binary.BigEndian.PutUint16(f[at:], ^sum16(pseudo, f[34:]))
	return f
}

// unframe reads a packet.
func unframe(f []byte) (p packet, ok bool) {
	h := f[14:]
	ip := int(h[0]&15) * 4
	size := int(binary.BigEndian.Uint16(h[2:]))
	if size == 0 { // a large one that the kernel has not cut up yet
		size = len(h)
	}
	if ip < 20 || len(h) < size || size < ip+8 {
		return p, false
	}
	p.protocol = h[9]
	p.src, p.dst = netip.AddrFrom4([4]byte(h[12:16])), netip.AddrFrom4([4]byte(h[16:20]))
	p.source = netboot.MAC(f[6:12])
	t := h[ip:size]
	p.from, p.to = binary.BigEndian.Uint16(t), binary.BigEndian.Uint16(t[2:])
	switch p.protocol {
	case unix.IPPROTO_UDP:
		p.payload = t[8:]
	case unix.IPPROTO_TCP:
		if len(t) < 20 || len(t) < int(t[12]>>4)*4 {
			return p, false
		}
		p.seq, p.ack, p.flags = binary.BigEndian.Uint32(t[4:]), binary.BigEndian.Uint32(t[8:]), t[13]
		p.payload = t[int(t[12]>>4)*4:]
	default:
		return p, false
	}
	return p, true
}
