package dhcp

import (
	"encoding/binary"
	"net/netip"
)

// headers is how long what stands before a DHCP message in an Ethernet frame is.
const headers = 14 + 20 + 8

// sealFrame fills in the headers of a frame whose message begins at headers: for
// a machine that has no address yet and so cannot be asked for its MAC by ARP.
func sealFrame(f []byte, from, to MAC, src, dst netip.Addr) {
	copy(f[0:6], to[:])
	copy(f[6:12], from[:])
	f[12], f[13] = 0x08, 0x00
	ip, size := f[14:34], len(f)-14
	s, d := src.As4(), dst.As4()
	clear(ip)
	ip[0] = 0x45
	binary.BigEndian.PutUint16(ip[2:], uint16(size))
	ip[8], ip[9] = 64, 17
	copy(ip[12:], s[:])
	copy(ip[16:], d[:])
	binary.BigEndian.PutUint16(ip[10:], ^sum(0, ip))
	udp := f[34:]
	binary.BigEndian.PutUint16(udp[0:], 67)
	binary.BigEndian.PutUint16(udp[2:], 68)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	udp[6], udp[7] = 0, 0
	pseudo := uint32(17+len(udp)) + uint32(sum(0, s[:])) + uint32(sum(0, d[:]))
	c := ^sum(pseudo, udp)
	if c == 0 {
		c = 0xffff // 0 would say that there is none
	}
	binary.BigEndian.PutUint16(udp[6:], c)
}

// sum is the one's complement sum of the internet's checksums (RFC 1071).
func sum(n uint32, b []byte) uint16 {
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
