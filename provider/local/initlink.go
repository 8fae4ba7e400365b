package local

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// setLinks brings the loopback and the given links up, inside the machine.
func setLinks(cfg *initConfig) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("lo: %w", err)
	}
	for i := range cfg.Links {
		if err := setLink(h, &cfg.Links[i]); err != nil {
			return fmt.Errorf("%s: %w", cfg.Links[i].Name, err)
		}
	}
	return nil
}

func setLink(h *netlink.Handle, l *initLink) error {
	dev, err := h.LinkByName(l.Name)
	if err != nil {
		return err
	}
	if l.MTU > 0 {
		if err := h.LinkSetMTU(dev, l.MTU); err != nil {
			return err
		}
	}
	if err := h.AddrReplace(dev, &netlink.Addr{IPNet: ipNet(l.Address)}); err != nil {
		return err
	}
	if err := h.LinkSetUp(dev); err != nil {
		return err
	}
	if err := setDetour(h, dev.Attrs().Index, l); err != nil {
		return err
	}
	if !l.Gateway.IsValid() {
		return nil
	}
	gw := netip.PrefixFrom(l.Gateway, l.Gateway.BitLen())
	if err := h.RouteReplace(&netlink.Route{LinkIndex: dev.Attrs().Index, Dst: ipNet(gw), Scope: netlink.SCOPE_LINK}); err != nil {
		return err
	}
	if l.Default {
		return h.RouteReplace(&netlink.Route{LinkIndex: dev.Attrs().Index, Gw: l.Gateway.AsSlice()})
	}
	return nil
}

// setDetour sets the way of the link's detour. It is in a table of its own, for what has its source
// there, too: Open MPI 5 asks for the way to an address, and takes the address for one of the link.
func setDetour(h *netlink.Handle, link int, l *initLink) error {
	if !l.Detour.IsValid() {
		return nil
	}
	const table, priority = 90, 90
	not := netip.PrefixFrom(l.DetourNot, l.DetourNot.BitLen())
	if err := h.RouteReplace(&netlink.Route{LinkIndex: link, Dst: ipNet(l.Detour), Scope: netlink.SCOPE_LINK, Table: table}); err != nil {
		return fmt.Errorf("detour: %w", err)
	}
	if err := h.RouteReplace(&netlink.Route{Dst: ipNet(not), Type: unix.RTN_THROW, Table: table}); err != nil {
		return fmt.Errorf("detour: %w", err)
	}
	rule := netlink.NewRule()
	rule.Family, rule.Src, rule.Dst, rule.Table, rule.Priority = unix.AF_INET, ipNet(l.Detour), ipNet(l.Detour), table, priority
	if err := h.RuleAdd(rule); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("detour: %w", err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
