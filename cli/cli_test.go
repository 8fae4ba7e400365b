package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// Every command explains itself, with an example.
func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s lacks a word of help or an example", c.CommandPath())
		}
		if strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q is not a sentence", c.CommandPath(), c.Short)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cli.New(cli.Env{Out: os.Stdout, Err: os.Stderr}))
}

func TestGolden(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 5, Build: true})
	w := at(t, s)
	var all strings.Builder
	for _, line := range []string{
		"create cfd -n 4 --wait", "list", "show cfd", "create more -n 3", "create dry -n 1 --dry-run --head shared",
		"create huge -n 2 --cores 100000", "create one -n 1 --no-queue", "create X -n 0 --image hpcc --egress nat --packages a_b",
		"create cfd -n 1 --head shared", "create", "create x", "create x -n 1 -f y.yaml", "craete", "machine lst", "show", "show nope", "list --al", "list extra",
		"machine list", "machine list --wide", "machine show fake-09", "image list", "image show raw", "image remove hpc",
		"user list", "user show alise", "user add root", "user remove alice", "key list", "token list --user alice", "token revoke t-zz",
		"usage cfd", "logs cfd", "exec cfd", "exec cfd -- true", "version", "delete cfd nope --wait", "list -o xml",
	} {
		r := w.run(strings.Fields(line)...)
		all.WriteString("$ muster " + line + "\n" + r.out + r.err)
		if r.code != 0 {
			all.WriteString("[" + time.Duration(r.code).String() + "]\n")
		}
	}
	golden(t, "commands", strings.ReplaceAll(all.String(), "ns]\n", "]\n"))
	golden(t, "help", w.run("--help").out+w.run("create", "--help").out+w.run("exec", "--help").out)
}

func TestFormats(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s)
	ready(t, s, w, "cfd", "-n", "2", "--head", "shared")
	for _, line := range []string{"list", "show cfd", "machine list", "machine show fake-01", "image list", "image show hpc", "user list",
		"user show alice", "key list", "token list", "usage cfd", "logs cfd", "server", "version", "create d -n 1 --head shared --dry-run"} {
		var fromJSON, fromYAML any
		j := w.run(append(strings.Fields(line), "-o", "json")...).want(t, 0)
		if err := json.Unmarshal([]byte(j.out), &fromJSON); err != nil {
			t.Errorf("%s: %v\n%s", line, err, j.out)
		}
		y := w.run(append(strings.Fields(line), "-o", "yaml")...).want(t, 0)
		if err := yaml.Unmarshal([]byte(y.out), &fromYAML); err != nil {
			t.Errorf("%s: %v\n%s", line, err, y.out)
		}
		if strings.Contains(j.out, "null") {
			t.Errorf("%s: an absent list is [] and not null\n%s", line, j.out)
		}
	}
	lines := strings.Split(strings.TrimSpace(w.run("events", "cfd", "-o", "json").want(t, 0).out), "\n")
	var e wire.Event
	if err := json.Unmarshal([]byte(lines[0]), &e); err != nil || e.Kind != muster.AuditCluster || e.To != "building" {
		t.Errorf("first event %s: %v", lines[0], err)
	}
}

func TestRequestFiles(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3})
	w := at(t, s)
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, file := range []string{
		write("a.yaml", "name: cfd\nnodes: 2\nhead: shared\n"),
		write("a.json", `{"name": "cfd", "nodes": 2, "head": "shared"}`),
		write("a.xml", "<cluster><name>cfd</name><nodes>2</nodes><head>shared</head></cluster>"),
		write("guess", "<cluster><name>cfd</name><nodes>2</nodes><head>shared</head></cluster>"),
	} {
		w.run("create", "-f", file, "--dry-run", "-o", "json").want(t, 0, `"verdict": "now"`, `"alice"`, `"status": "dry-run"`)
	}
	w.refused(2, muster.ReasonHasProblems, "create", "-f", write("b.yaml", "name: cfd\nnodez: 2\nhead: shred\n")).at("nodes", muster.ReasonRequired).at("nodez", muster.ReasonUnknownField, "line 2, column 1").at("head", muster.ReasonBadValue, "line 3, column 7").naming("nodes")
	w.refused(2, muster.ReasonFileUnreadable, "create", "-f", filepath.Join(dir, "missing"))
	w.stdin("name: cfd\nnodes: 1\nhead: shared\n").run("create", "-f", "-", "--dry-run").want(t, 0, "now")
	w.refused(2, muster.ReasonBadUsage, "create", "-f", "x", "--cores", "2").naming("--cores", "--file")
}

