package daemon

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster/provider/local/network"
)

// Bare machines find licence servers at the server's address on their boot network, where nothing
// but the relay lets them through: a machine of the project has its seat, another one is refused,
// and a port that no project has any more is closed.
func TestLicencesOfBareMachines(t *testing.T) {
	t.Parallel()
	seat, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer seat.Close()
	go func() {
		for {
			c, err := seat.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "a seat\n")
			_ = c.Close()
		}
	}()
	free, err := net.Listen("tcp", "127.0.0.1:0") // a port for the relay
	if err != nil {
		t.Fatal(err)
	}
	port := netip.MustParseAddrPort(free.Addr().String()).Port()
	free.Close()
	mine, other := netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")
	log := slog.New(slog.DiscardHandler)
	// As daemon/metal.go makes it: no way through but the ports that are open.
	way := &licenceWay{open: map[uint16]net.Listener{}, at: &endpoint{addr: netip.MustParseAddr("127.0.0.1"), listenAt: func(ctx context.Context, p uint16) (net.Listener, error) {
		return listenOn(ctx, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), p))
	}}, relay: &network.Relay{Log: log, To: func(_ context.Context, from netip.Addr, p uint16) (string, string, bool) {
		return seat.Addr().String(), "c-1", from == mine && p == port
	}}}
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	defer func() { cancel(); _ = g.Wait() }()
	if err := way.apply(ctx, &g, []uint16{port}, log, 1024); err != nil {
		t.Fatal(err)
	}
	ask := func(from netip.Addr) string {
		d := net.Dialer{Timeout: time.Minute, LocalAddr: &net.TCPAddr{IP: from.AsSlice()}}
		c, err := d.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port).String())
		if err != nil {
			return "no connection"
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		line, _ := bufio.NewReader(c).ReadString('\n')
		return line
	}
	if got := ask(mine); got != "a seat\n" {
		t.Errorf("the project's machine gets %q", got)
	}
	if got := ask(other); got != "" {
		t.Errorf("another project's machine gets %q", got)
	}
	if err := way.apply(ctx, &g, nil, log, 1024); err != nil {
		t.Fatal(err)
	}
	if got := ask(mine); got != "no connection" {
		t.Errorf("after it was revoked: %q", got)
	}
}
