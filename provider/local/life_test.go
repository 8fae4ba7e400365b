package local_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
)

func TestLife(t *testing.T) {
	t.Parallel()
	p := open(t, "1,memory=1GiB", nil)
	w := wants(1, nil)
	start := time.Now()
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	t.Log("init after", time.Since(start))
	sshUp(t, p, "local-01")
	t.Log("sshd after", time.Since(start))
	waitChange(t, p, "local-01")
	seen := one(t, p)
	if seen.State != provider.StateRunning || seen.Attempt != 1 {
		t.Errorf("%+v", seen)
	}
	// Asking again changes nothing.
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	if again := one(t, p); again != seen {
		t.Errorf("%+v became %+v", seen, again)
	}
	if _, err := p.Clean(t.Context(), "local-01"); muster.CodeOf(err) != muster.EConflict {
		t.Error("cleaned a running machine:", err)
	}
	// The next attempt replaces it.
	w[0].Boot.Attempt = 2
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	if s := one(t, p); s.State != provider.StateRunning || s.Attempt != 2 {
		t.Errorf("%+v", s)
	}
	for range 2 {
		if errs := p.Ensure(t.Context(), []provider.DesiredState{{Machine: "local-01", Power: provider.PowerOff}}); errs != nil {
			t.Fatal(errs)
		}
		if s := one(t, p); s.State != provider.StateOff {
			t.Errorf("%+v", s)
		}
	}
	c, err := p.Clean(t.Context(), "local-01")
	if err != nil || !c.Verified || len(c.Steps) < 4 {
		t.Errorf("%+v %v", c, err)
	}
}

// one observes the only machine.
func one(t *testing.T, p provider.Provider) provider.Observation {
	t.Helper()
	all, err := p.Observe(t.Context(), nil)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// waitChange waits until the provider says that a machine changed.
func waitChange(t *testing.T, p provider.Provider, id muster.MachineID) {
	t.Helper()
	select {
	case got := <-p.Changes():
		if got != id {
			t.Errorf("%s changed, not %s", got, id)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing changed")
	}
}

// TestServerRestarts sees that machines outlive the server and that the next
// one knows them, notices their death and cleans up.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	cfg := config(t, "2,memory=1GiB", nil)
	p := openConfig(t, cfg)
	net := provider.Network{Cluster: "c-1", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20"), Egress: muster.EgressProxy}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{net}); err != nil {
		t.Fatal(err)
	}
	if errs := p.Ensure(t.Context(), wants(2, &net)); errs != nil {
		t.Fatal(errs)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p2 := openConfig(t, cfg)
	seen, err := p2.Observe(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range seen {
		if s.State != provider.StateRunning || s.Attempt != 1 {
			t.Errorf("after a restart: %+v", s)
		}
	}
	nets, err := p2.Networks(t.Context())
	if err != nil || len(nets) != 1 || nets[0] != "c-1" {
		t.Error(nets, err)
	}
	sshUp(t, p2, "local-01")
	sshUp(t, p2, "local-02")
	// The machine dies while its parent is long gone.
	start := time.Now()
	if _, err := p2.Fence(t.Context(), "local-02"); err != nil {
		t.Fatal(err)
	}
	waitChange(t, p2, "local-02")
	t.Log("its death was noticed after", time.Since(start))
	seen, err = p2.Observe(t.Context(), []muster.MachineID{"local-02"})
	if err != nil || len(seen) != 1 || seen[0].State != provider.StateOff {
		t.Error(seen, err)
	}
}

// TestBadImage sees that a start that fails says why and leaves nothing.
func TestBadImage(t *testing.T) {
	t.Parallel()
	p := open(t, "1,memory=1GiB", func(c *local.Config) {
		dir := t.TempDir()
		c.ImagePath = func(_ context.Context, id muster.ImageID) (string, error) {
			switch id {
			case "none":
				return "", muster.Errorf(muster.ENotFound, "no image")
			case "junk":
				return dir + "/junk", os.WriteFile(dir+"/junk", make([]byte, 1<<20), 0o600)
			}
			return dir, nil // an empty directory: no init in it
		}
	})
	for id, want := range map[muster.ImageID]string{"none": "no image", "junk": "mount", "empty": "init"} {
		w := wants(1, nil)
		w[0].Boot.Image = id
		errs := p.Ensure(t.Context(), w)
		if len(errs) != 1 || errs[0] == nil || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%s: %v", id, errs)
		}
		s := one(t, p)
		if s.State != provider.StateOff || s.Err == nil {
			t.Errorf("%s: %+v", id, s)
		}
		var e *muster.Error
		if !errors.As(errs[0], &e) {
			t.Errorf("%s: not for people: %v", id, errs[0])
		}
	}
}

// TestUnpackedImage boots from a directory, as kernels do that cannot map the
// owners of a squashfs.
func TestUnpackedImage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "root")
	cmd := exec.CommandContext(t.Context(), "unsquashfs", "-no-progress", "-quiet", "-dest", dir, testImage(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skip(err, string(out))
	}
	p := open(t, "1,memory=1GiB", func(c *local.Config) {
		c.ImagePath = func(context.Context, muster.ImageID) (string, error) { return dir, nil }
	})
	if errs := p.Ensure(t.Context(), wants(1, nil)); errs != nil {
		t.Fatal(errs)
	}
	sshUp(t, p, "local-01")
}
