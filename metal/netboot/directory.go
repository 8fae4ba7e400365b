package netboot

import (
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/metal/netboot/httpboot"
)

// Words of the parts, so that who uses the service needs only this package.
type (
	// MAC is the address of an Ethernet port, and the name of a machine here.
	MAC = dhcp.MAC
	// Request is what a machine asked by DHCP.
	Request = dhcp.Request
	// Verdict is what a machine may have.
	Verdict = dhcp.Verdict
	// Network is one network whose machines are answered.
	Network = dhcp.Network
)

// Directory says what machines are to do. It answers from memory, may be asked by
// several goroutines, and must not call back into the Service.
type Directory interface {
	// Decide says what the machine that asks may have. It is asked for every
	// packet, so what it returns may change from one to the next.
	Decide(r *Request) Verdict
	// Holds says whether the machine's node is up, so that its lease does not run
	// out.
	Holds(m MAC) bool
	// Boot says what a boot's number means; false once it is over.
	Boot(number string) (Boot, bool)
}

// Boot is what was ordered for one machine.
type Boot struct {
	// MACs are the machine's: only from an address that one of them has is the
	// boot to be seen.
	MACs []MAC
	// Seen is called each time the machine itself asks for something of its boot; nil:
	// nobody wants to know. Whoever else asks for it finds nothing, and is no sign of life.
	Seen func()
	httpboot.Boot
}
