package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

func idOf(t *testing.T, w *world, name string) string {
	t.Helper()
	var c wire.Cluster
	if err := json.Unmarshal([]byte(w.run("show", name, "-o", "json").want(t, 0).out), &c); err != nil {
		t.Fatal(err)
	}
	return string(c.ID)
}

// Slips of the fingers are told in words of the user.
func TestBadFlags(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	w := at(t, s)
	for _, c := range []struct {
		line  string
		why   muster.Reason
		names string
	}{
		{"create x -n three", muster.ReasonBadValue, `--nodes.*"three"`},
		{"create x -n 1 --imag hpc", muster.ReasonUnknownFlag, "--image"},
		{"create x -n 1 --procesor EPYC", muster.ReasonUnknownFlag, "--processor"},
		{"create x -n 1 --foo", muster.ReasonUnknownFlag, "muster create --help"},
		{"create x -n 1 --timeout 3s", muster.ReasonContradiction, "--wait"},
		{"create x -n 1 --format xml", muster.ReasonBadUsage, "--file"},
		{"create x -n 1 --wait --timeout fast", muster.ReasonBadValue, "--timeout"},
		{"delete x --timeout 3s", muster.ReasonContradiction, "--wait"},
		{"exec x ls -l", muster.ReasonUnknownFlag, "muster exec CLUSTER -- COMMAND"},
	} {
		w.refused(2, c.why, strings.Fields(c.line)...).naming(c.names)
	}
	w.run("list", "-o", "xml").want(t, 2, "-o json")
	if r := w.run("list", "--all"); !strings.Contains(r.out, "No clusters") {
		t.Errorf("something was made: %s", r.out)
	}
}

// A project that begins with its first member and looks like another one is
// made, and told.
func TestProjectsThatLookAlike(t *testing.T) {
	t.Parallel()
	w := at(t, controltest.Start(t, controltest.Options{Machines: 1}))
	quiet := func(args ...string) {
		t.Helper()
		if r := w.run(args...).want(t, 0); strings.Contains(r.err, "note") {
			t.Errorf("%s: %s", args, r.err)
		}
	}
	quiet("user", "add", "alice", "--projects", "climate")
	quiet("user", "add", "bob", "--projects", "climate,run1")
	quiet("user", "add", "carol", "--projects", "run2")
	w.run("user", "add", "dave", "--projects", "cilmate").want(t, 0, "note: .*cilmate.*muster user add NAME --projects climate")
	quiet("user", "add", "eve", "--projects", "cilmate")
}

func TestEmptyRequest(t *testing.T) {
	t.Parallel()
	w := at(t, controltest.Start(t, controltest.Options{Machines: 1}))
	w.stdin(" \n").refused(2, muster.ReasonRequired, "create", "-f", "-")
	w.refused(2, muster.ReasonRequired, "create", "x", "-n", "0").at("nodes", muster.ReasonRequired)
}

// What is gone can be read by its ID, and its name says where it is.
func TestDeletedClusterIsStillThere(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	w := at(t, s)
	w.run("create", "cfd", "-n", "1", "--wait").want(t, 0)
	id := idOf(t, w, "cfd")
	w.run("delete", "cfd", "--wait").want(t, 0)
	for _, command := range []string{"show", "events", "logs", "usage"} {
		w.run(command, id).want(t, 0)
	}
	w.refused(3, muster.ReasonNoSuchCluster, "show", "cfd").naming(id)
	w.refused(3, muster.ReasonNoSuchCluster, "delete", "cfd").naming(id)
	w.refused(4, muster.ReasonWrongPhase, "exec", id, "--", "true")
	w.run("top", id).want(t, 0, "cores busy - of 0")
}

func TestCompletionOfNames(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	s.User("alice", "bio")
	w := at(t, s)
	w.run("create", "cfd", "-n", "1", "--wait").want(t, 0)
	for line, want := range map[string]string{
		"show ": "cfd", "delete cfd ": "cfd", "logs cfd ": "n01", "machine show fake": "fake-01\nfake-02",
		"image show ": "hpc\nraw", "create x --image h": "hpc", "create x --class ": "standard", "create x --rack ": "r1",
		"user show ": "alice", "token revoke ": "t-",
	} {
		words := strings.Split(line, " ")
		w.run(append([]string{"__complete"}, words...)...).want(t, 0, "(?m)^"+want)
	}
}

