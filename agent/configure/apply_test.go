package configure

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func TestApplyMakesANode(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	r := newReport(t)
	if err := c.Apply(t.Context(), config(), r); err != nil {
		t.Fatal(err)
	}
	files := tree(t, root)
	for path, want := range map[string]string{
		"/etc/hostname":                         "644 n01\n",
		"/etc/hosts":                            "10.128.0.11\tn02.cfd.muster n02\n10.90.0.1\tlic.example.org\n",
		"/etc/passwd":                           "alice:x:20000:20000:Alice:/home/alice:/bin/bash\n",
		"/etc/shadow":                           "alice:*:19700:0:99999:7:::\n",
		"/etc/muster/machine":                   "644 memory_bytes 943718400\ncache_bytes 33554432\n",
		"/etc/munge/munge.key":                  "400 munge",
		"/etc/ssh/ssh_host_ed25519_key":         "600 PRIVATE\n",
		"/etc/ssh/ssh_known_hosts":              "@cert-authority n01,n01.cfd.muster,10.128.0.10,n02,n02.cfd.muster,10.128.0.11 hostca\n",
		"/etc/ssh/principals/alice":             "644 alice@c-2345678923\n",
		"/etc/ssh/principals/root":              "644 root@c-2345678923\n",
		"/etc/ssh/authorized_keys.d/alice":      "ssh-ed25519 AAAA laptop\n",
		"/etc/ssh/sshd_config.d/10-muster.conf": "PerSourcePenalties no\n",
		"/etc/openmpi/openmpi-mca-params.conf":  "pml = ^ucx\n" + blockBegin + "\nbtl_tcp_if_include = msg0\n",
		"/etc/openmpi/prte-mca-params.conf":     "prte_if_include = msg0\n",
		"/etc/default/slurmd":                   `SLURMD_OPTIONS=-Z -N n01 --conf-server n01:6817 --conf "CPUs=1 RealMemory=900"`,
		"/var/lib/slurm/slurmctld/last_tres":    "600 tres",
		"/home/alice/.bashrc":                   "# shell\n",
		"/home/alice/.ssh/id_ed25519":           "600 -----BEGIN OPENSSH PRIVATE KEY-----\n",
	} {
		if !strings.Contains(files[path], want) {
			t.Errorf("%s: %q has no %q", path, files[path], want)
		}
	}
	if _, ok := files["/run/nologin"]; ok {
		t.Error("nobody can log in: /run/nologin is there")
	}
	for _, name := range []string{"names", "home", "sshd", "munge", "slurmd"} {
		if !r.check(name).OK {
			t.Errorf("check %s: %+v", name, r.check(name))
		}
	}
	// The firewall is up before anything listens, and the order of nodes is
	// told before a slurmd of this node registers.
	order := []string{"nft ", "systemctl start --no-block ssh.service munge.service slurmctld.service", "scontrol create NodeName=n01,n02", "systemctl start --no-block slurmd.service"}
	last := -1
	for _, want := range order {
		at := slices.IndexFunc(run.lines(), func(l string) bool { return strings.HasPrefix(l, want) })
		if at <= last {
			t.Errorf("%q at %d after %d in %q", want, at, last, run.lines())
		}
		last = at
	}
	eventually(t, "accounting", func() bool { return r.has("accounting") })
	if got := tree(t, root)["/var/lib/slurm/slurmctld/clustername"]; got != "644 cfd|2013" {
		t.Errorf("number of the cluster: %q", got)
	}
	if !slices.Contains(run.lines(), "scontrol reconfigure") {
		t.Error("slurmctld was not told of its database")
	}
	// A slurmctld that ends as soon as the database knows the cluster starts again: the number is asked for and written down at once.
	known := slices.IndexFunc(run.lines(), func(l string) bool { return strings.HasPrefix(l, "sacctmgr") && strings.Contains(l, "add cluster") })
	if known < 0 || known+1 >= len(run.lines()) || !strings.HasPrefix(run.lines()[known+1], "mariadb") {
		t.Errorf("the number of the cluster is not asked for at once: %q", run.lines())
	}
	// The database knows slurmctld's port before slurmdbd takes what slurmctld sends.
	lines := run.lines()
	first := slices.Index(lines, "systemctl start --no-block mariadb.service")
	port := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "mariadb") })
	dbd := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "start") && strings.Contains(l, "slurmdbd.service") })
	if first < 0 || port < first || dbd < port || !strings.Contains(run.stdin[port], "last_port") {
		t.Errorf("database %d, port %d, slurmdbd %d in %q", first, port, dbd, lines)
	}
}

