package wol

import (
	"net"
	"strings"

	"github.com/muster-hpc/muster"
)

const (
	macLength    = 6
	repeats      = 16
	packetLength = macLength * (repeats + 1)
	// etherType of a magic packet that is not in an IP packet.
	etherType = 0x0842
)

// packet is six bytes of FF, the address sixteen times, and the password of
// SecureOn, if there is one. A card looks for it anywhere in a frame.
func packet(mac net.HardwareAddr, password []byte) []byte {
	b := make([]byte, 0, packetLength+len(password))
	for range macLength {
		b = append(b, 0xff)
	}
	for range repeats {
		b = append(b, mac...)
	}
	return append(b, password...)
}

// parsePassword reads SecureOn's six bytes, written like an Ethernet address,
// or given raw. The error does not repeat them.
func parsePassword(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) == macLength {
		return b, nil
	}
	if p, err := net.ParseMAC(strings.TrimSpace(string(b))); err == nil && len(p) == macLength {
		return p, nil
	}
	return nil, muster.Errorf(muster.EInvalid, "the SecureOn password has not six bytes").
		WithHint("write it as six hexadecimal numbers: 01:23:45:67:89:ab")
}
