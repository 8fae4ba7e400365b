package cli_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
)

// An unset variable of a script is told as such, whatever the command.
func TestEmptyArguments(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s)
	ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"MACHINE", []string{"machine", "drain", ""}},
		{"MACHINE", []string{"machine", "show", ""}},
		{"MACHINE", []string{"machine", "drain", "fake-01", " "}},
		{"MACHINE", []string{"machine", "note", "", "text"}},
		{"CLUSTER", []string{"scale", ""}},
		{"CLUSTER", []string{"scale", "", "+1"}},
		{"N", []string{"scale", "cfd", ""}},
		{"CLUSTER", []string{"share", "", "alice"}},
		{"USER", []string{"share", "cfd", ""}},
		{"CLUSTER", []string{"exec", "", "--", "true"}},
		{"CLUSTER", []string{"ssh", ""}},
		{"NODE", []string{"ssh", "cfd", ""}},
		{"CLUSTER", []string{"logs", ""}},
		{"NODE", []string{"logs", "cfd", ""}},
		{"CLUSTER", []string{"show", ""}},
		{"CLUSTER", []string{"top", ""}},
		{"CLUSTER", []string{"events", ""}},
		{"CLUSTER", []string{"usage", ""}},
		{"NODE", []string{"usage", "cfd", ""}},
		{"CLUSTER", []string{"delete", "cfd", ""}},
		{"CLUSTER", []string{"console", ""}},
		{"TIME", []string{"extend", "cfd", ""}},
		{"VOLUME", []string{"volume", "show", ""}},
		{"NAME", []string{"create", ""}},
		{"NAME", []string{"user", "remove", ""}},
	} {
		w.refused(2, muster.ReasonRequired, c.args...).naming(`\b` + c.want + `\b`)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"node", []string{"exec", "cfd", "--node", "", "--", "true"}},
		{"user", []string{"exec", "cfd", "-u", " ", "--", "true"}},
		{"user", []string{"ssh", "cfd", "--user", ""}},
		{"unit", []string{"logs", "cfd", "--unit="}},
		{"since", []string{"logs", "cfd", "--since", ""}},
		{"since", []string{"usage", "cfd", "--since", ""}},
		{"owner", []string{"list", "--owner", ""}},
		{"reason", []string{"machine", "drain", "fake-01", "--reason", ""}},
		{"project", []string{"volume", "list", "--project", ""}},
		{"user", []string{"key", "list", "--user", ""}},
		{"ttl", []string{"token", "create", "--ttl", ""}},
		{"key", []string{"user", "add", "eve", "--key", ""}},
		{"projects", []string{"user", "add", "eve", "--projects", ""}},
		{"users", []string{"create", "new", "-n", "1", "--users", "alice,,bob"}},
		{"image", []string{"create", "new", "-n", "1", "--image", ""}},
		{"file", []string{"create", "-f", ""}},
		{"remove", []string{"scale", "cfd", "--remove", ""}},
		{"sort", []string{"top", "--once", "--sort", ""}},
		{"server", []string{"--server", "", "list"}},
		{"token-file", []string{"list", "--token-file", ""}},
		{"state", []string{"image", "list", "--state", ""}},
	} {
		w.refused(2, muster.ReasonRequired, c.args...).naming("--" + c.want + `\b`)
	}
	w.run("list", "-o", "").want(t, 2, "--output")
	w.refused(3, muster.ReasonNoSuchUser, "user", "show", "eve")
	w.run("machine", "note", "fake-01", "").want(t, 0)
	w.run("exec", "cfd", "--", "echo", "").want(t, 0)
	w.run("list").want(t, 0, "cfd")
}
