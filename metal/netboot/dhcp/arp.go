package dhcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// prober finds out by ARP which free addresses are used by somebody all the same.
// Nobody waits for it: addresses are tried before they are offered, and once more
// when they are; what answers until the machine takes its offer makes that a NAK.
type prober struct {
	server *Server
	out    *outlet
	in     *os.File
	mu     sync.Mutex
	asked  map[netip.Addr]time.Time
}

const (
	probeAgain = 10 * time.Minute // an address is asked about again after so long
	probeAhead = 256              // addresses of each queue that are tried before they are needed
)

func openProber(s *Server, out *outlet) (*prober, error) {
	p := &prober{server: s, out: out, asked: map[netip.Addr]time.Time{}}
	if s.Mode == Proxy {
		return p, nil
	}
	ifi, err := net.InterfaceByName(s.Interface)
	if err != nil {
		return nil, err
	}
	const arp = unix.ETH_P_ARP<<8&0xff00 | unix.ETH_P_ARP>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, arp)
	if err == nil {
		if err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: arp, Ifindex: ifi.Index}); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "cannot listen for ARP on %s", s.Interface).
			WithHint("run as root, or with CAP_NET_RAW").Wrap(err)
	}
	p.in = os.NewFile(uintptr(fd), "arp "+s.Interface)
	return p, nil
}

func (p *prober) close() {
	if p.in != nil {
		p.in.Close()
	}
}

// listen notes who uses which address, by every ARP packet on the link. An interface that
// goes down says so once, and goes on when it is up again.
func (p *prober) listen() error {
	b := make([]byte, 256)
	for {
		n, err := p.in.Read(b)
		if errors.Is(err, unix.ENETDOWN) {
			continue
		}
		if err != nil {
			return err
		}
		mac, addr, ok := parseARP(b[:n])
		if !ok || mac == p.out.mac {
			continue
		}
		if owner, other := p.server.table.Seen(addr, mac, p.server.Clock.Now()); other {
			p.server.notes(Note{owner, addr, "conflict", mac.String() + " uses its address"})
		}
	}
}

// parseARP reads who sent an ARP packet, and with which address.
func parseARP(f []byte) (MAC, netip.Addr, bool) {
	const arp = 14
	if len(f) < arp+28 || f[12] != 8 || f[13] != 6 || [6]byte(f[arp:arp+6]) != [6]byte{0, 1, 8, 0, 6, 4} {
		return MAC{}, netip.Addr{}, false
	}
	m, a := MAC(f[arp+8:arp+14]), addr4(f[arp+14:arp+18])
	return m, a, a.IsValid() && m.Real()
}

// ask sends a request for an address, unless that was done lately. The sender's
// address is left empty, so that nobody's memory is changed by it (RFC 5227).
func (p *prober) ask(a netip.Addr, now time.Time) {
	if p.in == nil || !p.due(a, now) {
		return
	}
	f := make([]byte, 60)
	copy(f, []byte{255, 255, 255, 255, 255, 255})
	copy(f[6:], p.out.mac[:])
	copy(f[12:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1})
	copy(f[22:], p.out.mac[:])
	v := a.As4()
	copy(f[38:], v[:])
	_ = p.out.send(f) // a probe that is lost is one probe less
}

func (p *prober) due(a netip.Addr, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.asked[a]; ok && now.Sub(last) < probeAgain {
		return false
	}
	if len(p.asked) >= maxRange {
		clear(p.asked)
	}
	p.asked[a] = now
	return true
}

// ahead tries the addresses that come next, a few hundred a second.
func (p *prober) ahead(ctx context.Context) {
	local := p.server.table.network(p.server.Address)
	if local < 0 {
		return
	}
	for {
		now := p.server.Clock.Now()
		for _, a := range p.server.table.next(local, probeAhead) {
			p.ask(a, now)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.server.Clock.After(time.Second):
		}
	}
}