func TestWaitTellsFailure(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	w := at(t, s)
	done := make(chan struct{})
	feed := s.Store.Subscribe(100)
	go func() {
		defer close(done)
		for a := range feed.C {
			if a.Kind == muster.AuditCluster && a.To == "building" {
				_ = s.Store.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
					c, err := tx.Cluster(a.Cluster)
					if err != nil {
						return err
					}
					c.Phase = muster.ClusterFailed
					c.Reason = muster.Errorf(muster.ECorrupt, "the image is corrupt").WithHint("build it again")
					c.Reason.Problems = []muster.Problem{{Field: "packages[0]", Message: "there is no package zhs", Hint: "did you mean zsh?"}}
					return tx.PutCluster(c, "")
				})
				return
			}
		}
	}()
	w.refused(1, muster.ReasonCorrupt, "create", "cfd", "-n", "1", "--head", "shared", "--wait").naming("cfd", "muster delete cfd")
	<-done
	feed.Close()
	problem := `\n  packages\[0\]: .*zhs.*\n  build it again`
	w.run("show", "cfd").want(t, 0, "failed: the image is corrupt"+problem)
	w.run("events", "cfd").want(t, 0, "building -> failed.*"+problem)
}

// Why a cluster waits is told while one waits for it, once, though no event says so.
func TestWaitTellsConditions(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	w := at(t, s)
	told := make(chan struct{})
	var once sync.Once
	w.wrote = func(text string) {
		if strings.Contains(text, "preparing: ") {
			once.Do(func() { close(told) })
		}
	}
	feed := s.Store.Subscribe(100)
	go func() {
		defer feed.Close()
		for a := range feed.C {
			if a.Kind != muster.AuditCluster || a.To != "building" {
				continue
			}
			_ = s.Store.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
				c, err := tx.Cluster(a.Cluster)
				if err != nil {
					return err
				}
				c.Conditions = []muster.Condition{{Code: "preparing", Text: "the mirror\x1b[2J does not answer", Hint: "it is tried again by itself", Since: time.Now()}}
				return tx.PutCluster(c, "")
			})
			select {
			case <-told:
				time.Sleep(2500 * time.Millisecond) // it is looked at again
			case <-time.After(2 * time.Minute):
			}
			_ = s.Store.Update(context.Background(), muster.System(), func(tx *store.Tx) error { return controltest.Finish(tx, a.Cluster) })
			return
		}
	}()
	got := w.run("create", "cfd", "-n", "1", "--head", "shared", "--wait").want(t, 0, "preparing: the mirror.* does not answer \\(it is tried again by itself\\)", "ready")
	if n := strings.Count(got.out, "preparing: "); n != 1 || strings.Contains(got.out, "\x1b") {
		t.Errorf("told %d times:\n%q", n, got.out)
	}
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	w := at(t, s)
	w.refused(8, muster.ReasonNotDoneYet, "create", "slow", "-n", "1", "--head", "shared", "--wait", "--timeout", "50ms").naming("50ms", "muster events -f c-")
	ctx, cancel := context.WithCancel(t.Context())
	w.wrote = func(text string) {
		if strings.HasPrefix(text, "cluster gone") {
			cancel()
		}
	}
	w.runCtx(ctx, "create", "gone", "-n", "1", "--head", "shared", "--wait").want(t, 130, "detached: cluster gone goes on", "muster events -f c-", "muster delete c-")
}

// A waiting command survives a restart of the server.
func TestWaitSurvivesRestart(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	w := at(t, s)
	feed := s.Store.Subscribe(100)
	go func() {
		defer feed.Close()
		for a := range feed.C {
			if a.Kind == muster.AuditCluster && a.To == "building" {
				time.Sleep(50 * time.Millisecond)
				s.StopServing()
				_ = s.Store.Update(context.Background(), muster.System(), func(tx *store.Tx) error { return controltest.Finish(tx, a.Cluster) })
				time.Sleep(50 * time.Millisecond)
				s.Serve()
				return
			}
		}
	}()
	w.run("create", "cfd", "-n", "1", "--head", "shared", "--wait").want(t, 0, "ready")
}

