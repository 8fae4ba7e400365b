package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
)

// What would fail at a machine's first command is seen when it is registered.
func TestUnusable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, plain := filepath.Join(dir, "power"), filepath.Join(dir, "plain")
	for path, mode := range map[string]os.FileMode{good: 0o700, plain: 0o600} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	script := func(path string) muster.PowerAddress {
		return muster.PowerAddress{Kind: muster.PowerScript, Address: path}
	}
	on := func(name string) []muster.RegisteredNIC {
		return []muster.RegisteredNIC{{Use: muster.UseManagement}, {Use: muster.UseMessage, Switch: name, Port: "1"}}
	}
	for name, c := range map[string]struct {
		of   muster.Registration
		want []string
	}{
		"fine":            {muster.Registration{Power: script(good), NICs: on("ovs:/run/switch")}, nil},
		"no program":      {muster.Registration{Power: script(filepath.Join(good, "none"))}, []string{"power.address file-unreadable"}},
		"a folder":        {muster.Registration{Power: script(dir)}, []string{"power.address bad-value"}},
		"not executable":  {muster.Registration{Power: script(plain)}, []string{"power.address bad-value"}},
		"no such driver":  {muster.Registration{Power: script(good), NICs: on("arista:leaf1")}, []string{"nics[1].switch no-provider"}},
		"relative path":   {muster.Registration{Power: script(good), NICs: on("ovs:switch")}, []string{"nics[1].switch invalid"}},
		"no interface":    {muster.Registration{Power: muster.PowerAddress{Kind: muster.PowerWOL, Interface: "none-such"}}, []string{"power.interface bad-value"}},
		"checked already": {muster.Registration{Power: script("none")}, nil},
	} {
		if got := errortest.Problems(unusable(c.of)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
