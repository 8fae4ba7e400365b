package ipmi

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power/bmc"
	"github.com/muster-hpc/muster/metal/power/rmcp"
)

// relay passes datagrams on and remembers those to the controller.
type relay struct {
	near, far net.PacketConn
	to        net.Addr
	mu        sync.Mutex
	seen      [][]byte
}

func newRelay(t *testing.T, port int) *relay {
	t.Helper()
	r := &relay{to: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}}
	for _, pc := range []*net.PacketConn{&r.near, &r.far} {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		*pc = conn
	}
	var client net.Addr
	go func() {
		buf := make([]byte, 2000)
		for {
			n, from, err := r.near.ReadFrom(buf)
			if err != nil {
				return
			}
			r.mu.Lock()
			client = from
			r.seen = append(r.seen, append([]byte(nil), buf[:n]...))
			r.mu.Unlock()
			_, _ = r.far.WriteTo(buf[:n], r.to)
		}
	}()
	go func() {
		buf := make([]byte, 2000)
		for {
			n, _, err := r.far.ReadFrom(buf)
			if err != nil {
				return
			}
			r.mu.Lock()
			back := client
			r.mu.Unlock()
			_, _ = r.near.WriteTo(buf[:n], back)
		}
	}()
	return r
}

// TestImpostorGetsNoProof: who does not know the password is sent nothing that
// was made of it, from which it could be guessed.
func TestImpostorGetsNoProof(t *testing.T) {
	t.Parallel()
	b, _, d := start(t)
	r := newRelay(t, b.IPMI())
	d.t.Address.Address = r.near.LocalAddr().String()
	b.Break(bmc.Faults{OtherPassword: true})
	if _, err := d.State(t.Context()); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("got %v", err)
	}
	time.Sleep(50 * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	steps := 0
	for _, packet := range r.seen {
		p, err := rmcp.Parse(packet)
		if err != nil {
			t.Fatal(err)
		}
		steps++
		if p.Type != rmcp.TypeRAKP3 {
			continue
		}
		if q, err := rmcp.ParseRAKP3(p.Payload); err != nil || len(q.Code) > 0 {
			t.Errorf("a proof of %d bytes was sent: %v", len(q.Code), err)
		}
	}
	if steps < 2 {
		t.Errorf("only %d packets were seen", steps)
	}
}