func TestUsersKeysTokens(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{})
	w := at(t, s)
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJV7OjMgZzPYxXSpkKqcVNvgvIhgqNl8cEvnE2U0u3c laptop"
	file := filepath.Join(t.TempDir(), "k.pub")
	if err := os.WriteFile(file, []byte("# mine\n"+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("user", "add", "alice", "--projects", "bio,chem", "--full-name", "Alice Archer").want(t, 0, "20000", "bio chem")
	w.run("key", "add", file).want(t, 0, "SHA256:", "laptop")
	w.run("key", "add", file, "--user", "alice").want(t, 0, "laptop")
	w.run("user", "show", "alice").want(t, 0, "Alice Archer", "laptop")
	token := strings.TrimSpace(w.run("token", "create", "alice", "--ttl", "1d", "--note", "test").want(t, 0).out)
	w.run("token", "list").want(t, 0, "alice", "test")
	w.with("MUSTER_TOKEN", token)
	w.run("server").want(t, 0, "you +alice\n", "bio chem")
	w.run("key", "remove", "laptop").want(t, 0, "no keys")
	w.refused(5, muster.ReasonAdminOnly, "user", "add", "mallory")
	w.with("MUSTER_TOKEN", "mst_wrong").refused(5, muster.ReasonBadToken, "list")
	private := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(private, []byte("-----BEGIN OPENSSH PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.refused(2, muster.ReasonPrivateKey, "key", "add", private)
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	w := at(t, nil)
	w.refused(7, muster.ReasonServerUnreachable, "list", "--server", "unix:/nowhere/muster.sock").naming("/nowhere/muster.sock", "muster serve")
	state := t.TempDir()
	w.refused(7, muster.ReasonServerUnreachable, "list", "--server", state).naming("--server unix:" + state + "/muster.sock")
	w.refused(2, muster.ReasonBadAddress, "list", "--server", "ftp://x")
	w.refused(5, muster.ReasonNoToken, "list", "--server", "https://x").naming("MUSTER_TOKEN")
	w.run("version").want(t, 0, "muster 1.2.3")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		w.run("completion", shell).want(t, 0, "muster", "__complete")
		w.run("completion", shell, "--no-descriptions").want(t, 0, "muster", "__completeNoDesc")
	}
	w.refused(2, muster.ReasonBadUsage, "completion").naming("SHELL")
	w.refused(2, muster.ReasonBadValue, "completion", "bahs").naming("bash")
	w.refused(2, muster.ReasonBadValue, "completion", "tcsh", "-o", "json")
	w.run("completion", "--help").want(t, 0, "Examples:\n +source")
	w.run("help").want(t, 0, "Usage:\n +muster")
	w.run("help", "machine", "drain").want(t, 0, "muster machine drain local-03", "help for drain")
	w.refused(2, muster.ReasonUnknownCommand, "help", "craete").naming("craete", "create")
	w.refused(2, muster.ReasonUnknownCommand, "help", "create", "x").naming("x")
	w.run("image", "list", "--state", t.TempDir()).want(t, 0, "No images")
	w.refused(3, muster.ReasonNoSuchRecipe, "image", "build", "nope", "--state", t.TempDir()).naming("nope")
	w.refused(2, muster.ReasonBadUsage, "image", "build").naming("NAME")
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Build: true})
	w := at(t, s)
	ready(t, s, w, "cfd", "-n", "2", "--head", "shared")
	w.run("__complete", "show", "c").want(t, 0, "^cfd\n")
	w.run("__complete", "ssh", "cfd", "").want(t, 0, "n01\nn02\n")
	w.run("__complete", "create", "x", "--image", "").want(t, 0, "hpc\nraw\n")
}

// Nothing from outside moves the cursor of a terminal.
func TestOutputIsClean(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Build: true})
	w := at(t, s)
	created := ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	s.Agents.PutJournal(created.ID, "n01", wire.JournalLine{At: time.Now(), Unit: "evil", Message: "\x1b]0;owned\x07\x1b[2Jtext\r\nline"})
	r := w.run("logs", "cfd").want(t, 0, "text")
	if strings.ContainsAny(r.out, "\x1b\x07\r") {
		t.Errorf("%q", r.out)
	}
}
