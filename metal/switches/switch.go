package switches

import (
	"context"
	"net"
	"time"
)

// Switch is one switch. Its methods may be called by many at once.
type Switch interface {
	// Ports reports how ports are, all of them where none is named, sorted by name.
	// Returns ENotFound, which names every port that is not there.
	Ports(ctx context.Context, names ...string) ([]Port, error)
	// Set configures ports as they are wanted, in one change where the switch can, and
	// returns nil only once the switch has been read and says so. Ports that are
	// so already are not touched. Returns EInvalid or ENotFound with every fault
	// at once before anything is changed; EUnavailable when the switch does not
	// answer, or does not do it.
	Set(ctx context.Context, wants ...Want) error
	// Addresses reports what the switch has learned: which MAC was seen where.
	Addresses(ctx context.Context) ([]Address, error)
}

// Want is how a port is to be.
type Want struct {
	Port string
	// VLAN is the network of what comes without a tag, 1 to MaxVLAN.
	VLAN int
	// Isolated ports of a network reach only ports that are not isolated.
	Isolated bool
	// Closed ports pass nothing in either direction. VLAN and Isolated are kept
	// for when it is opened.
	Closed bool
}

// MaxVLAN is the highest network that may be asked for. Those above are for
// switches' own use, such as a place for closed ports.
const MaxVLAN = 4000

// Port is how a port is.
type Port struct {
	Want
	// Link reports whether something is connected and powered.
	Link bool
	// Speed is what the link was agreed to carry, in bits/s; 0: the switch does not
	// say. It follows every change of the link.
	Speed int64
	// In counts what came into the switch by this port, Out what left by it.
	In, Out Counter
}

// Counter counts what passed since the switch started.
type Counter struct {
	Bytes, Frames, Dropped, Errors uint64
}

// Address is one line of a switch's table.
type Address struct {
	MAC  net.HardwareAddr
	VLAN int
	Port string
	Age  time.Duration // since it was last seen
}
