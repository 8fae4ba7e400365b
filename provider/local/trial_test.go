package local_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/provider/local/network"
)

func TestTrial(t *testing.T) {
	t.Parallel()
	p := open(t, "2,memory=512MiB", nil)
	for range 2 {
		r, err := p.Test(t.Context(), "local-01", 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Log("took", r.Took)
		for _, s := range r.Steps {
			t.Log(s.OK, s.What, "-", s.Check)
		}
		if !r.Passed || len(r.Steps) < 9 || r.Took <= 0 || r.Took > muster.Duration(10*time.Second) {
			t.Errorf("%+v", r)
		}
	}
	seen, err := p.Observe(t.Context(), nil)
	if err != nil || seen[0].State != provider.StateOff || seen[1].State != provider.StateOff {
		t.Error(seen, err)
	}
	// It can be cleaned and used afterwards.
	if c, err := p.Clean(t.Context(), "local-01"); err != nil || !c.Verified {
		t.Error(c, err)
	}
	if errs := p.Ensure(t.Context(), wants(1, nil)); errs != nil {
		t.Fatal(errs)
	}
	if _, err := p.Test(t.Context(), "local-01", 1); muster.CodeOf(err) != muster.EConflict {
		t.Error("tested while it ran:", err)
	}
	if one, err := p.Observe(t.Context(), []muster.MachineID{"local-01"}); err != nil || one[0].State != provider.StateRunning {
		t.Error(one, err)
	}
}

// TestTrialFails has each part of a machine fail in turn: a test that cannot
// fail is none.
func TestTrialFails(t *testing.T) {
	t.Parallel()
	p := open(t, "1,cores=1,memory=512MiB", nil)
	for name, c := range map[string]struct {
		spoil func(muster.MachineID)
		facts func(*muster.Facts)
		want  string // in a step that is not OK
	}{
		"a processor that does not exist": {facts: func(f *muster.Facts) { f.CPUs = []int{4000} }, want: "cpuset.cpus"},
		"a processor it may not use":      {spoil: func(id muster.MachineID) { local.OtherCPU(t, p, id) }, want: "processors"},
		"less memory than it says":        {spoil: func(id muster.MachineID) { local.LimitMemory(t, p, id, 32<<20) }, want: "killed after"},
		"no management link":              {spoil: func(muster.MachineID) { cut(t, p, network.ManagementPort) }, want: "management link"},
		"no message link":                 {spoil: func(muster.MachineID) { cut(t, p, network.MessagePort) }, want: "message link"},
		"it stands still":                 {spoil: func(id muster.MachineID) { local.Freeze(t, p, id) }, want: "did not end"},
	} {
		t.Run(name, func(t *testing.T) {
			undo := local.Spoil(p, "local-01", c.spoil, c.facts)
			defer undo()
			r, err := p.Test(t.Context(), "local-01", 1)
			if err != nil {
				t.Fatal(err)
			}
			var bad []string
			for _, s := range r.Steps {
				if !s.OK {
					bad = append(bad, s.What+": "+s.Check)
				}
			}
			t.Log(time.Duration(r.Took).Round(time.Millisecond), bad)
			if r.Passed || !strings.Contains(strings.Join(bad, "\n"), c.want) {
				t.Errorf("passed: %v, no %q in %q", r.Passed, c.want, bad)
			}
			if s := one(t, p); s.State != provider.StateOff {
				t.Errorf("left behind: %+v", s)
			}
		})
	}
	undo := local.SmallDisk(p)
	r, err := p.Test(t.Context(), "local-01", 1)
	undo()
	if err != nil || r.Passed || !slices.ContainsFunc(r.Steps, func(s muster.CleanStep) bool { return s.What == "disk" && !s.OK }) {
		t.Error("a disk that is too small:", r, err)
	}
	// A server that is held up still finds the links of the machine, and what they counted.
	undo = local.HoldUp(p, time.Second)
	defer undo()
	if r, err := p.Test(t.Context(), "local-01", 1); err != nil || !r.Passed {
		t.Error("and in the end it is well:", r, err)
	}
}

func cut(t *testing.T, p *local.Provider, port network.Port) {
	t.Helper()
	if err := p.Rack().CutPort(0, port); err != nil {
		t.Error(err)
	}
}

// TestTrialIsFenced breaks a test off, and has a server die during one.
func TestTrialIsFenced(t *testing.T) {
	t.Parallel()
	cfg := config(t, "1,memory=512MiB", nil)
	p := openConfig(t, cfg)
	ended := make(chan error, 1)
	go func() {
		_, err := p.Test(context.WithoutCancel(t.Context()), "local-01", 1)
		ended <- err
	}()
	time.Sleep(100 * time.Millisecond)
	if r, err := p.Fence(t.Context(), "local-01"); err != nil || !r.Proven {
		t.Error(r, err)
	}
	if err := <-ended; muster.CodeOf(err) != muster.EUnavailable {
		t.Error("a test that was broken off:", err)
	}
	// The next server knows that nobody waits for a test any more.
	go func() {
		_, err := p.Test(context.WithoutCancel(t.Context()), "local-01", 1)
		ended <- err
	}()
	group := filepath.Join(groupOf(t, cfg.Instance), "local-01")
	for end := time.Now().Add(2 * time.Minute); len(processes(t, group)) == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	next := openConfig(t, cfg)
	if left := processes(t, group); len(left) > 0 {
		t.Error("the test goes on for nobody:", left)
	}
	if s := one(t, next); s.State != provider.StateOff {
		t.Errorf("%+v", s)
	}
	<-ended
}
