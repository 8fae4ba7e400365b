package agentserver_test

import (
	"net"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/connlimit"
)

// Strangers who connect and say nothing take no place from a node's agent; the agent of a
// node that is over is a stranger, though its certificate is good.
func TestStrangersTakeNoAgentsPlace(t *testing.T) {
	t.Parallel()
	const places = 3
	x := newSpokenOn(t, func(l net.Listener) net.Listener {
		return connlimit.New(l, connlimit.Limits{Total: places, PerAddress: places})
	})
	crowd := func() {
		for range 2 * places {
			c, err := net.Dial("tcp", x.addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
		}
		time.Sleep(100 * time.Millisecond) // all are there
	}
	p := newSpeaker(x)
	p.joins(t, x.boot(1, time.Hour))
	if _, err := p.reports(t); err != nil {
		t.Fatal(err)
	}
	dials := p.dials.Load()
	crowd()
	if _, err := p.reports(t); err != nil || p.dials.Load() != dials {
		t.Fatalf("the agent lost its connection: %v, %d new ones", err, p.dials.Load()-dials)
	}
	// Its attempt is over: with its certificate it connects anew, and is nobody's.
	x.boot(2, time.Hour)
	p.Close()
	if _, err := p.reports(t); muster.CodeOf(err) == "" {
		t.Fatal("an attempt that is over is heard")
	}
	dials = p.dials.Load()
	crowd()
	_, _ = p.reports(t)
	if p.dials.Load() == dials {
		t.Error("the connection of a node that is over was kept for it")
	}
}
