package local_test

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/vm/save"
)

// noted is a journal for one test.
type noted struct{ r save.Record }

func (n *noted) Get(context.Context) (save.Record, error)   { return n.r, nil }
func (n *noted) Put(_ context.Context, r save.Record) error { n.r = r; return nil }

// The virtual machines of a cluster are saved, and free their machines; a later server loads them, and they go on on
// each other's machine as other boots, without a start: they hear who they are by their channel.
func TestVMSaved(t *testing.T) {
	t.Parallel()
	cfg := vmConfig(t)
	counts(t, filepath.Join(cfg.Dir, "kernel"))
	p := openConfig(t, cfg)
	net := provider.Network{Cluster: "c-test", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20")}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{net}); err != nil {
		t.Fatal(err)
	}
	w := vmWants(2, &net)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	for i := range w {
		printed(t, p, w[i].Machine, "count: AAAE")
	}
	key, err := save.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	boots := map[string]provider.DesiredState{"n01": w[0], "n02": w[1]}
	store := &save.Store{Dir: filepath.Join(t.TempDir(), "states")}
	j := &noted{}
	steps := func(q *save.Sequence, until save.Phase) {
		t.Helper()
		for range 20 {
			ph, err := q.Step(t.Context())
			if err != nil {
				t.Fatal(ph, err)
			}
			if ph == until {
				return
			}
		}
		t.Fatalf("%+v", j.r)
	}
	token := ""
	saving := func() provider.Saving {
		return provider.Saving{States: store, Key: key, Boots: boots, Token: func(context.Context, string) (string, error) { return token, nil }}
	}
	q := &save.Sequence{Machines: p.Saver(saving()), Journal: j}
	if err := q.Save(t.Context(), []save.Node{{Name: "n01", Head: true}, {Name: "n02"}}); err != nil {
		t.Fatal(err)
	}
	steps(q, save.Saved)
	for i := range w {
		if r, err := p.Fence(t.Context(), w[i].Machine); err != nil || !r.Proven {
			t.Fatal(r, err)
		}
		if c, err := p.Clean(t.Context(), w[i].Machine); err != nil || !c.Verified {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openConfig(t, cfg)
	// They go on as other boots, each on the other's machine.
	boots["n01"], boots["n02"] = provider.DesiredState{Machine: w[1].Machine, Boot: w[0].Boot, VM: w[0].VM}, provider.DesiredState{Machine: w[0].Machine, Boot: w[1].Boot, VM: w[1].VM}
	for _, b := range boots {
		b.Boot.Attempt = 2
	}
	token = "mjt_of_the_resume"
	q.Machines = p.Saver(saving())
	if err := q.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	steps(q, save.Live)
	seen, err := p.Observe(t.Context(), []muster.MachineID{w[0].Machine, w[1].Machine})
	if err != nil || len(seen) != 2 {
		t.Fatal(seen, err)
	}
	for i, s := range seen {
		if s.State != provider.StateRunning || s.Attempt != 2 {
			t.Errorf("%+v", s)
		}
		// It counts on, far from where a start would begin.
		if now := printed(t, p, w[i].Machine, "count: "); now < "AAAE" {
			t.Errorf("%s is at %s", s.Machine, now)
		}
		heard := printed(t, p, w[i].Machine, "heard: {\"clock\":")
		for _, want := range []string{`"machine":"` + string(w[i].Machine) + `"`, `"attempt":2`, `"token":"mjt_of_the_resume"`, `"name":"mgmt0"`} {
			if !strings.Contains(heard, want) {
				t.Errorf("%s heard %s: without %s", w[i].Machine, heard, want)
			}
		}
	}
	if used, err := store.Used(); err != nil || used != 0 {
		t.Errorf("%d bytes of states are left: %v", used, err)
	}
}

// counts makes the guest of vmFiles one that counts.
func counts(t *testing.T, kernel string) {
	t.Helper()
	program, err := os.ReadFile("../../vm/supervisor/testdata/guest.bin")
	if err != nil {
		t.Fatal(err)
	}
	k, err := os.ReadFile(kernel)
	if err != nil {
		t.Fatal(err)
	}
	k[0x240+len(program)-1] = 'c'
	if err := os.WriteFile(kernel, k, 0o444); err != nil {
		t.Fatal(err)
	}
}
