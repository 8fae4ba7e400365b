package cli_test

import (
	"testing"

	"github.com/muster-hpc/muster/daemon/controltest"
)

// BenchmarkExec is what muster exec costs besides the command: a certificate,
// a tunnel, a log-in, a shell that does nothing.
func BenchmarkExec(b *testing.B) {
	s := controltest.Start(b, controltest.Options{Machines: 1, Build: true})
	w := at(b, s)
	ready(b, s, w, "cfd", "-n", "1", "--head", "shared")
	for b.Loop() {
		w.run("exec", "cfd", "--", "true").want(b, 0)
	}
}

// BenchmarkCreateDelete is what the server and the command line cost for a
// whole life of a cluster whose machines take no time.
func BenchmarkCreateDelete(b *testing.B) {
	s := controltest.Start(b, controltest.Options{Machines: 5, Build: true})
	w := at(b, s)
	for b.Loop() {
		w.run("create", "cfd", "-n", "4", "--wait").want(b, 0)
		w.run("delete", "cfd", "--wait").want(b, 0)
	}
}
