package dhcp

import (
	"fmt"
	"net"

	"github.com/muster-hpc/muster"
)

// MAC is the address of an Ethernet port, and the name of a machine here.
type MAC [6]byte

// ParseMAC reads any usual way to write six bytes: 02:ab:.., 02-AB-.., 02ab.cd...
func ParseMAC(s string) (MAC, error) {
	b, err := net.ParseMAC(s)
	if err != nil || len(b) != 6 {
		return MAC{}, muster.Errorf(muster.EInvalid, "%q is not a MAC address", s).
			WithHint("write six bytes in hexadecimal, as in 02:1a:2b:3c:4d:5e")
	}
	return MAC(b), nil
}

// String is 02:1a:2b:3c:4d:5e.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// Real says whether a machine can have this address: it is neither empty nor
// one that means several receivers.
func (m MAC) Real() bool { return m != MAC{} && m[0]&1 == 0 }
