package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/muster-hpc/muster"
)

// All that is wrong with the flags of a server is told at once, each with its cure.
func TestWrongFlags(t *testing.T) {
	t.Parallel()
	read := func(args ...string) *muster.Error {
		var f serveFlags
		set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		f.add(set)
		if err := set.Parse(args); err != nil {
			t.Fatal(err)
		}
		_, err := f.config("test")
		var e *muster.Error
		if !errors.As(err, &e) {
			t.Fatalf("%v: %v", args, err)
		}
		return e
	}
	e := read("--local", "0", "--link", "A-B", "--patience", "0", "--egress", "all", "--validate", "deep", "--retain", "soon", "--log-level", "loud",
		"--saved-states-quota", "-1", "--idle-benchmark-interval", "1s", "--vm-device", "nonsense", "--performance-targets", "/does/not/exist")
	var fields []string
	for _, p := range e.Problems {
		fields = append(fields, p.Field)
		if p.Message == "" || p.Hint == "" {
			t.Errorf("%+v", p)
		}
	}
	got := strings.Join(fields, " ")
	if strings.Count(got, "flags") != 3 { // of readers of their own: --retain, --performance-targets, --log-level
		t.Errorf("%s", got)
	}
	for _, want := range []string{`machines "0"`, "link A-B", "--patience", "--egress", "--validate", "--saved-states-quota", "--idle-benchmark-interval", "--vm-device"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not named: %s", want, got)
		}
	}
	if len(e.Problems) < 11 || e.Reason != muster.ReasonHasProblems {
		t.Errorf("%q, %s", fields, e.Reason)
	}
	// One alone is told as it is.
	if e := read("--patience", "0"); len(e.Problems) != 0 || !strings.HasPrefix(e.Message, "--patience 0 ") {
		t.Errorf("%+v", e)
	}
}
