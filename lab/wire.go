package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/lab/machine"
	"github.com/muster-hpc/muster/lab/sleep"
	"github.com/muster-hpc/muster/metal/switches"
	"github.com/muster-hpc/muster/provider/local/network"
)

// ManagementVLAN is the network in which every machine meets the server and nobody
// else.
const ManagementVLAN = 1

// wiring makes the namespaces, the devices of all ports, and the server's end.
func (l *Lab) wiring(c Config, list []machine.Config) error {
	wires, err := network.OpenNamespace(l.wires(), true)
	if err != nil {
		return err
	}
	defer func() { _ = wires.Close() }()
	house, err := network.OpenNamespace(l.Namespace(), true)
	if err != nil {
		return err
	}
	defer func() { _ = house.Close() }()
	if err := wires.Do(func() error { return mute(list) }); err != nil {
		return err
	}
	if err := house.Do(func() error { return up("lo") }); err != nil {
		return err
	}
	if err := l.serverEnd(c, wires, house); err != nil {
		return err
	}
	if c.NoBMC {
		return nil
	}
	return controllerEnd(c, wires, house, len(list))
}

// mute makes the machines' devices, on which this host itself says nothing.
func mute(list []machine.Config) error {
	for _, s := range []string{"net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6"} {
		if err := sysctl(s, "1"); err != nil {
			return err
		}
	}
	for _, m := range list {
		for _, n := range m.NICs {
			if err := sleep.CreateTap(n.Port); err != nil {
				return err
			}
		}
	}
	return nil
}

func sysctl(name, value string) error {
	err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a kernel without it has nothing to be told
	}
	return err
}

// serverEnd is the wire between the switch and the server.
func (l *Lab) serverEnd(c Config, wires, house *network.Namespace) error {
	name, there := Inside, house.Do
	target := house.File()
	if c.Uplink != "" {
		self, err := os.Open("/proc/self/ns/net")
		if err != nil {
			return err
		}
		defer self.Close()
		name, target, there = c.Uplink, self, func(f func() error) error { return f() }
		if err := there(func() error { return l.free(c) }); err != nil {
			return err
		}
	}
	if err := cable(wires, serverPort, target, name, l.serverMAC()); err != nil {
		return err
	}
	return there(func() error {
		if err := plain(name); err != nil {
			return err
		}
		return address(name, c.Server())
	})
}

// free refuses an uplink that would meet what is there already.
func (l *Lab) free(c Config) error {
	if link, err := netlink.LinkByName(c.Uplink); err == nil && link.Attrs().HardwareAddr.String() != l.serverMAC().String() {
		return muster.Errorf(muster.EConflict, "there is an interface %s already, which is not this lab's", c.Uplink).WithHint("use another name with --uplink")
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		ones, _ := r.Dst.Mask.Size()
		addr, ok := netip.AddrFromSlice(r.Dst.IP.To4())
		if !ok || ones == 0 || !netip.PrefixFrom(addr, ones).Overlaps(c.Net) {
			continue
		}
		link, err := netlink.LinkByIndex(r.LinkIndex)
		if err == nil && link.Attrs().Name != c.Uplink {
			return muster.Errorf(muster.EConflict, "%s is in use here already, on %s", c.Net, link.Attrs().Name).WithHint("use another network with --net, such as 10.78.0.0/16")
		}
	}
	return nil
}

// controllerEnd is the wire between the switch and the controllers' addresses.
func controllerEnd(c Config, wires, house *network.Namespace, count int) error {
	if err := cable(wires, controllerPort, house.File(), controllerPort, nil); err != nil {
		return err
	}
	return house.Do(func() error {
		// Each answers for its own addresses and by its own wire only.
		for _, s := range []string{"net/ipv4/conf/all/arp_ignore", "net/ipv4/conf/default/arp_ignore"} {
			if err := sysctl(s, "1"); err != nil {
				return err
			}
		}
		if err := plain(controllerPort); err != nil {
			return err
		}
		for n := range count {
			if err := address(controllerPort, netip.PrefixFrom(c.controller(n), 32)); err != nil {
				return err
			}
		}
		if c.Uplink == "" {
			return nil // the server is here, and needs no wire
		}
		link, err := netlink.LinkByName(controllerPort)
		if err != nil {
			return err
		}
		err = netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(c.Net), Scope: netlink.SCOPE_LINK})
		if err != nil {
			return fmt.Errorf("the controllers' way back: %w", err)
		}
		return nil
	})
}

// cable makes a wire from a port of the switch to an interface elsewhere. It is no
// error when it is there.
func cable(wires *network.Namespace, port string, target *os.File, name string, mac net.HardwareAddr) error {
	return wires.Do(func() error {
		if _, err := netlink.LinkByName(port); err == nil {
			return nil
		}
		v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: port, MTU: sleep.MTU}, PeerMTU: sleep.MTU, PeerName: name, PeerHardwareAddr: mac, PeerNamespace: netlink.NsFd(target.Fd())}
		if err := netlink.LinkAdd(v); err != nil {
			return fmt.Errorf("wire %s: %w", name, err)
		}
		return nil
	})
}

// plain makes an interface send frames as a real wire carries them: with checksums,
// and none longer than a frame. The switch reads them one by one.
func plain(name string) error {
	if err := noOffloads(name); err != nil {
		return fmt.Errorf("offloads of %s: %w", name, err)
	}
	return up(name)
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

func address(name string, p netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	n := &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: n}); err != nil {
		return fmt.Errorf("address %s: %w", p, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}

// firstSettings are how ports are at first: machines meet the server and nobody
// else, and nobody on the message side until somebody says with whom.
func firstSettings(ctx context.Context, s switches.Switch, list []machine.Config, c Config) error {
	wants := []switches.Want{{Port: serverPort, VLAN: ManagementVLAN}}
	if !c.NoBMC {
		wants = append(wants, switches.Want{Port: controllerPort, VLAN: ManagementVLAN, Isolated: true})
	}
	for _, m := range list {
		wants = append(wants, switches.Want{Port: m.NICs[0].Port, VLAN: ManagementVLAN, Isolated: true})
	}
	return s.Set(ctx, wants...)
}

// unwire takes the namespaces away, and waits until the uplink has gone with them.
func (l *Lab) unwire() error {
	var errs []error
	for _, ns := range []string{l.wires(), l.Namespace()} {
		errs = append(errs, dropLinks(ns), network.DeleteNamespace(ns))
	}
	return errors.Join(errs...)
}

// dropLinks removes what is in a namespace: the kernel does it some time after the
// namespace has lost its name, and who comes next would meet it still.
func dropLinks(name string) error {
	ns, err := network.OpenNamespace(name, false)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	h, err := ns.Handle()
	if err != nil {
		return err
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil {
		return err
	}
	var errs []error
	for _, link := range links {
		if link.Attrs().Name == "lo" {
			continue
		}
		if err := h.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EOPNOTSUPP) {
			errs = append(errs, fmt.Errorf("remove %s: %w", link.Attrs().Name, err))
		}
	}
	return errors.Join(errs...)
}