// A database that does not come is started again, for as long as it takes: past the
// minute in which it usually does, too.
func TestLateDatabase(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	clock := &quick{now: time.Now()}
	c.clock = clock
	failed := 0
	run.answer = func(line string) (string, error) {
		if !strings.HasPrefix(line, "sacctmgr") {
			return "", nil
		}
		run.mu.Lock()
		defer run.mu.Unlock()
		if failed++; failed < 100 {
			return "", errors.New("connection refused")
		}
		return "", nil
	}
	r := newReport(t)
	began := clock.Now()
	if err := c.Apply(t.Context(), config(), r); err != nil {
		t.Fatal(err)
	}
	eventually(t, "accounting", func() bool { return r.has("accounting") })
	if _, ok := tree(t, root)["/var/lib/slurm/slurmctld/clustername"]; !ok {
		t.Error("slurmctld and its database do not know each other")
	}
	if n := run.count("systemctl start --no-block mariadb.service slurmdbd.service"); n < 99 || clock.Now().Sub(began) < 2*time.Minute {
		t.Errorf("started %d times in %s", n, clock.Now().Sub(began))
	}
	if !r.check("accounting").OK {
		t.Errorf("%+v", r.check("accounting"))
	}
}

// quick is a clock on which all waiting is over at once.
type quick struct {
	mu  sync.Mutex
	now time.Time
}

func (q *quick) Now() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.now
}

func (q *quick) After(d time.Duration) <-chan time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.now = q.now.Add(d)
	ch := make(chan time.Time, 1)
	ch <- q.now
	return ch
}

func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	r := newReport(t)
	if err := c.Apply(t.Context(), config(), r); err != nil {
		t.Fatal(err)
	}
	eventually(t, "accounting", func() bool { return r.has("accounting") })
	before := tree(t, root)
	run.answer = func(line string) (string, error) {
		if strings.HasPrefix(line, "mariadb") {
			return "2013\n", nil
		}
		return "", nil
	}
	ran := len(run.lines())
	again := newReport(t)
	if err := c.Apply(t.Context(), config(), again); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the scheduler again", func() bool { return again.has("scheduler") })
	if after := tree(t, root); !maps.Equal(before, after) {
		for p := range after {
			if before[p] != after[p] {
				t.Errorf("%s changed:\n%s\n%s", p, before[p], after[p])
			}
		}
	}
	for _, l := range run.lines()[ran:] {
		if strings.Contains(l, "reload") || strings.Contains(l, "restart") || strings.Contains(l, "reconfigure") || strings.Contains(l, "create") {
			t.Errorf("needless: %s", l)
		}
	}
}

func TestApplyNewerGeneration(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	if err := c.Apply(t.Context(), config(), newReport(t)); err != nil {
		t.Fatal(err)
	}
	newer := config()
	newer.Generation = 2
	newer.Users = []wire.Account{{Name: "carol", UID: 20002, GID: 20002}}
	newer.Hosts[1] = wire.Host{Name: "n03", Address: "10.128.0.12", Compute: true}
	newer.Slurm.NodeLines[1] = wire.NodeLine{Name: "n03", Args: []string{"NodeName=n03"}}
	ran := len(run.lines())
	if err := c.Apply(t.Context(), copied(newer), newReport(t)); err != nil {
		t.Fatal(err)
	}
	files := tree(t, root)
	if strings.Contains(files["/etc/passwd"], "alice") || !strings.Contains(files["/etc/passwd"], "carol") || !strings.Contains(files["/etc/passwd"], "slurm") {
		t.Errorf("passwd: %s", files["/etc/passwd"])
	}
	for _, gone := range []string{"/etc/ssh/principals/alice", "/etc/ssh/authorized_keys.d/alice"} {
		if _, ok := files[gone]; ok {
			t.Errorf("%s is still there", gone)
		}
	}
	if _, ok := files["/home/alice/.bashrc"]; !ok {
		t.Error("the home of a user who left is the cluster's data")
	}
	eventually(t, "the new node is declared", func() bool { return slices.Contains(run.lines()[ran:], "scontrol create NodeName=n03") })
}

