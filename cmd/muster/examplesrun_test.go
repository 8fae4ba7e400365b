package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// runnable are the commands whose examples are run as they are printed: those that read what
// a site with a cluster cfd has. Others change it, need a terminal, files or real machines, or
// name what only they show.
func runnable() []string {
	return []string{
		"muster list", "muster show", "muster events", "muster calendar", "muster template list", "muster book list", "muster usage",
		"muster logs", "muster certificate list", "muster machine list", "muster maintenance list", "muster project list", "muster volume list",
		"muster image list", "muster user list", "muster token list", "muster server", "muster version", "muster ssh-config", "muster completion",
	}
}

// Examples of commands that read run as they are printed, against a server with simulated
// machines; those of creating run as a dry run.
func TestExamplesRun(t *testing.T) {
	s := controltest.Start(t, controltest.Options{Machines: 12, Build: true})
	s.User("alice", "aero")
	k := s.Client("")
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", "")
	if _, err := k.CreateCluster(t.Context(), client.Create{Format: "yaml", Body: []byte("name: cfd\nproject: aero\nnodes: 3\nusers: [alice]")}); err != nil {
		t.Fatal(err)
	}
	// Another one has room and no cluster yet, for those that ask for one.
	empty := controltest.Start(t, controltest.Options{Machines: 12})
	empty.User("alice", "aero")
	if _, err := empty.Client("").CreateVolume(t.Context(), wire.VolumeRequest{Name: "inputs", Project: "aero"}); err != nil {
		t.Fatal(err)
	}
	socket := s.Socket
	run := func(words ...string) (int, string) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var out bytes.Buffer
		env := environment(nil)
		env.In, env.Out, env.Err = strings.NewReader(""), &out, &out
		env.IsTerminal = func(any) bool { return false }
		env.Getenv = func(name string) string {
			return map[string]string{"MUSTER_SERVER": "unix:" + socket, "SUDO_USER": "alice", "TMPDIR": os.Getenv("TMPDIR")}[name]
		}
		code := cli.Run(ctx, env, words)
		return code, out.String()
	}
	if code, out := run("wait", "cfd", "--timeout", "8s"); code != 0 {
		t.Fatal(out)
	}
	if _, err := k.Share(t.Context(), "cfd", wire.ShareRequest{Project: true}); err != nil {
		t.Fatal(err)
	}
	ran := 0
	try := func(of *cobra.Command, line string) {
		for i, words := range musterCommands(line) {
			c, _, err := cli.New(environment(nil)).Find(words)
			socket = s.Socket
			follows := slices.Contains(words, "-f") || slices.Contains(words, "--follow")
			switch {
			case err != nil || i > 0 || follows:
				continue
			case c.CommandPath() == "muster create":
				if slices.ContainsFunc(words, func(w string) bool {
					return w == "--from" || w == "--home" || w == "--like" || strings.HasPrefix(w, "20")
				}) {
					continue // what the site has not; a day that will be over
				}
				socket = empty.Socket
				words = slices.DeleteFunc(words, func(w string) bool { return w == "--wait" || w == "--dry-run" })
				words = append(words, "--dry-run", "--no-queue=false")
			case !slices.Contains(runnable(), c.CommandPath()):
				continue
			}
			ran++
			code, out := run(words...)
			if c.CommandPath() == "muster create" && code == cli.ExitCode(muster.Errorf(muster.ENever, "")) {
				continue // it is understood: the simulated machines are too small
			}
			if code != 0 {
				t.Errorf("%s: %v: status %d\n%s", of.CommandPath(), words, code, out)
			}
		}
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\\\n", "")) {
			if line, _, _ = strings.Cut(strings.TrimSpace(line), "     "); line != "" {
				try(c, line)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cli.New(environment(nil)))
	if ran < 25 {
		t.Errorf("only %d examples ran", ran)
	}
}
