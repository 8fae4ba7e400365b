package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/provider/providertest"
)

// TestSuite is the contract that every provider keeps.
func TestSuite(t *testing.T) {
	t.Parallel()
	cfg := config(t, "2,memory=1GiB", nil)
	providertest.Suite(t, providertest.Subject{
		Open: func(t *testing.T) provider.Provider {
			t.Helper()
			// Closed by the suite, which outlives the test that opens it.
			p, err := local.New(context.WithoutCancel(t.Context()), cfg)
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		SSH:   true,
		Share: "name",
		Freeze: func(t *testing.T, p provider.Provider, id muster.MachineID) {
			t.Helper()
			l, ok := p.(*local.Provider)
			if !ok {
				t.Fatal("another provider")
			}
			local.Freeze(t, l, id)
		},
		Spoil: func(t *testing.T, p provider.Provider, id muster.MachineID) func() {
			t.Helper()
			l, ok := p.(*local.Provider)
			if !ok {
				t.Fatal("another provider")
			}
			return local.Spoil(l, id, func(id muster.MachineID) { local.LimitMemory(t, l, id, 32<<20) }, nil)
		},
		Die: func(t *testing.T, _ provider.Provider, id muster.MachineID) {
			t.Helper()
			pid := firstProcess(t, cfg.Instance, id)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
	})
}

// firstProcess finds process 1 of a machine, as the host numbers it.
func firstProcess(t *testing.T, instance string, id muster.MachineID) int {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for _, form := range []string{"/sys/fs/cgroup/unified/muster-%s", "/sys/fs/cgroup/muster-%s", "/sys/fs/cgroup/muster.slice/muster-%s.scope"} {
			for _, below := range []string{"init.scope", "."} {
				b, err := os.ReadFile(filepath.Join(fmt.Sprintf(form, instance), string(id), below, "cgroup.procs"))
				var pid int
				if _, serr := fmt.Sscan(string(b), &pid); err == nil && serr == nil {
					return pid
				}
			}
		}
	}
	t.Fatal("no first process")
	return 0
}