func TestApplyOnComputeNode(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	cfg := config()
	cfg.Node, cfg.Head = "n02", false
	cfg.Slurm.Files, cfg.Slurm.NodeLines, cfg.Slurm.Accounting = nil, nil, false
	if err := os.MkdirAll(filepath.Join(root, "home"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err != nil {
		t.Fatal(err)
	}
	files := tree(t, root)
	if _, ok := files["/home/alice/.bashrc"]; ok {
		t.Error("homes are made on the head only")
	}
	if run.count("scontrol") != 0 || run.count("sinfo") != 0 || run.count("systemctl start --no-block ssh.service munge.service slurmctld") != 0 {
		t.Errorf("work of a head: %q", run.lines())
	}
}

func TestApplyWithoutScheduler(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	cfg := config()
	cfg.Slurm, cfg.UserRoot = nil, true
	cfg.SSH.RootKey, cfg.SSH.RootPublicKey = "ROOTKEY", "rootpub"
	if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err != nil {
		t.Fatal(err)
	}
	files := tree(t, root)
	for path, want := range map[string]string{
		"/etc/openmpi/prte-default-hostfile": "n01 slots=1\nn02 slots=1\n",
		"/etc/ssh/principals/root":           "644 alice@c-2345678923\nroot@c-2345678923\n",
		"/etc/ssh/authorized_keys.d/root":    "ssh-ed25519 AAAA laptop\nrootpub\n",
		"/root/.ssh/id_ed25519":              "600 ROOTKEY\n",
		"/etc/profile.d/muster.sh":           "OMPI_ALLOW_RUN_AS_ROOT=1",
	} {
		if !strings.Contains(files[path], want) {
			t.Errorf("%s: %q has no %q", path, files[path], want)
		}
	}
	if run.count("munge") != 0 || run.count("scontrol") != 0 {
		t.Errorf("ran %q", run.lines())
	}
}

func TestOlderReleaseMeetsItsDatabaseFirst(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	cfg := config()
	cfg.Slurm.Version = "22.05.8"
	r := newReport(t)
	if err := c.Apply(t.Context(), copied(cfg), r); err != nil {
		t.Fatal(err)
	}
	eventually(t, "accounting", func() bool { return r.has("accounting") })
	lines := run.lines()
	db := slices.Index(lines, "systemctl start --no-block ssh.service munge.service mariadb.service slurmdbd.service")
	ctl := slices.Index(lines, "systemctl start --no-block slurmctld.service")
	if db < 0 || ctl < db || run.count("sacctmgr") != 0 {
		t.Errorf("order: %q", lines)
	}
	if _, ok := tree(t, root)["/var/lib/slurm/slurmctld/clustername"]; ok {
		t.Error("state of another release")
	}
}

func TestProxyComesAndGoes(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	cfg := config()
	cfg.Slurm = nil
	cfg.ProxyURL = "http://10.90.0.1:3128"
	if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err != nil {
		t.Fatal(err)
	}
	files := tree(t, root)
	for _, p := range []string{"/etc/environment", "/etc/profile.d/muster.sh", "/etc/apt/apt.conf.d/90muster-proxy"} {
		if !strings.Contains(files[p], cfg.ProxyURL) {
			t.Errorf("%s: %s", p, files[p])
		}
	}
	cfg.ProxyURL = ""
	if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err != nil {
		t.Fatal(err)
	}
	files = tree(t, root)
	if strings.Contains(files["/etc/environment"], "proxy") || !strings.Contains(files["/etc/environment"], "LANG=C.UTF-8\n") || files["/etc/apt/apt.conf.d/90muster-proxy"] != "" {
		t.Errorf("something of the proxy stays: %q", files["/etc/environment"])
	}
}

func TestApplyTellsWhatFailed(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	run.answer = func(line string) (string, error) {
		if strings.HasPrefix(line, "unmunge") {
			return "", errors.New("unmunge: exit status 11")
		}
		return "", nil
	}
	r := newReport(t)
	err := c.Apply(t.Context(), config(), r)
	var e *muster.Error
	if !errors.As(err, &e) || e.Hint == "" {
		t.Fatalf("%v", err)
	}
	if r.check("munge").OK || r.check("munge").Text == "" {
		t.Errorf("%+v", r.check("munge"))
	}
}

func TestInvalidConfigurationWritesNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*wire.NodeConfig){
		"node":      func(c *wire.NodeConfig) { c.Node = "n01\nevil" },
		"host":      func(c *wire.NodeConfig) { c.Hosts[1].Name = "n02 localhost" },
		"address":   func(c *wire.NodeConfig) { c.Hosts[1].Address = "not one" },
		"user":      func(c *wire.NodeConfig) { c.Users[0].Name = "a:x:0:0" },
		"folder":    func(c *wire.NodeConfig) { c.Users[0].Name = "../a" },
		"system":    func(c *wire.NodeConfig) { c.Users[0].UID = 0 },
		"interface": func(c *wire.NodeConfig) { c.Interface = `x" accept; #` },
		"key":       func(c *wire.NodeConfig) { c.SSH.HostCA = "a\nb" },
		"user key":  func(c *wire.NodeConfig) { c.Users[0].Keys = []string{"a\nb"} },
		"taken":     func(c *wire.NodeConfig) { c.Users[0].Name = "munge" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, root := node(t)
			cfg := config()
			spoil(cfg)
			if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(tree(t, root)["/etc/passwd"], "20000") {
				t.Error("a user was made")
			}
		})
	}
}

