package boot

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// NIC is a network card as the kernel shows it.
type NIC struct {
	Name    string
	MAC     string // of InfiniBand the port's GUID: see muster.ParseMAC
	Carrier bool   // a cable with something at its other end
	Speed   int64  // bits/s; 0: its card does not tell
}

// Lease is what DHCP says.
type Lease struct {
	Address netip.Prefix
	Gateway netip.Addr // may be none
	MTU     int        // 0: not said
	Renew   time.Duration
}

// Network is what stages need of the machine's network.
type Network interface {
	// NICs lists the network cards that there are now, by name.
	NICs() ([]NIC, error)
	// Up starts a NIC; a carrier comes some seconds later.
	Up(name string) error
	// Lease asks for an address, once, for as long as ctx allows.
	Lease(ctx context.Context, name string) (Lease, error)
	// Use gives a NIC its leased address.
	Use(name string, l Lease) error
	// Apply names the NICs and gives them the addresses that they keep.
	Apply(links []wire.BootLink) error
}

// lease is where the machine speaks from.
type lease struct {
	NIC
	Lease
	at time.Duration // by the kernel's clock
}

// Times of the search for a NIC. A switch port takes up to half a minute before it
// lets traffic through.
const (
	carrierWait = 45 * time.Second
	leaseWait   = 12 * time.Second
	nicPoll     = 20 * time.Millisecond
)

// find waits for the NIC with a MAC, or for any where mac is "", and tells people
// about it from time to time.
func find(ctx context.Context, n Network, c muster.Clock, mac string, say func(string, ...any)) ([]NIC, error) {
	began, told := c.Now(), c.Now()
	for {
		all, err := n.NICs()
		if err == nil {
			if i := slices.IndexFunc(all, func(x NIC) bool { return x.MAC == mac }); i >= 0 {
				return all[i : i+1], nil
			}
			if some := ethernet(all); mac == "" && len(some) > 0 {
				return some, nil
			}
		}
		if now := c.Now(); now.Sub(told) > 10*time.Second {
			told = now
			say("drivers: waiting for %s for %d s; there is %s", wanted(mac), int(now.Sub(began).Seconds()), listNICs(all))
		}
		if err := sleep(ctx, c, nicPoll); err != nil {
			return nil, noNIC(mac, all)
		}
	}
}

// ethernet are the NICs that a machine can boot from.
func ethernet(all []NIC) []NIC {
	return slices.DeleteFunc(slices.Clone(all), func(x NIC) bool { return muster.IsGUID(x.MAC) })
}

func wanted(mac string) string {
	if mac == "" {
		return "a network card"
	}
	return "the network card " + mac + " that was booted from"
}

func noNIC(mac string, all []NIC) error {
	return muster.Errorf(muster.EUnavailable, "%s does not appear; there is %s", wanted(mac), listNICs(all)).
		WithHint("the image's kernel has no driver for it, or the card needs a firmware from a file: use another port, or an image with another kernel")
}

func listNICs(all []NIC) string {
	if len(all) == 0 {
		return "none"
	}
	var out []string
	for _, x := range all {
		out = append(out, x.Name+" "+x.MAC)
	}
	return strings.Join(out, ", ")
}

// address gets an address for one of the NICs, the first that has a carrier and is
// answered. It tries for as long as ctx allows.
func address(ctx context.Context, n Network, c muster.Clock, nics []NIC, say func(string, ...any)) (lease, error) {
	for _, x := range nics {
		if err := n.Up(x.Name); err != nil {
			say("address: %s cannot be started: %s", x.Name, describe(err))
		}
	}
	began, told := c.Now(), c.Now()
	var last error
	p := pauses{first: 250 * time.Millisecond, most: 8 * time.Second, clock: c}
	for {
		live, err := carriers(n, nics)
		if err != nil {
			return lease{}, err
		}
		if len(live) == 0 {
			if now := c.Now(); now.Sub(began) > carrierWait && now.Sub(told) > 10*time.Second {
				told = now
				say("address: %s has no carrier for %d s: look at its cable and its switch port", listNICs(nics), int(now.Sub(began).Seconds()))
			}
			if sleep(ctx, c, nicPoll) != nil {
				return lease{}, noAddress(nics, last)
			}
			continue
		}
		for _, x := range live {
			try, cancel := context.WithTimeout(ctx, leaseWait)
			var l Lease
			l, last = n.Lease(try, x.Name)
			cancel()
			if last == nil {
				last = n.Use(x.Name, l)
			}
			if last == nil {
				return lease{NIC: x, Lease: l}, nil
			}
			say("address: %s: %s", x.Name, describe(last))
		}
		if p.wait(ctx) != nil {
			return lease{}, noAddress(nics, last)
		}
	}
}

func noAddress(nics []NIC, last error) error {
	if last == nil {
		return muster.Errorf(muster.EUnavailable, "%s has no carrier", listNICs(nics)).WithHint("look at its cable and its switch port")
	}
	return muster.Errorf(muster.EUnavailable, "no address for %s", listNICs(nics)).
		WithHint("look whether the boot server answers on this network and knows the MAC").Wrap(last)
}

// carriers are those of the NICs that have one now.
func carriers(n Network, nics []NIC) ([]NIC, error) {
	all, err := n.NICs()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(x NIC) bool {
		return !x.Carrier || !slices.ContainsFunc(nics, func(y NIC) bool { return y.MAC == x.MAC })
	}), nil
}
