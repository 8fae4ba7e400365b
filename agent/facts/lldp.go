package facts

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
)

// etherLLDP is the protocol of frames in which switches say who they are: IEEE
// 802.1AB.
const etherLLDP = 0x88cc

// parseLLDP reads the content of one frame, after its Ethernet header. false: it
// is none, or is cut off.
func parseLLDP(b []byte) (n muster.Neighbour, ok bool) {
	seen := 0 // the first three are chassis, port and time to live
	for len(b) >= 2 {
		head := binary.BigEndian.Uint16(b)
		kind, size := head>>9, int(head&0x1ff)
		b = b[2:]
		if size > len(b) {
			return n, false
		}
		v := b[:size]
		b = b[size:]
		if seen < 3 && int(kind) != seen+1 {
			return n, false
		}
		seen++
		switch kind {
		case 0:
			return n, seen > 3
		case 1:
			n.Chassis = lldpID(v, 4, 5)
		case 2:
			n.Port = lldpID(v, 3, 4)
		case 4:
			n.Text = printed(v)
		case 5:
			n.System = printed(v)
		case 127: // of an organization: 00-80-C2 is IEEE 802.1, its 1 the port's VLAN
			if len(v) >= 6 && v[0] == 0 && v[1] == 0x80 && v[2] == 0xc2 && v[3] == 1 {
				n.VLAN = int(binary.BigEndian.Uint16(v[4:]) & 0xfff)
			}
		}
	}
	return n, seen >= 3 // the end is left out by some
}

// lldpID reads a number of a chassis or a port: its kind, then what that means. mac
// and address are the kinds that are not text.
func lldpID(v []byte, mac, address byte) string {
	if len(v) < 2 {
		return ""
	}
	kind, v := v[0], v[1:]
	switch {
	case kind == mac && len(v) == 6:
		return net.HardwareAddr(v).String()
	case kind == address && (v[0] == 1 || v[0] == 2):
		if a, ok := netip.AddrFromSlice(v[1:]); ok {
			return a.String()
		}
		return ""
	case kind == mac || kind == address:
		return fmt.Sprintf("%x", v[:min(len(v), 32)])
	}
	return printed(v)
}

// printed makes one line of what a switch says.
func printed(v []byte) string {
	s := strings.ReplaceAll(cleantext.Line(string(v)), "\ufffd", " ")
	return strings.Join(strings.Fields(s), " ")
}
