package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/vm/host"
	"github.com/muster-hpc/muster/vm/host/hosttest"
)

// A host is checked where the command runs, without a server.
func TestDoctorVM(t *testing.T) {
	t.Parallel()
	run := func(tree string, args ...string) (string, int) {
		var out, errs bytes.Buffer
		env := cli.Env{Out: &out, Err: &errs, Getenv: func(string) string { return "" }, VMHost: host.Source{
			FS: hosttest.Tree(t, tree, nil), Firmware: func(string) string { return "" },
			QEMU:     func(context.Context) (string, error) { return "QEMU emulator version 10.0.2", nil },
			Executes: func(context.Context) bool { return true },
			Volumes:  func() error { return nil },
		}}
		code := cli.Run(t.Context(), env, append([]string{"doctor", "--vm"}, args...))
		if errs.Len() > 0 {
			t.Errorf("%s", errs.String())
		}
		return out.String(), code
	}
	out, code := run(hosttest.TwoSockets)
	for _, want := range []string{"executes machines: one was tried", "vf:eno1", "What to do:", "echo 8 > /sys/bus/pci/devices/0000:17:00.0/sriov_numvfs"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("no %q: status %d\n%s", want, code, out)
		}
	}
	out, code = run(hosttest.Nothing, "-o", "json")
	var checks []cli.Check
	if err := json.Unmarshal([]byte(out), &checks); err != nil || code != 1 {
		t.Fatalf("status %d, %v\n%s", code, err, out)
	}
	i := slices.IndexFunc(checks, func(c cli.Check) bool { return c.Name == "virtualization" })
	if i < 0 || checks[i].OK || checks[i].Level != "error" || !strings.Contains(checks[i].Fix, "in firmware setup: enable Intel VT-x") {
		t.Errorf("%+v", checks)
	}
	if j := slices.IndexFunc(checks, func(c cli.Check) bool { return c.Name == "iommu" }); j < 0 || checks[j].Level != "warning" {
		t.Errorf("%+v", checks)
	}
}
