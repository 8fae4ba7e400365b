package fake_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/vm/save/savetest"
)

// Simulated machines pass the suite that QEMU's pass.
func TestSaved(t *testing.T) {
	t.Parallel()
	var w *fake.World
	var dir string
	machines := map[string]muster.MachineID{"n01": "fake-0001", "n02": "fake-0002"}
	change := func(t *testing.T, node string, f func([]byte) []byte) {
		t.Helper()
		path := filepath.Join(dir, save.NameOf("c-test", node)+".state")
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, f(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	savetest.Suite(t, savetest.Subject{
		Nodes: []string{"n01", "n02"},
		Open: func(t *testing.T) save.Hypervisor {
			w = fake.New(fake.Options{Machines: 2, VM: true, Agent: func(ctx context.Context, _ *fake.Machine, _ provider.Boot) { <-ctx.Done() }})
			t.Cleanup(w.Close)
			p := w.Open()
			boots := map[string]provider.DesiredState{}
			for node, id := range machines {
				boots[node] = provider.DesiredState{Machine: id, Power: provider.PowerBoot, VM: &muster.VMOptions{}, Boot: &provider.Boot{Attempt: 1, Cluster: "c-test", Hostname: node}}
				if errs := p.Ensure(t.Context(), []provider.DesiredState{boots[node]}); errs != nil {
					t.Fatal(errs)
				}
			}
			key, err := save.NewKey()
			if err != nil {
				t.Fatal(err)
			}
			dir = t.TempDir()
			return p.Saver(provider.Saving{States: &save.Store{Dir: dir}, Key: key, Boots: boots, Token: func(context.Context, string) (string, error) { return "", nil }})
		},
		Spoil: func(t *testing.T, n string) {
			change(t, n, func(b []byte) []byte { b[len(b)/2]++; return b })
		},
		Cut:   func(t *testing.T, n string) { change(t, n, func(b []byte) []byte { return b[:len(b)-10] }) },
		Count: func(_ *testing.T, n string) int { return int(w.Ran(machines[n])) },
	})
}
