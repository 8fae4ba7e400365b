package cli_test

import (
	"testing"

	"github.com/muster-hpc/muster/daemon/controltest"
)

// A dry run ends as the request would: scripts look at the exit status. The answer is printed all
// the same.
func TestDryRunEndsAsTheRequest(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s)
	try := func(code int, verdict string, args ...string) {
		t.Helper()
		args = append([]string{"create"}, append(args, "--head", "shared", "--walltime", "1h")...)
		w.run(append(args, "--dry-run")...).want(t, code, verdict)
		w.run(append(args, "--dry-run", "-o", "json")...).want(t, code, `"verdict": "`+verdict+`"`)
		if r := w.run(args...); r.code != code {
			t.Errorf("%v without --dry-run: status %d, want %d: %s", args, r.code, code, r.err)
		}
	}
	try(6, "never", "big", "-n", "9")
	try(0, "now", "cfd", "-n", "3")
	try(6, "queued", "next", "-n", "2", "--no-queue")
	try(6, "later", "soon", "-n", "2", "--start", "+10m")
	try(0, "reserved", "then", "-n", "2", "--start", "+3h")
	try(0, "queued", "next", "-n", "2")
}
