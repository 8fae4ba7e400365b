package switches_test

import (
	"net"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/switches"
	"github.com/muster-hpc/muster/metal/switches/switchtest"
)

// rig is the pretended switch under the suite.
type rig struct{ p *switches.Pretended }

func (r rig) Switch() switches.Switch { return r.p }
func (r rig) Ports() []string         { return []string{"a", "b", "c", "d"} }
func (r rig) Send(_ *testing.T, port string, f []byte) []string {
	return r.p.Send(port, net.HardwareAddr(f[6:12]), net.HardwareAddr(f[:6]), len(f))
}
func (r rig) Unplug(_ *testing.T, port string) { r.p.Plug(port, false) }
func (r rig) Plug(_ *testing.T, port string)   { r.p.Plug(port, true) }
func (r rig) Restart() func(*testing.T)        { return nil }

func TestPretended(t *testing.T) {
	t.Parallel()
	switchtest.Run(t, func(*testing.T) switchtest.Rig {
		r := rig{switches.NewPretended(muster.SystemClock{}, "a", "b", "c", "d")}
		for _, p := range r.Ports() {
			r.p.Plug(p, true)
		}
		return r
	})
}

// A switch that does not do what it was told is found out, and what it is left at
// is told.
func TestALieIsSeen(t *testing.T) {
	t.Parallel()
	p := switches.NewPretended(muster.SystemClock{}, "a", "b")
	if err := p.Set(t.Context(), switches.Want{Port: "a", VLAN: 2}); err != nil {
		t.Fatal(err)
	}
	p.Lie(true)
	err := switches.Close(t.Context(), p, "a")
	if muster.CodeOf(err) != muster.EUnavailable {
		t.Fatalf("a port that stays open counts as closed: %v", err)
	}
	p.Lie(false)
	if err := switches.Close(t.Context(), p, "a"); err != nil {
		t.Fatal(err)
	}
	n := p.Changes()
	if err := switches.Close(t.Context(), p, "a"); err != nil || p.Changes() != n {
		t.Fatalf("a closed port was closed again: %d changes, %v", p.Changes()-n, err)
	}
	want := muster.Errorf(muster.EUnavailable, "no answer")
	p.Fail(want)
	if _, err := p.Addresses(t.Context()); err != want { //nolint:errorlint // this very one
		t.Fatal(err)
	}
}
