package local_test

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local/fault"
	"github.com/muster-hpc/muster/provider/local/network"
)

// TestFaults breaks a machine in each way and sees what that looks like from
// outside.
func TestFaults(t *testing.T) {
	t.Parallel()
	cfg := config(t, "2,memory=256MiB", nil)
	p := openConfig(t, cfg)
	net := crashNetwork()
	if err := p.EnsureNetworks(t.Context(), []provider.Network{net}); err != nil {
		t.Fatal(err)
	}
	if errs := p.Ensure(t.Context(), wants(2, &net)); errs != nil {
		t.Fatal(errs)
	}
	const id = muster.MachineID("local-01")
	sshUp(t, p, id)
	sshUp(t, p, "local-02")
	f, err := fault.Open(cfg.Instance)
	if err != nil {
		t.Fatal(err)
	}
	silent := func(what string) {
		t.Helper()
		c, err := p.Dial(t.Context(), id, 22)
		if err == nil {
			_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			if _, err := c.Read(make([]byte, 4)); err == nil {
				t.Error(what, "and it still answers")
			}
			_ = c.Close()
		}
		if s, err := p.Observe(t.Context(), []muster.MachineID{id}); err != nil || s[0].State != provider.StateRunning {
			t.Error(what, s, err)
		}
		sshUp(t, p, "local-02") // the neighbour notices nothing
	}
	for _, c := range []struct {
		what     string
		do, undo func(muster.MachineID) error
	}{
		{"frozen", f.Freeze, f.Thaw},
		{"stopped", f.StopAll, f.ContinueAll},
	} {
		if err := c.do(id); err != nil {
			t.Fatal(err)
		}
		silent(c.what)
		if err := c.undo(id); err != nil {
			t.Fatal(err)
		}
		sshUp(t, p, id)
	}
	if err := f.Cut(id); err != nil {
		t.Fatal(err)
	}
	for _, port := range fault.Ports() {
		for i, up := range []bool{false, true} {
			if s, err := p.Rack().PortState(i, port); err != nil || !s.There || s.Up != up {
				t.Errorf("%s port of machine %d: %+v %v", port, i, s, err)
			}
		}
	}
	if err := f.Mend(id); err != nil {
		t.Fatal(err)
	}
	sshUp(t, p, id)
	if err := f.LinkDown(t.Context(), id, 50*time.Millisecond, network.MessagePort); err != nil {
		t.Fatal(err)
	}
	if err := f.HogMemory(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := f.KillInit("local-02"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s, err := p.Observe(t.Context(), []muster.MachineID{"local-02"})
		if err == nil && s[0].State == provider.StateOff {
			break
		}
		if time.Now().After(end) {
			t.Fatal(s, err)
		}
	}
	s, err := p.Observe(t.Context(), []muster.MachineID{id})
	t.Log("after the memory was used up:", s, err)
}
