package network

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The uplink is the one wire between a rack and its host, there only while a
// cluster with egress "nat" runs. Addresses are translated twice: racks of two
// instances use the same ones, so each becomes one address of its own first.

// uplinkInside is the rack's end.
const uplinkInside = "up0"

// ErrNoForwarding means that the host does not forward packets.
var ErrNoForwarding = errors.New("this host does not forward packets: set net.ipv4.ip_forward=1")

// uplinkName is the host's end.
func uplinkName(rack string) string { return fmt.Sprintf("mu%08x", hash(rack)) }

func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}

// uplinkAddresses are the host's and the rack's end of a rack's own /30, out
// of a part of the link-local range that nothing else uses.
func uplinkAddresses(rack string) (host, inside netip.Prefix) {
	h := hash(rack)
	third, fourth := byte(1+h%127), byte(h>>8%64*4)
	at := func(n byte) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{169, 254, third, fourth + n}), 30)
	}
	return at(1), at(2)
}

// inHost runs f in the host's network namespace.
func (r *Rack) inHost(f func() error) error {
	if r.host == nil {
		return f()
	}
	return inNetns(r.host, f)
}

// addUplink makes the wire and the rules at both ends.
func (r *Rack) addUplink(ctx context.Context) error {
	err := r.inHost(func() error {
		b, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
		if err == nil && strings.TrimSpace(string(b)) == "0" {
			err = ErrNoForwarding
		}
		return err
	})
	if err != nil {
		return err
	}
	name := uplinkName(r.name)
	hostEnd, ourEnd := uplinkAddresses(r.name)
	// The rules come before the wire, so there is no moment without them.
	if err := r.inHost(func() error { return runNft(ctx, hostRules(r.name, name, ourEnd.Addr())) }); err != nil {
		return err
	}
	if err := r.nft(ctx, rackNATRules); err != nil {
		return err
	}
	h, err := r.hostHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	if _, err := h.LinkByName(name); notFound(err) {
		if err := r.makeUplink(name); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if err := setUpLink(h, name, hostEnd); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return net.ErrClosed
	}
	if err := setUpLink(r.h, uplinkInside, ourEnd); err != nil {
		return err
	}
	if err := r.h.RouteReplace(&netlink.Route{Gw: hostEnd.Addr().AsSlice()}); err != nil {
		return fmt.Errorf("route to the host: %w", err)
	}
	return r.setForwarding(true)
}

// makeUplink makes the wire, with the far end in the host.
func (r *Rack) makeUplink(name string) error {
	host := r.host
	if host == nil {
		var err error
		if host, err = os.Open("/proc/self/ns/net"); err != nil {
			return err
		}
		defer func() { _ = host.Close() }()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.h == nil {
		return net.ErrClosed
	}
	return r.add(&veth{name: uplinkInside, index: firstIndex - 1, inside: name}, host)
}

// dropUplink takes the wire away again.
func (r *Rack) dropUplink(ctx context.Context) error {
	if err := r.setForwarding(false); err != nil {
		return err
	}
	err := r.inHost(func() error { return removeUplink(r.name) })
	return errors.Join(err, r.nft(ctx, "table ip muster-nat\ndelete table ip muster-nat\n"))
}

// removeUplink removes the host's end of a rack's uplink and its rules.
func removeUplink(rack string) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := h.LinkByName(uplinkName(rack))
	if notFound(err) {
		return removeHostTable(rack)
	}
	if err == nil {
		err = h.LinkDel(l)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove uplink: %w", err)
	}
	return removeHostTable(rack)
}

// removeHostTable asks nft only when it can have anything to do: most racks
// never had an uplink.
func removeHostTable(rack string) error {
	out, err := exec.CommandContext(context.Background(), "nft", "list", "tables", "ip").Output()
	if err != nil || !strings.Contains(string(out)+"\n", "table ip "+rack+"\n") {
		return nil //nolint:nilerr // no nft, no table
	}
	return runNft(context.Background(), fmt.Sprintf("delete table ip %s\n", rack))
}

func (r *Rack) hostHandle() (*netlink.Handle, error) {
	if r.host == nil {
		return netlink.NewHandle(unix.NETLINK_ROUTE)
	}
	return netlink.NewHandleAt(netns.NsHandle(r.host.Fd()), unix.NETLINK_ROUTE)
}

func setUpLink(h *netlink.Handle, name string, addr netip.Prefix) error {
	l, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	if err := h.AddrReplace(l, &netlink.Addr{IPNet: prefixNet(addr)}); err != nil {
		return err
	}
	return h.LinkSetUp(l)
}

// rackNATRules give all routed machines the rack's one address.
const rackNATRules = `
table ip muster-nat
delete table ip muster-nat
table ip muster-nat {
	chain forward {
		type filter hook forward priority -1; policy accept;
		iifname "up0" ct state established,related accept
		iifname "up0" drop
	}
	chain postrouting {
		type nat hook postrouting priority srcnat;
		oifname "up0" masquerade
	}
}
`

// hostRules let the rack's address out, to public addresses only, and nothing
// in: not to the host itself either.
func hostRules(rack, link string, from netip.Addr) string {
	return strings.NewReplacer("@TABLE@", rack, "@LINK@", link, "@FROM@", from.String(),
		"@PRIVATE@", strings.Join(private(), ", ")).Replace(`
table ip @TABLE@
delete table ip @TABLE@
table ip @TABLE@ {
	chain input {
		type filter hook input priority -1; policy accept;
		iifname "@LINK@" drop
	}
	chain forward {
		type filter hook forward priority -1; policy accept;
		iifname "@LINK@" ip saddr != @FROM@ drop
		iifname "@LINK@" ip daddr { @PRIVATE@ } drop
		iifname "@LINK@" fib daddr type local drop
		oifname "@LINK@" ct state != { established, related } drop
	}
	chain postrouting {
		type nat hook postrouting priority srcnat;
		ip saddr @FROM@ oifname != "@LINK@" masquerade
	}
}
`)
}