// Names and numbers as directories give them are accounts like others.
func TestAccountsOfDirectories(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	cfg := config()
	cfg.Users[0].Name, cfg.Users[0].UID, cfg.Users[0].GID = "jane.doe", 1234601104, 1234601104
	if err := c.Apply(t.Context(), cfg, newReport(t)); err != nil {
		t.Fatal(err)
	}
	if text := tree(t, root)["/etc/passwd"]; !strings.Contains(text, "\njane.doe:x:1234601104:1234601104:") {
		t.Error(text)
	}
}

// A user may put anything in place of a home, also a link to what is root's.
func TestHomesStayInHome(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	home := filepath.Join(root, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alice", ".muster-alice"} {
		if err := os.Symlink(filepath.Join(root, "etc"), filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, filepath.Join(root, "etc"))
	if err := c.homes(config()); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, filepath.Join(root, "etc")); !maps.Equal(before, after) {
		t.Error("something was written through the link")
	}
	if err := os.Remove(filepath.Join(home, "alice")); err != nil {
		t.Fatal(err)
	}
	if err := c.homes(config()); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, filepath.Join(root, "etc")); !maps.Equal(before, after) {
		t.Error("something was written through the link of an unfinished home")
	}
}

func TestKeyPairIsOpenSSHs(t *testing.T) {
	t.Parallel()
	private, public, err := keyPair("alice@cfd")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil {
		t.Fatal(err)
	}
	pub, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(public))
	if err != nil || comment != "alice@cfd" {
		t.Fatalf("%v %q", err, comment)
	}
	if string(signer.PublicKey().Marshal()) != string(pub.Marshal()) {
		t.Error("the halves do not belong together")
	}
	sig, err := signer.Sign(nil, []byte("text"))
	if err != nil || pub.Verify([]byte("text"), sig) != nil {
		t.Error("the key does not sign")
	}
}
