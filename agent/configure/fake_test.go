package configure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// fakeRun remembers what was run and answers as a healthy node would.
type fakeRun struct {
	mu     sync.Mutex
	ran    []string
	stdin  []string
	answer func(line string) (string, error)
}

func (f *fakeRun) Run(_ context.Context, stdin, name string, args ...string) (string, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	f.mu.Lock()
	f.ran = append(f.ran, line)
	f.stdin = append(f.stdin, stdin)
	f.mu.Unlock()
	if f.answer != nil {
		if out, err := f.answer(line); out != "" || err != nil {
			return out, err
		}
	}
	switch name {
	case "scontrol":
		if args[0] == "--future" {
			return "NodeName=n01 State=IDLE\nNodeName=n02 State=IDLE\n", nil
		}
	case "sinfo":
		return "n01|idle|x|1|900|none|\nn02|idle|x|1|900|none|\n", nil
	case "setpriv": // a trial: every node says its name
		for _, a := range args {
			if list, ok := strings.CutPrefix(a, "--nodelist="); ok {
				return strings.Join(expand("="+list), "\n") + "\n", nil
			}
		}
	case "mariadb":
		return "2013\n", nil
	}
	return "", nil
}

func (f *fakeRun) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.ran...)
}

func (f *fakeRun) count(prefix string) (n int) {
	for _, l := range f.lines() {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

// fakeReport collects what is reported.
type fakeReport struct {
	ctx    context.Context
	mu     sync.Mutex
	stages []string
	checks map[string]wire.Check
	states []wire.SchedulerState
}

func newReport(t *testing.T) *fakeReport {
	return &fakeReport{ctx: t.Context(), checks: map[string]wire.Check{}}
}

func (f *fakeReport) Stage(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stages = append(f.stages, name)
}

func (f *fakeReport) Check(c wire.Check) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checks[c.Name] = c
}

func (f *fakeReport) check(name string) wire.Check {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checks[name]
}

func (f *fakeReport) Scheduler(s wire.SchedulerState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.states = append(f.states, s)
}

func (f *fakeReport) said() []wire.SchedulerState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]wire.SchedulerState{}, f.states...)
}

func (f *fakeReport) state() wire.SchedulerState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.states) == 0 {
		return wire.SchedulerState{}
	}
	return f.states[len(f.states)-1]
}

func (f *fakeReport) Context() context.Context { return f.ctx }

func (f *fakeReport) has(stage string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.stages {
		if s == stage {
			return true
		}
	}
	return false
}

// answering accepts every connection and says what sshd says.
func answering(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		_, _ = far.Write([]byte("SSH-2.0-Test\r\n"))
		_ = far.Close()
	}()
	return near, nil
}

// node is a root directory with what an image has, and a Configurer for it.
func node(t *testing.T) (*Configurer, *fakeRun, string) {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"/etc/passwd":                             "root:x:0:0:root:/root:/bin/bash\nmunge:x:903:903::/nonexistent:/usr/sbin/nologin\nslurm:x:64030:64030::/nonexistent:/usr/sbin/nologin\n",
		"/etc/group":                              "root:x:0:\nmunge:x:903:\nslurm:x:64030:\n",
		"/etc/shadow":                             "root:*:19000:0:99999:7:::\n",
		"/etc/gshadow":                            "root:*::\n",
		"/etc/skel/.bashrc":                       "# shell\n",
		"/etc/openmpi/prte.conf":                  "",
		"/etc/openmpi/openmpi-mca-params.conf":    "pml = ^ucx\n",
		"/etc/environment":                        "LANG=C.UTF-8\n",
		"/etc/apt/apt.conf.d/00x":                 "",
		"/usr/sbin/nft":                           "",
		"/usr/lib/systemd/system/ssh.service":     "",
		"/usr/lib/openssh/sshd-session":           "",
		"/usr/share/muster/slurm/assoc_mgr_state": "state",
		"/usr/share/muster/slurm/last_tres":       "tres",
		"/run/munge/munge.socket.2":               "",
		"/run/nologin":                            "booting",
		"/bin/bash":                               "",
	} {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := &fakeRun{}
	c := New(Options{
		Root: root, Run: run, Dial: answering, NoOwners: true, Hostname: func(string) error { return nil },
		Timeout: 5 * time.Second, AccountingDelay: time.Millisecond,
	})
	return c, run, root
}

// applyNext has the node apply a configuration as a new one.
func applyNext(t *testing.T, c *Configurer, cfg *wire.NodeConfig, r Reporter) {
	t.Helper()
	cfg.Generation++
	if err := c.Apply(t.Context(), copied(cfg), r); err != nil {
		t.Fatal(err)
	}
}

// config is that of the head of a cluster of two.
func config() *wire.NodeConfig {
	return &wire.NodeConfig{
		Generation: 1, Cluster: "c-2345678923", ClusterName: "cfd", Node: "n01", Head: true, HeadNode: "n01",
		Address: "10.128.0.10/20", Interface: "msg0", Management: "mgmt0", Domain: "cfd.muster", Memory: 900 << 20, Cache: 32 << 20,
		Hosts: []wire.Host{
			{Name: "n01", Address: "10.128.0.10", Cores: 1, Compute: true},
			{Name: "n02", Address: "10.128.0.11", Cores: 1, Compute: true},
		},
		Outside: []wire.Host{{Name: "lic.example.org", Address: "10.90.0.1"}},
		Users:   []wire.Account{{Name: "alice", UID: 20000, GID: 20000, FullName: "Alice", Keys: []string{"ssh-ed25519 AAAA laptop"}}},
		SSH:     wire.SSHConfig{HostKey: "PRIVATE", HostCertificate: "cert", HostCA: "hostca", UserCA: "userca", PrincipalSuffix: "@c-2345678923"},
		Slurm: &wire.SlurmConfig{
			Version: "24.11.5", MungeKey: "bXVuZ2VtdW5nZW11bmdlbXVuZ2VtdW5nZW11bmdlbXVuZ2U=", Server: "n01", ClusterName: "cfd",
			NodeConf: "CPUs=1 RealMemory=900", Accounting: true,
			Files: []wire.File{{Path: "/etc/slurm/slurm.conf", Mode: 0o644, Content: "ClusterName=cfd\n"}},
			NodeLines: []wire.NodeLine{
				{Name: "n01", Args: []string{"NodeName=n01", "State=FUTURE"}},
				{Name: "n02", Args: []string{"NodeName=n02", "State=FUTURE"}},
			},
		},
	}
}

// copied is what Apply gets: a configuration is never changed once it is there.
func copied(cfg *wire.NodeConfig) *wire.NodeConfig {
	b, err := json.Marshal(cfg)
	if err != nil {
		panic(err)
	}
	c := new(wire.NodeConfig)
	if err := json.Unmarshal(b, c); err != nil {
		panic(err)
	}
	return c
}

// tree is every file below root with its mode and content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != root {
			return nil // a file on its way to its name, by something that runs beside
		}
		if err != nil || info.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		m[strings.TrimPrefix(path, root)] = fmt.Sprintf("%o %s", info.Mode().Perm(), b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
