package dhcp

import (
	"net/netip"
	"strconv"

	"github.com/muster-hpc/muster"
)

// Mode is what a Server does on its interface.
type Mode int

// Modes.
const (
	// Serve lends addresses and names boot loaders.
	Serve Mode = iota
	// Proxy names boot loaders beside a site's DHCP server, which lends the
	// addresses.
	Proxy
)

// Config is what a Server needs.
type Config struct {
	Interface string     // the one interface that is served
	Address   netip.Addr // this server's address on it
	Mode      Mode
	// Networks that are answered: in mode Serve that of the interface, where its
	// machines are to get addresses, and those behind relays. In mode Proxy only
	// Prefix and Relays of each count.
	Networks []Network
	Loaders  Loaders
	// TrustSwitch believes option 82 in requests that came by no relay, because
	// every port of the switch in front adds its own or drops the machine's.
	TrustSwitch bool

	Directory Directory
	Leases    Leases // nil: forgotten when the process ends
	Clock     muster.Clock
	// Note is told what was done for a machine, for the operator. It is called
	// for every packet that means something and must be quick. May be nil.
	Note func(Note)
}

// Note is one thing that happened to one machine.
type Note struct {
	MAC     MAC
	Address netip.Addr // the machine's, if it has one
	// Stage is one word: discover, offer, ack, nak, decline, release, conflict,
	// proxy, refused.
	Stage string
	Text  string
}

// check returns every problem of the configuration at once.
func (c *Config) check() error {
	var problems []muster.Problem
	if !c.Address.Is4() {
		problems = append(problems, muster.Problem{Field: "address", Message: c.Address.String() + " is not an IPv4 address", Hint: "give the server's own address on that interface"})
	}
	if len(c.Networks) == 0 {
		problems = append(problems, muster.Problem{Field: "networks", Message: "no network to answer", Hint: "name at least that of the interface"})
	}
	for i := range c.Networks {
		n := &c.Networks[i]
		if c.Mode == Proxy {
			n.Ranges, n.Discovery, n.Lease = nil, nil, offerHold
		}
		problems = append(problems, n.problems("networks["+strconv.Itoa(i)+"]", c.Address)...)
		for j := range i {
			if c.Networks[j].Prefix.Overlaps(n.Prefix) {
				problems = append(problems, muster.Problem{Field: "networks[" + strconv.Itoa(i) + "].prefix", Message: n.Prefix.String() + " overlaps " + c.Networks[j].Prefix.String(), Hint: "name each network once"})
			}
		}
	}
	if c.Directory == nil || c.Clock == nil {
		problems = append(problems, muster.Problem{Field: "directory", Message: "no directory or no clock"})
	}
	if problems == nil {
		return nil
	}
	e := muster.Errorf(muster.EInvalid, "the boot service on %s cannot be set up", c.Interface).
		WithHint("change what is listed")
	return e.Listing(problems)
}
