package muster

import (
	"encoding/hex"
	"net"
	"strings"
)

// Lengths of the addresses of interfaces, in bytes.
const (
	macBytes   = 6  // Ethernet
	guidBytes  = 8  // the GUID of an InfiniBand port
	ipoibBytes = 20 // InfiniBand as the kernel shows it: flags, queue pair and GID, which ends with the GUID
)

const hintMAC = "write it as 52:54:00:12:34:56, or the GUID of an InfiniBand port as 00:02:c9:03:00:0a:1b:2c"

// ParseMAC writes the address of a network interface as Muster does: of Ethernet
// aa:bb:cc:dd:ee:ff; of InfiniBand the GUID of the port, 00:02:c9:03:00:0a:1b:2c. It takes
// what people write: dashes, dots, upper case; and of InfiniBand what tools print:
// 0x0002c903000a1b2c, 0002:c903:000a:1b2c, and the 20 bytes of "ip link", of which only the
// GUID at the end is the same after each boot.
func ParseMAC(s string) (string, error) {
	bad := func(why string) (string, error) {
		return "", Errorf(EInvalid, "%.70q is not the address of a network interface: %s", s, why).Because(ReasonBadAddress).WithHint("%s", hintMAC)
	}
	s = strings.TrimSpace(s)
	m, err := net.ParseMAC(s)
	if err != nil {
		if m = parseGUID(s); m == nil {
			return bad("it cannot be read")
		}
	}
	switch len(m) {
	case macBytes:
		if m[0]&1 != 0 {
			return bad("it is one of a group")
		}
	case guidBytes:
	case ipoibBytes:
		m = m[ipoibBytes-guidBytes:]
	default:
		return bad("it has neither the six bytes of Ethernet nor the 8 or 20 of InfiniBand")
	}
	if strings.Trim(m.String(), "0:") == "" {
		return bad("it is unassigned")
	}
	return m.String(), nil
}

// parseGUID reads 16 hexadecimal digits, in one piece or in groups of four; nil: it is none.
func parseGUID(s string) net.HardwareAddr {
	digits := strings.TrimPrefix(strings.ToLower(s), "0x")
	if parts := strings.Split(digits, ":"); len(parts) == 4 {
		for _, p := range parts {
			if len(p) != 4 {
				return nil
			}
		}
		digits = strings.Join(parts, "")
	}
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != guidBytes {
		return nil
	}
	return b
}

// IsGUID reports whether an address that ParseMAC wrote is of an InfiniBand port.
func IsGUID(mac string) bool { return len(mac) == 3*guidBytes-1 }
