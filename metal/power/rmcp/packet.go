package rmcp

import (
	"encoding/binary"

	"github.com/muster-hpc/muster"
)

// Port is the UDP port of IPMI.
const Port = 623

// MaxPacket is the longest datagram that either side reads, in bytes.
const MaxPacket = 1024

// Type is the type of a payload (13.27.3).
type Type byte

// Payload types.
const (
	TypeIPMI        Type = 0x00
	TypeOpenRequest Type = 0x10
	TypeOpenReply   Type = 0x11
	TypeRAKP1       Type = 0x12
	TypeRAKP2       Type = 0x13
	TypeRAKP3       Type = 0x14
	TypeRAKP4       Type = 0x15
)

const (
	authNone = 0x00 // format of IPMI 1.5 without authentication
	authPlus = 0x06 // format of RMCP+

	flagEncrypted     = 0x80
	flagAuthenticated = 0x40

	headerLength = 4 + 12 // RMCP and RMCP+ headers
)

// Packet is one datagram, taken apart but not yet believed: see Keys.Open.
type Packet struct {
	// Plus tells RMCP+ from the format of IPMI 1.5, which is used for the
	// few questions before a session.
	Plus                     bool
	Type                     Type
	Encrypted, Authenticated bool
	Session, Sequence        uint32
	Payload                  []byte

	signed []byte // what the code covers
	trail  []byte // pad, its length, next header, code
}

// Parse takes a datagram apart. It returns ECORRUPT for anything that is not
// an IPMI packet of a kind this package knows. The packet shares b.
func Parse(b []byte) (Packet, error) {
	if len(b) < 5 {
		return Packet{}, corrupt("a packet of %d bytes", len(b))
	}
	if b[0] != 0x06 || b[3] != 0x07 {
		return Packet{}, corrupt("no RMCP packet of IPMI: version %d, class %d", b[0], b[3])
	}
	switch b[4] {
	case authPlus:
		return parsePlus(b)
	case authNone:
		return parsePlain(b)
	}
	return Packet{}, corrupt("authentication type %d, which is not spoken here", b[4])
}

func parsePlus(b []byte) (Packet, error) {
	if len(b) < headerLength {
		return Packet{}, corrupt("an RMCP+ packet of %d bytes", len(b))
	}
	p := Packet{
		Plus:          true,
		Type:          Type(b[5] & 0x3f),
		Encrypted:     b[5]&flagEncrypted != 0,
		Authenticated: b[5]&flagAuthenticated != 0,
		Session:       binary.LittleEndian.Uint32(b[6:]),
		Sequence:      binary.LittleEndian.Uint32(b[10:]),
	}
	n := int(binary.LittleEndian.Uint16(b[14:]))
	if len(b) < headerLength+n {
		return Packet{}, corrupt("an RMCP+ payload of %d bytes of which %d came", n, len(b)-headerLength)
	}
	p.Payload = b[headerLength : headerLength+n]
	p.trail = b[headerLength+n:]
	p.signed = b[4:]
	return p, nil
}

func parsePlain(b []byte) (Packet, error) {
	const header = 4 + 10
	if len(b) < header {
		return Packet{}, corrupt("an IPMI 1.5 packet of %d bytes", len(b))
	}
	p := Packet{
		Type:     TypeIPMI,
		Sequence: binary.LittleEndian.Uint32(b[5:]),
		Session:  binary.LittleEndian.Uint32(b[9:]),
	}
	n := int(b[13])
	if len(b) < header+n {
		return Packet{}, corrupt("an IPMI 1.5 payload of %d bytes of which %d came", n, len(b)-header)
	}
	p.Payload = b[header : header+n]
	return p, nil
}

// Plain makes an RMCP+ packet outside a session: what opens one.
func Plain(t Type, payload []byte) []byte {
	b := appendHeader(nil, byte(t), 0, 0, len(payload))
	return append(b, payload...)
}

// Plain15 makes a packet in the format of IPMI 1.5, outside a session.
func Plain15(payload []byte) []byte {
	b := []byte{0x06, 0, 0xff, 0x07, authNone, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(payload))}
	return append(b, payload...)
}

func appendHeader(b []byte, kind byte, session, sequence uint32, n int) []byte {
	b = append(b, 0x06, 0, 0xff, 0x07, authPlus, kind)
	b = binary.LittleEndian.AppendUint32(b, session)
	b = binary.LittleEndian.AppendUint32(b, sequence)
	return binary.LittleEndian.AppendUint16(b, uint16(n))
}

func corrupt(format string, args ...any) error {
	return muster.Errorf(muster.ECorrupt, "IPMI: "+format, args...).Because(muster.ReasonControllerNonsense)
}
