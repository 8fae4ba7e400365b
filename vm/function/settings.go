package function

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
)

// Guard is what a card's physical function holds one of its virtual functions to.
type Guard struct {
	MAC net.HardwareAddr
	// VLAN is the network whose frames the function sends and gets, without a tag; 0: those without one.
	VLAN int
	// SpoofCheck: what bears another sender is dropped.
	SpoofCheck bool
	// Trust: the function may change what is set here.
	Trust bool
}

// String is the guard for people.
func (g Guard) String() string {
	word := map[bool]string{true: "on", false: "off"}
	return fmt.Sprintf("MAC %s, VLAN %d, spoof check %s, trust %s", g.MAC, g.VLAN, word[g.SpoofCheck], word[g.Trust])
}

func (g Guard) equal(o Guard) bool {
	return slices.Equal(g.MAC, o.MAC) && g.VLAN == o.VLAN && g.SpoofCheck == o.SpoofCheck && g.Trust == o.Trust
}

// released is that of a function that nobody has.
func released() Guard { return Guard{MAC: make(net.HardwareAddr, 6), SpoofCheck: true} }

// Settings are those that a card has of its functions.
type Settings interface {
	Set(index int, g Guard) error
	Get(index int) (Guard, error)
}

// settings opens those of a card.
func (h Host) settings(name string) (Settings, error) {
	if h.Open != nil {
		return h.Open(name)
	}
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find the interface %s: %w", name, err)
	}
	return kernel{l}, nil
}

// kernel sets by netlink.
type kernel struct{ link netlink.Link }

func (k kernel) Set(i int, g Guard) error {
	for _, s := range []struct {
		what string
		err  error
	}{
		{"MAC", netlink.LinkSetVfHardwareAddr(k.link, i, g.MAC)},
		{"VLAN", netlink.LinkSetVfVlan(k.link, i, g.VLAN)},
		{"spoof check", netlink.LinkSetVfSpoofchk(k.link, i, g.SpoofCheck)},
		{"trust", netlink.LinkSetVfTrust(k.link, i, g.Trust)},
	} {
		if s.err != nil {
			return fmt.Errorf("set the %s of function %d of %s: %w", s.what, i, k.link.Attrs().Name, s.err)
		}
	}
	return nil
}

func (k kernel) Get(i int) (Guard, error) {
	l, err := netlink.LinkByIndex(k.link.Attrs().Index)
	if err != nil {
		return Guard{}, err
	}
	for _, v := range l.Attrs().Vfs {
		if v.ID == i {
			// A card whose driver does not say answers with all bits set.
			if v.Trust > 1 {
				return Guard{}, errors.New("the driver of the card does not say whether it trusts its functions")
			}
			return Guard{MAC: v.Mac, VLAN: v.Vlan, SpoofCheck: v.Spoofchk, Trust: v.Trust == 1}, nil
		}
	}
	return Guard{}, fmt.Errorf("%s says nothing of its function %d", l.Attrs().Name, i)
}
