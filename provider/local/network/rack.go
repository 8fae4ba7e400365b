package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Gateway is the server's address as machines see it, on every management link.
func Gateway() netip.Addr { return netip.AddrFrom4([4]byte{10, 90, 0, 1}) }

// Management is the network that management addresses come from.
func Management() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 90}), 16) }

// Ports of the server inside the rack.
const (
	// AgentPort is where agents reach the server.
	AgentPort = 7700
	// ProxyPort is where machines of clusters with egress "proxy" find it.
	ProxyPort = 3128
	// VolumePort and TimePort are where virtual machines, and no others, find their volumes (NFS) and
	// the time (NTP).
	VolumePort = 2049
	TimePort   = 123
	// Clusters of virtual machines find volumes that only they mount at ports of their own.
	FirstOwnVolumePort = 20490
	LastOwnVolumePort  = 20999
)

// ManagementAddress is the address of the machine with the given index, from 0.
func ManagementAddress(index int) (netip.Addr, error) {
	n := index + 2 // .0 is the network, .1 the gateway
	if index < 0 || n > 0xfffe {
		return netip.Addr{}, fmt.Errorf("machine index %d out of range", index)
	}
	return netip.AddrFrom4([4]byte{10, 90, byte(n >> 8), byte(n)}), nil
}

// Rack is the network namespace of one state directory. Its methods are safe
// for concurrent use.
type Rack struct {
	name string
	ns   *os.File
	mu   sync.Mutex
	h    *netlink.Handle
	// host is the network namespace that uplinks lead to; nil for the one this
	// process is in.
	host   *os.File
	egress egress
	// filters are the links that have one.
	filters map[string]bool
	// switches are those that machines stand behind, by name.
	switches map[string]Switch
	// delayed are links whose frames this program carries, by their lower ends.
	delayed map[string]*delayed
}

// Open opens the rack with this name, making it when it does not exist, and
// puts its rules in force. What is in it stays.
func Open(ctx context.Context, name string) (*Rack, error) { return OpenAt(ctx, name, nil) }

// OpenAt is Open with another network namespace in the place of the host's. It
// stays the caller's.
func OpenAt(ctx context.Context, name string, host *os.File) (*Rack, error) {
	ns, err := openNetns(name, true)
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", name, err)
	}
	r := &Rack{name: name, ns: ns, host: host}
	r.h, err = netlink.NewHandleAt(netns.NsHandle(ns.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		_ = ns.Close()
		return nil, fmt.Errorf("open netlink in %s: %w", name, err)
	}
	if err := r.setUp(ctx); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// Delete removes a rack and everything in it that nothing holds. It is no
// error when there is none.
func Delete(name string) error {
	return errors.Join(removeUplink(name), deleteNetns(name))
}

// Name is the name of the namespace.
func (r *Rack) Name() string { return r.name }

// Close lets go of the rack, which stays.
func (r *Rack) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for lower := range r.delayed {
		r.drop(lower)
	}
	if r.h != nil {
		r.h.Close()
		r.h = nil
	}
	return r.ns.Close()
}

// links lists all links in the rack. The caller holds r.mu.
func (r *Rack) links() ([]netlink.Link, error) {
	if r.h == nil {
		return nil, net.ErrClosed
	}
	return r.h.LinkList()
}

// Do runs f on a thread inside the rack. f must not start goroutines that
// open sockets.
func (r *Rack) Do(f func() error) error { return inNetns(r.ns, f) }

// Listen opens a TCP listener inside the rack.
func (r *Rack) Listen(ctx context.Context, addr netip.AddrPort) (net.Listener, error) {
	var ln net.Listener
	err := r.Do(func() error {
		var err error
		ln, err = (&net.ListenConfig{}).Listen(ctx, "tcp4", addr.String())
		return err
	})
	return ln, err
}

// Dial opens a TCP connection from inside the rack.
func (r *Rack) Dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	var c net.Conn
	err := r.Do(func() error {
		var err error
		c, err = (&net.Dialer{}).DialContext(ctx, "tcp4", addr.String())
		return err
	})
	return c, err
}

// sysctls of the rack: nothing is forwarded, every packet must come from where
// its answer would go (a machine cannot take another's address), bridged
// frames bypass the rules for routed packets.
func sysctls() [][2]string {
	return [][2]string{
		{"net/ipv4/conf/all/rp_filter", "1"},
		{"net/ipv4/conf/default/rp_filter", "1"},
		{"net/ipv4/conf/all/accept_redirects", "0"},
		{"net/ipv4/conf/default/accept_redirects", "0"},
		{"net/ipv4/conf/all/send_redirects", "0"},
		{"net/ipv4/conf/default/send_redirects", "0"},
		{"net/ipv6/conf/all/disable_ipv6", "1"},
		{"net/ipv6/conf/default/disable_ipv6", "1"},
		{"net/bridge/bridge-nf-call-iptables", "0"},
		{"net/bridge/bridge-nf-call-ip6tables", "0"},
		{"net/bridge/bridge-nf-call-arptables", "0"},
	}
}

func (r *Rack) setUp(ctx context.Context) error {
	lo, err := r.h.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := r.h.AddrReplace(lo, &netlink.Addr{IPNet: hostNet(Gateway())}); err != nil {
		return fmt.Errorf("set the gateway's address: %w", err)
	}
	if err := r.h.LinkSetUp(lo); err != nil {
		return err
	}
	_, err = r.h.LinkByName(uplinkInside)
	r.egress.uplink = err == nil
	if !r.egress.uplink {
		if err := r.setForwarding(false); err != nil {
			return err
		}
	}
	err = r.Do(func() error {
		for _, s := range sysctls() {
			err := os.WriteFile("/proc/sys/"+s[0], []byte(s[1]), 0o644)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.nft(ctx, ruleset()); err != nil {
		return err
	}
	if err := r.listFilters(ctx); err != nil {
		return err
	}
	return r.admitVirtual(ctx)
}

// ListenPacket opens a UDP socket inside the rack.
func (r *Rack) ListenPacket(ctx context.Context, addr netip.AddrPort) (net.PacketConn, error) {
	var c net.PacketConn
	err := r.Do(func() error {
		var err error
		c, err = (&net.ListenConfig{}).ListenPacket(ctx, "udp4", addr.String())
		return err
	})
	return c, err
}

func (r *Rack) setForwarding(on bool) error {
	v := "0"
	if on {
		v = "1"
	}
	return r.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte(v), 0o644) })
}

// nft applies a script as one transaction inside the rack.
func (r *Rack) nft(ctx context.Context, script string) error {
	return r.Do(func() error { return runNft(ctx, script) })
}

func runNft(ctx context.Context, script string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func hostNet(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

func prefixNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