// The story of the nodes goes on until the cluster is gone, and no line is
// told twice or left out, also when it comes late.
func TestFollowLogs(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	w := at(t, s)
	w.run("create", "cfd", "-n", "2", "--head", "shared", "--wait").want(t, 0)
	id := muster.ClusterID(idOf(t, w, "cfd"))
	began := time.Now()
	line := func(after int, text string) wire.JournalLine {
		return wire.JournalLine{At: began.Add(time.Duration(after) * time.Second), Unit: "init", Message: text}
	}
	one := []wire.JournalLine{line(1, "one"), line(3, "three"), line(3, "three")}
	s.Agents.PutJournal(id, "n01", one...)
	done := make(chan result)
	f := at(t, s)
	var sofar buffer
	f.wrote = func(text string) { _, _ = sofar.Write([]byte(text)) }
	go func() { done <- f.run("logs", "-f", "cfd", "-n", "2") }()
	told := func(text string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !strings.Contains(sofar.String(), text); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no %q in %s", text, sofar.String())
			}
		}
	}
	told("three")
	s.Agents.PutJournal(id, "n02", line(2, "late"))
	told("late")
	s.Agents.PutJournal(id, "n01", append(one, line(4, "four"))...)
	told("four")
	w.run("delete", "cfd", "--wait").want(t, 0)
	r := (<-done).want(t, 0, "no more lines come")
	var texts []string
	for l := range strings.Lines(r.out) {
		texts = append(texts, strings.Fields(l)[3])
	}
	if got := strings.Join(texts, " "); got != "three three late four" {
		t.Errorf("told %q", got)
	}
}

// What a flag cannot mean is refused, and a node that is named is the only one.
func TestUsageAndLogsFlags(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s)
	c := ready(t, s, w, "cfd", "-n", "2", "--head", "shared")
	for _, n := range c.Cluster.Nodes {
		s.Agents.PutUsage(n.Machine, wire.Usage{At: time.Now(), Load1: 1})
	}
	r := w.run("usage", "cfd", "n02", "--samples", "3").want(t, 0, "n02 ")
	if strings.Contains(r.out, "n01") {
		t.Errorf("another node is told: %s", r.out)
	}
	if r := w.run("usage", "cfd", "head", "--samples", "1").want(t, 0, "n01 "); strings.Contains(r.out, "n02") {
		t.Errorf("another node is told: %s", r.out)
	}
	w.refused(3, muster.ReasonNoSuchNode, "usage", "cfd", "n07", "--samples", "3").naming("n07")
	w.refused(2, muster.ReasonOutOfRange, "usage", "cfd", "--samples", "-1").naming("--samples")
	w.refused(2, muster.ReasonBadUsage, "usage", "--samples", "2").naming("CLUSTER")
	w.refused(2, muster.ReasonOutOfRange, "logs", "cfd", "-n", "0").naming("--lines")
	w.refused(2, muster.ReasonOutOfRange, "logs", "cfd", "-n", "-4").naming("--lines")
	w.run("list", "--owner", "nobody").want(t, 0, "No clusters")
	if r := w.refused(2, muster.ReasonBadValue, "create", "Ünï", "-n", "1").naming(`"Ünï"`); strings.Contains(r.text, "write n") {
		t.Errorf("a name is made of half the letters: %s", r.text)
	}
}

// The site's whole past is told only to who asks for it.
func TestNewestEvents(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 60, Build: true})
	w := at(t, s)
	ready(t, s, w, "cfd", "-n", "2", "--head", "shared")
	lines := func(args ...string) []string {
		t.Helper()
		return strings.Split(strings.TrimSpace(w.run(append([]string{"events", "-o", "json"}, args...)...).want(t, 0).out), "\n")
	}
	all := lines("-n", "0")
	if len(all) <= 50 {
		t.Fatalf("%d events", len(all))
	}
	for want, got := range map[int][]string{50: lines(), 3: lines("-n", "3"), len(all) - 1: lines("--after", "1")} {
		if len(got) != want || got[len(got)-1] != all[len(all)-1] {
			t.Errorf("%d lines, not %d", len(got), want)
		}
	}
	if got := lines("cfd", "-n", "1"); len(got) != 1 || !strings.Contains(got[0], "cluster") {
		t.Errorf("%q", got)
	}
	w.refused(2, muster.ReasonOutOfRange, "events", "-n", "-2").naming("--lines")
}
