package metal_test

import (
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/wire"
)

// A boot has the kernel arguments of its shape, also after a restart of the server, and the
// next boot has none. What the machine is like under them is not what it is registered as.
func TestKernelArgsOfOneBoot(t *testing.T) {
	t.Parallel()
	m := registered(1)[0]
	s := newSite(t, []muster.Registration{m}, quick())
	args := func() []string {
		t.Helper()
		b, ok := s.boots.Directory().Boot(s.state(m.ID).Number)
		if !ok {
			t.Fatal("no boot")
		}
		return b.Args
	}
	o := order(wire.BootImage, 1)
	o.Args = []string{"numa=off", "nosmt"}
	if err := s.boots.Start(t.Context(), m.ID, o); err != nil {
		t.Fatal(err)
	}
	st := s.await(t, m.ID, metal.StepBooting)
	if got := args(); !slices.Equal(got, o.Args) {
		t.Errorf("the kernel has %q", got)
	}
	say := func(h *wire.BootCheckIn) { h.Facts = &muster.Facts{Cores: 1} }
	_, _ = s.hello(m, st.Number, key(1), say) // the task of this test's site is none for an image
	if f, told := s.told[m.ID]; told {
		t.Errorf("it is known as %+v", f)
	}
	s.stop()
	s.open(t, []muster.Registration{m}, quick())
	if got := args(); !slices.Equal(got, o.Args) {
		t.Errorf("after a restart the kernel has %q", got)
	}
	if err := s.boots.Cancel(t.Context(), m.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.boots.Start(t.Context(), m.ID, order(wire.BootImage, 2)); err != nil {
		t.Fatal(err)
	}
	s.await(t, m.ID, metal.StepBooting)
	if got := args(); len(got) > 0 {
		t.Errorf("the next boot has %q", got)
	}
	_, _ = s.hello(m, s.state(m.ID).Number, key(2), say)
	if f := s.told[m.ID]; f.Cores != 1 {
		t.Errorf("without arguments it is known as %+v", f)
	}
}
