// Package savetest is the suite that every save.Hypervisor passes: the one that is pretended, and QEMU's.
package savetest

import (
	"context"
	"testing"

	"github.com/muster-hpc/muster/vm/save"
)

// Subject is a hypervisor to try, on which machines with these names run.
type Subject struct {
	Open  func(t *testing.T) save.Hypervisor
	Nodes []string
	// Spoil changes one byte of its state, and Cut shortens it.
	Spoil, Cut func(t *testing.T, node string)
	// Count is how far the program of a machine has come, the first that it says after the last
	// question: it counts while it runs.
	Count func(t *testing.T, node string) int
}

// Suite runs the tests, each on machines of its own.
func Suite(t *testing.T, s Subject) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"saved and resumed", saved},
		{"a state that is not whole", notWhole},
		{"operations are repeated", repeated},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, h save.Hypervisor, node string, want save.Status) {
	t.Helper()
	got, err := h.Observe(t.Context(), node)
	if err != nil || got != want {
		t.Fatalf("%s is %s (%v), not %s", node, got, err, want)
	}
}

// memory is a journal that is forgotten with the test.
type memory struct{ r save.Record }

func (m *memory) Get(context.Context) (save.Record, error)   { return m.r, nil }
func (m *memory) Put(_ context.Context, r save.Record) error { m.r = r; return nil }

// run makes steps until the sequence rests.
func run(t *testing.T, q *save.Sequence) save.Record {
	t.Helper()
	for range 50 {
		p, err := q.Step(t.Context())
		if err != nil {
			t.Log(p, err)
		}
		if p.Rests() {
			r, err := q.Journal.Get(t.Context())
			must(t, err)
			return r
		}
	}
	t.Fatal("no end in sight")
	return save.Record{}
}

func saved(t *testing.T, s Subject) {
	h := s.Open(t)
	q := &save.Sequence{Machines: h, Journal: &memory{}}
	var nodes []save.Node
	for i, n := range s.Nodes {
		nodes = append(nodes, save.Node{Name: n, Head: i == 0})
	}
	must(t, q.Save(t.Context(), nodes))
	if r := run(t, q); r.Phase != save.Saved || r.Failed != "" {
		t.Fatalf("%+v", r)
	}
	before := map[string]int{}
	for _, n := range s.Nodes {
		is(t, h, n, save.Gone)
		before[n] = s.Count(t, n)
	}
	must(t, q.Resume(t.Context()))
	if r := run(t, q); r.Phase != save.Live || r.Failed != "" {
		t.Fatalf("%+v", r)
	}
	for _, n := range s.Nodes {
		is(t, h, n, save.Running)
		if now := s.Count(t, n); now <= before[n] {
			t.Errorf("%s had counted to %d, and is at %d", n, before[n], now)
		}
	}
}

// notWhole finds what is wrong with a state before anything runs from it.
func notWhole(t *testing.T, s Subject) {
	for name, harm := range map[string]func(*testing.T, string){"spoilt": s.Spoil, "cut short": s.Cut} {
		t.Run(name, func(t *testing.T) {
			h, n := s.Open(t), s.Nodes[0]
			must(t, h.Stop(t.Context(), n))
			st, err := h.Save(t.Context(), n)
			must(t, err)
			must(t, h.Verify(t.Context(), n, st))
			must(t, h.End(t.Context(), n))
			harm(t, n)
			if err := h.Verify(t.Context(), n, st); err == nil {
				t.Error("verified")
			}
			if err := h.Load(t.Context(), n, st); err == nil {
				t.Error("loaded")
			}
			if got, err := h.Observe(t.Context(), n); err != nil || got == save.Running || got == save.Stopped {
				t.Errorf("it is %s (%v)", got, err)
			}
			must(t, h.End(t.Context(), n))
			is(t, h, n, save.Gone)
		})
	}
}

func repeated(t *testing.T, s Subject) {
	h, n := s.Open(t), s.Nodes[0]
	is(t, h, n, save.Running)
	must(t, h.Erase(t.Context(), n)) // nothing is there
	var st save.State
	for range 2 {
		must(t, h.Stop(t.Context(), n))
		is(t, h, n, save.Stopped)
	}
	for range 2 {
		var err error
		st, err = h.Save(t.Context(), n)
		must(t, err)
		is(t, h, n, save.Stopped)
	}
	must(t, h.Verify(t.Context(), n, st))
	for range 2 {
		must(t, h.Continue(t.Context(), n))
		is(t, h, n, save.Running)
		must(t, h.SetClock(t.Context(), n))
	}
	must(t, h.Stop(t.Context(), n))
	for range 2 {
		must(t, h.End(t.Context(), n))
		is(t, h, n, save.Gone)
	}
	for range 2 {
		must(t, h.Erase(t.Context(), n))
		if h.Verify(t.Context(), n, st) == nil {
			t.Error("what was erased is whole")
		}
	}
	if h.Stop(t.Context(), n) == nil {
		t.Error("a machine that is gone was stopped")
	}
}
