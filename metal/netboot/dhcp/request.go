package dhcp

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/muster-hpc/muster"
)

// Request is what a machine, or a relay for it, asked. Its slices are valid only
// during the call that it is passed to.
type Request struct {
	Type     dhcpv4.MessageType
	MAC      MAC
	Firmware Firmware
	// IPXE is true when iPXE asks; HTTP when it can load by HTTP.
	IPXE, HTTP bool
	// UUID is that of the machine's SMBIOS as PXE tells it, empty without.
	UUID []byte
	// Hostname is what the machine calls itself. It proves nothing.
	Hostname string
	// Evidence is what the network says about where the request came from.
	Evidence Evidence

	xid       uint32
	flags     uint16
	client    netip.Addr // ciaddr: the address that the machine has
	wanted    netip.Addr // option 50
	server    netip.Addr // option 54
	asks      []byte     // option 55: which options it would like
	clientID  []byte     // option 61, to be echoed
	agentInfo []byte     // option 82, to be echoed
	pxe       bool       // option 60 begins with PXEClient
	arch      []byte     // option 93 as it came, for messages
}

// Evidence is where a request came from, as the network tells it.
type Evidence struct {
	Interface string     // the interface that it came in by
	Relay     netip.Addr // the relay that passed it on; invalid: it came directly
	Link      netip.Addr // an address of the machine's network, by the relay
	// Trusted is true when the relay is one that the site named, so that
	// Circuit and Remote were not written by the machine itself.
	Trusted bool
	Circuit []byte // option 82: the switch port, in the switch's own words
	Remote  []byte // option 82: the switch
}

// malformed is the one error of packets: nobody but a log is told.
func malformed(what string) *muster.Error {
	return muster.Errorf(muster.EInvalid, "not a DHCP request: %s", what)
}

// parse reads a packet from a client or a relay.
func parse(b []byte) (*Request, error) {
	p, err := dhcpv4.FromBytes(b)
	if err != nil {
		return nil, malformed("cannot be read").Wrap(err)
	}
	switch {
	case p.OpCode != dhcpv4.OpcodeBootRequest:
		return nil, malformed("it is a reply")
	case p.HWType != 1 || len(p.ClientHWAddr) != 6:
		return nil, malformed("hardware address is not Ethernet's")
	}
	r := &Request{Type: p.MessageType(), MAC: MAC(p.ClientHWAddr), flags: p.Flags, xid: binary.BigEndian.Uint32(p.TransactionID[:])}
	if !r.MAC.Real() {
		return nil, malformed("MAC address is empty or a group's")
	}
	get := func(code uint8) []byte { return p.Options[code] }
	r.client = addr4(p.ClientIPAddr)
	r.Evidence.Relay = addr4(p.GatewayIPAddr)
	r.wanted, r.server = addr4(get(50)), addr4(get(54))
	r.asks, r.clientID, r.agentInfo = get(55), get(61), get(82)
	if u := get(97); len(u) == 17 && u[0] == 0 {
		r.UUID = u[1:]
	}
	r.Hostname = label(get(12))
	class := get(60)
	r.pxe = bytes.HasPrefix(class, []byte("PXEClient"))
	if r.arch = get(93); r.arch != nil {
		r.Firmware = firmwareOf(r.arch)
	} else if r.pxe {
		r.Firmware = BIOS // before option 93 there was nothing else
	}
	// An HTTP client that says a PXE architecture, and the other way round, is
	// told what its class asks for.
	if bytes.HasPrefix(class, []byte("HTTPClient")) {
		switch r.Firmware {
		case UEFI:
			r.Firmware = UEFIHTTP
		case ARM64:
			r.Firmware = ARM64HTTP
		}
	}
	r.readIPXE(get(77), get(175))
	r.readAgent()
	return r, nil
}

// readIPXE tells iPXE by its user class, written with a length before it (RFC
// 3004) or, as iPXE does, without; and what it can do by the features that it
// lists in option 175. A list without HTTP is a ROM that was built without it.
func (r *Request) readIPXE(class, features []byte) {
	name := []byte("iPXE")
	r.IPXE = bytes.Equal(class, name)
	for c := class; !r.IPXE && len(c) > 0 && len(c) > int(c[0]); c = c[1+int(c[0]):] {
		r.IPXE = bytes.Equal(c[1:1+int(c[0])], name)
	}
	r.HTTP = r.IPXE
	if r.IPXE && len(features) > 0 {
		const http = 0x13
		_, r.HTTP = suboption(features, http)
	}
}

// readAgent reads option 82 (RFC 3046) and the link that it selects (RFC 3527).
func (r *Request) readAgent() {
	r.Evidence.Circuit, _ = suboption(r.agentInfo, 1)
	r.Evidence.Remote, _ = suboption(r.agentInfo, 2)
	if link, ok := suboption(r.agentInfo, 5); ok {
		r.Evidence.Link = addr4(link)
	}
	if !r.Evidence.Link.IsValid() {
		r.Evidence.Link = r.Evidence.Relay
	}
}

// suboption finds one option inside another.
func suboption(b []byte, code byte) ([]byte, bool) {
	for len(b) >= 2 && b[0] != 255 {
		if b[0] == 0 {
			b = b[1:]
			continue
		}
		n := int(b[1])
		if len(b) < 2+n {
			return nil, false
		}
		if b[0] == code {
			return b[2 : 2+n], true
		}
		b = b[2+n:]
	}
	return nil, false
}

// addr4 is an IPv4 address of four bytes, invalid for anything else and for
// 0.0.0.0, which stands for none.
func addr4(b []byte) netip.Addr {
	if len(b) != 4 || [4]byte(b) == [4]byte{} {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(b))
}

// label is a host name without what could confuse a log or a terminal.
func label(b []byte) string {
	if len(b) > 63 {
		b = b[:63]
	}
	for _, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !letter && c != '-' && c != '.' {
			return ""
		}
	}
	return string(b)
}

// asksFor says whether the client listed an option.
func (r *Request) asksFor(code byte) bool { return bytes.IndexByte(r.asks, code) >= 0 }

// broadcast says whether the client cannot receive packets to an address that it
// does not have yet.
func (r *Request) broadcast() bool { return r.flags&0x8000 != 0 }
