package cli_test

import (
	"testing"

	"github.com/muster-hpc/muster/control/controltest"
)

func TestTry(t *testing.T) {
	s := controltest.Start(t, controltest.Options{Machines: 5, Build: true})
	w := at(t, s)
	for _, c := range [][]string{
		{"--help"}, {"create", "--help"}, {"exec", "--help"},
		{"create", "cfd", "-n", "4", "--wait"}, {"list"}, {"show", "cfd"}, {"create", "more", "-n", "3"}, {"list"},
		{"create", "huge", "-n", "2", "--cores", "100000"}, {"create", "many", "-n", "100"}, {"create", "x y", "-n", "0", "--image", "hpcc", "--egress", "nat"},
		{"create", "dry", "-n", "1", "--dry-run", "--head", "shared"},
		{"machine", "list"}, {"machine", "list", "-w"}, {"machine", "show", "fake-01"}, {"machine", "show", "fake-1"}, {"image", "list"}, {"image", "show", "raw"},
		{"user", "list"}, {"events", "cfd"}, {"server"}, {"version"}, {"usage", "cfd"}, {"craete"}, {"machine", "lst"}, {"create"}, {"create", "x"}, {"show"}, {"show", "cdf"}, {"list", "--al"},
		{"exec", "cfd"}, {"exec", "cfd", "--", "true"}, {"token", "create", "alice"}, {"token", "list"}, {"delete", "cfd", "nope", "--wait"}, {"list", "-o", "yaml"}, {"list", "-o", "xml"}, {"key", "list"},
	} {
		r := w.run(c...)
		t.Logf("$ muster %v\n%s%s[%d]", c, r.out, r.err, r.code)
	}
}
