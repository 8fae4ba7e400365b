package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// ready makes a cluster whose nodes answer.
func ready(t testing.TB, s *controltest.Site, w *world, args ...string) wire.Created {
	t.Helper()
	r := w.run(append([]string{"create"}, append(args, "--wait", "-o", "json")...)...).want(t, 0)
	var created wire.Created
	if err := json.Unmarshal([]byte(r.out), &created); err != nil || created.Status != "ready" {
		t.Fatalf("%v\n%s%s", err, r.out, r.err)
	}
	sshd(t, s, created.ID)
	return created
}

func TestExec(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	w := at(t, s)
	ready(t, s, w, "cfd", "-n", "3", "--head", "shared", "--users", "alice,bob")
	w.run("exec", "cfd", "--", "sh", "-c", "echo $USER on $NODE").want(t, 0, `^alice on n01\n$`)
	w.run("exec", "cfd", "--node", "n02", "--user", "bob", "--", "sh", "-c", "echo $USER on $NODE").want(t, 0, `^bob on n02\n$`)
	w.run("exec", "cfd", "--", "sh", "-c", "exit 7").want(t, 7)
	w.run("exec", "cfd", "--", "sh", "-c", "echo no >&2; exit 3").want(t, 3, `^no\n$`)
	w.run("exec", "cfd", "--", "no-such-command").want(t, 127)
	w.stdin("some text\n").run("exec", "cfd", "--", "cat").want(t, 0, `^some text\n$`)
	w.run("exec", "cfd", "--", "printf", "%s|", "a b", "", "it's", "$HOME", "*", "é").want(t, 0, `^a b\|\|it's\|\$HOME\|\*\|é\|$`)
	r := w.run("exec", "cfd", "--all", "--", "sh", "-c", "echo here; test $NODE != n03").want(t, 1)
	for _, line := range []string{"n01: here\n", "n02: here\n", "n03: here\n"} {
		if !strings.Contains(r.out, line) {
			t.Errorf("no %q in %q", line, r.out)
		}
	}
	big := strings.Repeat("0123456789abcdef\n", 200000)
	if r := w.stdin(big).run("exec", "cfd", "--", "cat"); r.code != 0 || r.out != big {
		t.Errorf("%d bytes came back of %d, status %d %s", len(r.out), len(big), r.code, r.err)
	}
}

func TestExecIsRefused(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	w := at(t, s)
	alice, bob, carol := s.User("alice", "bio"), s.User("bob", "bio"), s.User("carol", "chem")
	ready(t, s, w.with("MUSTER_TOKEN", alice), "cfd", "-n", "2", "--head", "shared")
	w.run("exec", "cfd", "--", "sh", "-c", "echo $USER").want(t, 0, "^alice\n$")
	w.refused(5, muster.ReasonYourselfOnly, "exec", "cfd", "--user", "bob", "--", "true")
	w.refused(5, muster.ReasonYourselfOnly, "exec", "cfd", "--user", "root", "--", "true")
	w.refused(3, muster.ReasonNoSuchNode, "exec", "cfd", "--node", "n9", "--", "true").naming("n9", "n01|n02")
	w.with("MUSTER_TOKEN", bob).refused(5, muster.ReasonNoAccess, "exec", "cfd", "--", "true").naming("cfd")
	w.with("MUSTER_TOKEN", carol).refused(3, muster.ReasonNoSuchCluster, "exec", "cfd", "--", "true").naming("cfd")
	w.with("MUSTER_TOKEN", "").run("exec", "cfd", "--user", "root", "--", "sh", "-c", "echo $USER").want(t, 0, "^root\n$")
	w.refused(3, muster.ReasonNoSuchUser, "exec", "cfd", "--user", "alixe", "--", "true").naming("alice")
}

func TestUsersAreRootOnRaw(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Build: true})
	w := at(t, s).with("MUSTER_TOKEN", s.User("alice", "bio"))
	ready(t, s, w, "lab", "-n", "1", "--head", "shared", "--image", "raw")
	w.run("exec", "lab", "--", "sh", "-c", "echo $USER").want(t, 0, "^root\n$")
	w.run("exec", "lab", "--user", "alice", "--", "sh", "-c", "echo $USER").want(t, 0, "^alice\n$")
}

// A node that another cluster's authority vouches for is not spoken to.
func TestExecKnowsTheHost(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Build: true})
	w := at(t, s)
	ready(t, s, w, "one", "-n", "1", "--head", "shared")
	ready(t, s, w, "two", "-n", "1", "--head", "shared") // its authority answers now
	w.run("exec", "two", "--", "true").want(t, 0)
	w.refused(7, muster.ReasonNodeUnreachable, "exec", "one", "--", "true").naming("n01", "muster logs c-[0-9a-z]+ n01")
}
