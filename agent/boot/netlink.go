package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Links is the network of this machine.
type Links struct{}

// Hardware types of interfaces, from the kernel's if_arp.h.
const (
	typeEthernet   = "1"
	typeInfiniband = "32"
)

// NICs lists Ethernet and InfiniBand interfaces with a device behind them.
func (Links) NICs() ([]NIC, error) {
	dirs, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return nil, err
	}
	var out []NIC
	text := func(name, file string) string {
		b, err := os.ReadFile(filepath.Join("/sys/class/net", name, file))
		if err != nil {
			return "" // the carrier of an interface that is down cannot be read
		}
		return strings.TrimSpace(string(b))
	}
	for _, d := range dirs {
		kind := text(d.Name(), "type")
		if kind != typeEthernet && kind != typeInfiniband {
			continue
		}
		if _, err := os.Stat(filepath.Join("/sys/class/net", d.Name(), "device")); err != nil {
			continue
		}
		if mac, err := muster.ParseMAC(text(d.Name(), "address")); err == nil && wire.ValidInterface(mac) && muster.IsGUID(mac) == (kind == typeInfiniband) {
			n := NIC{Name: d.Name(), MAC: mac, Carrier: text(d.Name(), "carrier") == "1"}
			if mbit, err := strconv.ParseInt(text(d.Name(), "speed"), 10, 32); err == nil && mbit > 0 {
				n.Speed = mbit * 1_000_000
			}
			out = append(out, n)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// Up starts a link.
func (Links) Up(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

// userClass tells a boot server that this is no firmware any more.
const userClass = "muster-agent"

// Lease asks by DHCP for the address that the firmware got: it says the same MAC,
// and no name of a client.
func (Links) Lease(ctx context.Context, name string) (Lease, error) {
	c, err := nclient4.New(name, nclient4.WithTimeout(time.Second), nclient4.WithRetry(4))
	if err != nil {
		return Lease{}, err
	}
	defer func() { _ = c.Close() }()
	got, err := c.Request(ctx,
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(userClass)),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionInterfaceMTU))
	if err != nil {
		return Lease{}, muster.Errorf(muster.EUnavailable, "DHCP gives no address").Wrap(err)
	}
	return readLease(got.ACK)
}

// readLease reads an acknowledgement, and refuses what cannot be an address.
func readLease(ack *dhcpv4.DHCPv4) (Lease, error) {
	var l Lease
	a, ok := netip.AddrFromSlice(ack.YourIPAddr.To4())
	ones, bits := ack.SubnetMask().Size()
	if !ok || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || bits != 32 || ones < 1 {
		return l, muster.Errorf(muster.EUnavailable, "DHCP returned an invalid address: %v, mask %v", ack.YourIPAddr, ack.SubnetMask())
	}
	l.Address = netip.PrefixFrom(a, ones)
	for _, r := range ack.Router() {
		if g, ok := netip.AddrFromSlice(r.To4()); ok && !g.IsUnspecified() && g != a {
			l.Gateway = g
			break
		}
	}
	if b := ack.Options.Get(dhcpv4.OptionInterfaceMTU); len(b) == 2 {
		if mtu := int(b[0])<<8 | int(b[1]); mtu >= 576 {
			l.MTU = mtu
		}
	}
	l.Renew = max(30*time.Second, ack.IPAddressLeaseTime(time.Hour)/2)
	return l, nil
}

// Use sets an address, and the way to everywhere else.
func (Links) Use(name string, l Lease) error {
	dev, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if l.MTU > 0 {
		if err := netlink.LinkSetMTU(dev, l.MTU); err != nil {
			return fmt.Errorf("set the MTU to %d: %w", l.MTU, err)
		}
	}
	return addresses(dev, l.Address, l.Gateway, true)
}

// addresses makes an address the only one of a link.
func addresses(dev netlink.Link, p netip.Prefix, gateway netip.Addr, everywhere bool) error {
	old, err := netlink.AddrList(dev, unix.AF_INET)
	if err != nil {
		return err
	}
	want := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if err := netlink.AddrReplace(dev, want); err != nil {
		return fmt.Errorf("set the address %s: %w", p, err)
	}
	for _, o := range old {
		if !o.IP.Equal(want.IP) {
			if err := netlink.AddrDel(dev, &o); err != nil {
				return fmt.Errorf("remove the address %s: %w", o.IPNet, err)
			}
		}
	}
	if !gateway.IsValid() {
		return nil
	}
	r := &netlink.Route{LinkIndex: dev.Attrs().Index, Gw: gateway.AsSlice()}
	if !everywhere {
		if p.Masked().Contains(gateway) {
			return nil
		}
		beside := &netlink.Route{LinkIndex: dev.Attrs().Index, Scope: netlink.SCOPE_LINK,
			Dst: &net.IPNet{IP: gateway.AsSlice(), Mask: net.CIDRMask(gateway.BitLen(), gateway.BitLen())}}
		if err := netlink.RouteReplace(beside); err != nil {
			return fmt.Errorf("set the way to %s: %w", gateway, err)
		}
		return nil
	}
	// On a net of one address the gateway is beside it, not in it.
	if !p.Masked().Contains(gateway) {
		r.Flags = int(netlink.FLAG_ONLINK)
	}
	if err := netlink.RouteReplace(r); err != nil {
		return fmt.Errorf("set the gateway %s: %w", gateway, err)
	}
	return nil
}

// Apply names the links and sets their addresses. All NICs of the order must be
// there: a node without its message NIC is of no use.
func (n Links) Apply(links []wire.BootLink) error {
	if lo, err := netlink.LinkByName("lo"); err == nil {
		if err := netlink.LinkSetUp(lo); err != nil {
			return fmt.Errorf("lo: %w", err)
		}
	}
	nics, err := n.NICs()
	if err != nil {
		return err
	}
	for i := range links {
		if err := apply(nics, &links[i]); err != nil {
			return fmt.Errorf("%s: %w", links[i].Name, err)
		}
	}
	return nil
}

// Move makes the links, which have their names already, those of another machine: with its MACs and addresses.
func (n Links) Move(links []wire.BootLink) error {
	for i := range links {
		dev, err := netlink.LinkByName(links[i].Name)
		if err != nil {
			return fmt.Errorf("%s: %w", links[i].Name, err)
		}
		mac, err := net.ParseMAC(links[i].MAC)
		if err == nil && dev.Attrs().HardwareAddr.String() != mac.String() {
			err = netlink.LinkSetHardwareAddr(dev, mac)
			if errors.Is(err, unix.EBUSY) { // its driver changes it only when it is down
				err = errors.Join(netlink.LinkSetDown(dev), netlink.LinkSetHardwareAddr(dev, mac), netlink.LinkSetUp(dev))
			}
		}
		if err != nil {
			return fmt.Errorf("%s: set the MAC %s: %w", links[i].Name, links[i].MAC, err)
		}
	}
	return n.Apply(links)
}

func apply(nics []NIC, l *wire.BootLink) error {
	var dev netlink.Link
	for _, x := range nics {
		if x.MAC == l.MAC {
			var err error
			if dev, err = netlink.LinkByName(x.Name); err != nil {
				return err
			}
		}
	}
	if dev == nil {
		return muster.Errorf(muster.EUnavailable, "there is no NIC with the MAC %s; there is %s", l.MAC, listNICs(nics)).
			WithHint("discover the machine again: its NIC was exchanged, or has no driver")
	}
	if dev.Attrs().Name != l.Name {
		// An older kernel renames only what is down, which forgets the routes.
		err := netlink.LinkSetName(dev, l.Name)
		if errors.Is(err, unix.EBUSY) {
			if err = netlink.LinkSetDown(dev); err == nil {
				err = netlink.LinkSetName(dev, l.Name)
			}
		}
		if err != nil {
			return fmt.Errorf("rename %s: %w", dev.Attrs().Name, err)
		}
	}
	if l.MTU > 0 {
		if err := netlink.LinkSetMTU(dev, l.MTU); err != nil {
			return fmt.Errorf("set the MTU to %d: %w", l.MTU, err)
		}
	}
	if err := netlink.LinkSetUp(dev); err != nil {
		return err
	}
	if !l.Address.IsValid() {
		return nil
	}
	if err := addresses(dev, l.Address, l.Gateway, l.Default); err != nil {
		return err
	}
	for _, p := range l.Closed {
		r := &netlink.Route{Type: unix.RTN_UNREACHABLE, Dst: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if err := netlink.RouteReplace(r); err != nil {
			return fmt.Errorf("close %s: %w", p, err)
		}
	}
	return nil
}
