package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// Programs that ask for JSON get errors as JSON, whatever went wrong and
// whichever command it was.
func TestErrorsForPrograms(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s)
	ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	for _, c := range []struct {
		status   int
		code     muster.Code
		why      muster.Reason
		problems int
		hint     string
		args     []string
	}{
		{3, muster.ENotFound, muster.ReasonNoSuchCluster, 0, "", []string{"show", "cfx", "-o", "json"}},
		{2, muster.EInvalid, muster.ReasonUnknownFlag, 0, "--lines", []string{"logs", "--linez", "3", "cfd", "--output=json"}}, // not read to its end
		{2, muster.EInvalid, muster.ReasonUnknownCommand, 0, "list", []string{"-ojson", "lisst"}},
		{2, muster.EInvalid, muster.ReasonRequired, 0, "shell variable", []string{"-o", "json", "exec", "cfd", "--node", "", "--", "true"}},
		{2, muster.EInvalid, muster.ReasonHasProblems, 2, "", []string{"create", "bad", "-n", "1", "--cores", "x", "--memory", "y", "-o=json"}},
		{6, muster.ENever, muster.ReasonNeverFits, 0, "", []string{"create", "big", "-n", "99", "-o", "json"}},
		{4, muster.EConflict, muster.ReasonNameTaken, 0, "", []string{"create", "cfd", "-n", "1", "-o", "json"}},
		{3, muster.ENotFound, muster.ReasonNoSuchMachine, 0, "", []string{"machine", "drain", "nowhere", "-o", "json"}},
		{3, muster.ENotFound, muster.ReasonNoSuchVolume, 0, "", []string{"volume", "show", "none", "-o", "json"}},
		{3, muster.ENotFound, muster.ReasonNoSuchNode, 0, "", []string{"console", "cfd", "n77", "-o", "json"}},
		{3, muster.ENotFound, muster.ReasonNoSuchNode, 0, "", []string{"tunnel", "cfd", "n77", "-o", "json"}},
		{3, muster.ENotFound, muster.ReasonNoSuchUser, 0, "", []string{"user", "show", "nobody-such", "-o", "json"}},
		{7, muster.EUnavailable, muster.ReasonServerUnreachable, 0, "muster serve", []string{"list", "-o", "json", "--server", "unix:/nowhere/muster.sock"}},
	} {
		got := w.run(c.args...)
		var e wire.Refused
		if err := json.Unmarshal([]byte(got.err), &e); err != nil || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%v: not one line of JSON: %v\n%s", c.args, err, got.err)
			continue
		}
		if got.code != c.status || e.Code != c.code || e.Message == "" || e.Reason != c.why || len(e.Problems) != c.problems || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%v: status %d: %s", c.args, got.code, got.err)
		}
		if (c.code == muster.ENever) != (e.Answer != nil && len(e.Answer.Rejections) > 0) {
			t.Errorf("%v: the answer of admission: %s", c.args, got.err)
		}
	}
	two := w.run("delete", "cfx", "cfy", "-o", "json")
	if lines := strings.Split(strings.TrimSpace(two.err), "\n"); two.code != 3 || len(lines) != 2 || !json.Valid([]byte(lines[0])) || !json.Valid([]byte(lines[1])) {
		t.Errorf("status %d: %s", two.code, two.err)
	}
	w.run("show", "cfx", "-o", "yaml").want(t, 3, "(?m)^---\ncode: not_found\nreason: no-such-cluster\nmessage: ")
	w.run("show", "cfx").want(t, 3, "^muster: ")
	// What stands after -- is not Muster's.
	w.run("exec", "cfd", "--nodee", "x", "--", "cc", "-o", "json").want(t, 2, "^muster: ")
}
