package dhcp

import (
	"encoding/binary"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// reply is what is answered, and to whom.
type reply struct {
	request *Request
	network *Network // nil in mode Proxy
	verdict Verdict
	kind    dhcpv4.MessageType
	proxy   bool
	address netip.Addr // yiaddr
	client  netip.Addr // ciaddr: the machine has this address already
	to      netip.Addr // where it goes, when not by a relay; invalid: to all
	from    uint16     // the port that the machine asked from
	file    string     // loader's name, or a URL
	why     string     // for NAK and the operator
}

// says is the reply for the operator.
func (r *reply) says() string {
	switch {
	case r.file != "":
		return "load " + r.file
	case r.why != "":
		return "no boot loader: " + r.why
	}
	return ""
}

// What is answered.
const (
	offer = dhcpv4.MessageTypeOffer
	ack   = dhcpv4.MessageTypeAck
	nak   = dhcpv4.MessageTypeNak
)

// maxReply is more than any reply is long: headers, 127 bytes of file name in two
// places, and options that are echoed with at most 255 bytes each, of which the
// relay's may be several times that.
const maxReply = 4096

// append encodes the reply (RFC 2131) without allocating, given room.
func (r *reply) append(b []byte, self netip.Addr) []byte {
	q := r.request
	start := len(b)
	b = append(b, 2, 1, 6, 0)
	b = binary.BigEndian.AppendUint32(b, q.xid)
	b = append(b, 0, 0)
	flags := q.flags
	if r.kind == nak && q.Evidence.Relay.IsValid() {
		flags |= 0x8000 // the relay is to send it to all: the address is wrong
	}
	b = binary.BigEndian.AppendUint16(b, flags)
	b = appendAddr(b, r.client)
	b = appendAddr(b, r.address)
	next := netip.Addr{}
	if r.file != "" && r.kind != nak {
		next = self
	}
	b = appendAddr(b, next)
	b = appendAddr(b, q.Evidence.Relay)
	b = append(b, q.MAC[:]...)
	b = append(b, make([]byte, 10+64)...)
	file := len(b)
	b = append(b, make([]byte, 128)...)
	if len(r.file) < 128 && r.kind != nak {
		copy(b[file:], r.file)
	}
	b = append(b, 99, 130, 83, 99) // the cookie that options follow
	b = append(b, 53, 1, byte(r.kind))
	b = append(b, 54, 4)
	b = appendAddr(b, self)
	switch {
	case r.kind == nak:
		b = appendOption(b, 56, r.why)
	case r.proxy:
	default:
		b = r.appendNetwork(b)
	}
	if r.kind != nak {
		b = r.appendBoot(b)
	}
	b = appendBytes(b, 61, q.clientID) // RFC 6842
	b = appendBytes(b, 82, q.agentInfo)
	b = append(b, 255)
	// Relays and clients of the time of BOOTP drop shorter ones.
	for len(b)-start < 300 {
		b = append(b, 0)
	}
	return b
}

// appendNetwork reports what a machine must know of its network.
func (r *reply) appendNetwork(b []byte) []byte {
	n := r.network
	if r.address.IsValid() {
		lease := uint32(n.Lease.Seconds())
		b = appendSeconds(b, 51, lease)
		b = appendSeconds(b, 58, lease/2)
		b = appendSeconds(b, 59, lease/8*7)
	}
	b = append(b, 1, 4)
	b = binary.BigEndian.AppendUint32(b, ^uint32(0)<<(32-n.Prefix.Bits()))
	b = appendAddrs(b, 3, n.Routers)
	b = appendAddrs(b, 6, n.DNS)
	b = appendOption(b, 12, r.verdict.Hostname)
	b = appendOption(b, 15, n.Domain)
	if n.MTU > 0 && r.request.asksFor(26) {
		b = append(b, 26, 2)
		b = binary.BigEndian.AppendUint16(b, uint16(n.MTU))
	}
	return b
}

// appendBoot reports what to load.
func (r *reply) appendBoot(b []byte) []byte {
	q := r.request
	http := q.Firmware.HTTP() && !q.IPXE
	switch {
	case http && r.file != "":
		b = appendOption(b, 60, "HTTPClient") // or UEFI does not take it for an answer
	case r.proxy:
		b = appendOption(b, 60, "PXEClient")
		if r.file != "" {
			// Discovery control: the name in this packet, and no more questions.
			b = append(b, 43, 4, 6, 1, 8, 255)
		}
	}
	if len(q.UUID) == 16 && (q.pxe || q.IPXE) {
		b = append(b, 97, 17, 0)
		b = append(b, q.UUID...)
	}
	if r.file == "" {
		return b
	}
	if http || len(r.file) >= 128 || q.asksFor(67) {
		b = appendOption(b, 67, r.file)
		// Some ROMs read the name to a zero and not to its end: the option of one byte
		// that means nothing is one.
		b = append(b, 0)
	}
	if q.IPXE {
		// iPXE would wait for further offers from PXE servers.
		b = append(b, 175, 3, 176, 1, 1)
	}
	return b
}

func appendAddr(b []byte, a netip.Addr) []byte {
	if !a.Is4() {
		return append(b, 0, 0, 0, 0)
	}
	v := a.As4()
	return append(b, v[:]...)
}

func appendAddrs(b []byte, code byte, list []netip.Addr) []byte {
	if len(list) == 0 {
		return b
	}
	list = list[:min(len(list), 63)]
	b = append(b, code, byte(4*len(list)))
	for _, a := range list {
		b = appendAddr(b, a)
	}
	return b
}

func appendSeconds(b []byte, code byte, n uint32) []byte {
	b = append(b, code, 4)
	return binary.BigEndian.AppendUint32(b, n)
}

func appendOption(b []byte, code byte, s string) []byte {
	if s == "" {
		return b
	}
	s = s[:min(len(s), 255)]
	b = append(b, code, byte(len(s)))
	return append(b, s...)
}

// appendBytes echoes an option; a long one is told in pieces (RFC 3396).
func appendBytes(b []byte, code byte, v []byte) []byte {
	for len(v) > 0 {
		n := min(len(v), 255)
		b = append(b, code, byte(n))
		b = append(b, v[:n]...)
		v = v[n:]
	}
	return b
}
