package agent_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/wire"
)

// TestMain lets the test binary act as the first process of a machine.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == local.InitArgument {
		os.Exit(local.MachineInit())
	}
	os.Exit(m.Run())
}

// realConfig has what a node without a scheduler needs.
func realConfig(t *testing.T) *wire.NodeConfig {
	t.Helper()
	host, err := pki.NewSSHAuthority()
	check(t, err)
	user, err := pki.NewSSHAuthority()
	check(t, err)
	key, pub, err := pki.NewHostKey()
	check(t, err)
	cert, err := host.SignHost(pub, []string{"n01"}, time.Hour)
	check(t, err)
	c := config(1)
	c.Hosts = nil
	c.SSH = wire.SSHConfig{
		HostKey: key, HostCertificate: pki.Line(cert), HostCA: host.PublicLine(), UserCA: user.PublicLine(),
	}
	return c
}

// The real agent in a real machine: an image's own systemd boots, the agent
// joins, configures the node, and tells of it what is true inside.
func TestInMachine(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making machines needs root")
	}
	rootFS := builtImage(t)
	cfg := local.Config{
		Dir: t.TempDir(), Instance: "t" + muster.RandomID(6), Oversubscribe: true, AgentBinary: program(t),
		Slices:    []local.Slice{{Count: 1, Cores: 1, Memory: 1 << 30}},
		ImagePath: func(context.Context, muster.ImageID) (string, error) { return rootFS, nil },
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	p, err := local.New(t.Context(), cfg)
	check(t, err)
	t.Cleanup(func() {
		if err := p.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		_ = p.Close()
	})
	s := newServer(t)
	s.stop()
	s.listen = func(a string) (net.Listener, error) { return p.Rack().Listen(t.Context(), netip.MustParseAddrPort(a)) }
	s.start("10.90.0.1:7700")
	s.config, s.interval = realConfig(t), 500*time.Millisecond
	seed := s.seed()
	seed.Started = time.Now().UTC()
	machines, err := p.Discover(t.Context())
	check(t, err)
	seed.Machine = machines[0].ID
	errs := p.Ensure(t.Context(), []provider.DesiredState{{
		Machine: seed.Machine, Power: provider.PowerBoot,
		Boot: &provider.Boot{Attempt: 1, Cluster: "c-test", Hostname: "n01", Bootstrap: seed},
	}})
	for _, err := range errs {
		check(t, err)
	}
	s.until("ready", func(r wire.Report) bool {
		if r.State == "failed" {
			t.Fatalf("%+v", r.Checks)
		}
		return ready(r)
	})
	// However the lines are spread over the reports.
	var journal []wire.JournalLine
	eventually(t, "journal", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		journal = nil
		for _, r := range s.reports {
			journal = append(journal, r.Journal...)
		}
		return len(journal) > 10
	})
	t.Logf("journal: %+v ... %+v", journal[0], journal[len(journal)-1])
	facts := s.until("facts", func(r wire.Report) bool { return r.Facts != nil }).Facts
	t.Logf("facts: %+v", *facts)
	if facts.Memory != machines[0].Facts.Memory || facts.Threads != machines[0].Facts.Threads {
		t.Errorf("inside %d bytes and %d threads, from outside %d and %d",
			facts.Memory, facts.Threads, machines[0].Facts.Memory, machines[0].Facts.Threads)
	}
	s.mu.Lock()
	for _, r := range s.reports {
		for _, st := range r.Stages {
			t.Logf("stage %s after %v", st.Name, st.At.Sub(seed.Started).Round(time.Millisecond))
		}
	}
	s.mu.Unlock()
	logFootprint(t, "ready", agentPID(t, cfg.Instance))
	time.Sleep(2 * time.Second)
	s.forget()
	u := s.until("usage", func(r wire.Report) bool { return r.Usage != nil }).Usage
	t.Logf("usage: %+v", *u)
	if u.MemoryUsed <= 0 || u.MemoryUsed > u.MemoryTotal || u.Processes < 3 || u.Processes > 100 || u.MgmtRx == 0 {
		t.Error("these figures are not of this machine")
	}
	logFootprint(t, "two more seconds with a report every 500 ms", agentPID(t, cfg.Instance))
	killInMachine(t, s, cfg.Instance)
}

// builtImage finds a root file system to boot: the one named, or the newest of
// image hpc that other tests have built.
func builtImage(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("MUSTER_TEST_IMAGE"); p != "" {
		return p
	}
	dir := os.Getenv("MUSTER_TEST_IMAGES")
	if dir == "" {
		dir = "/var/cache/muster-test"
	}
	if _, err := os.Stat(dir); err == nil {
		store, err := image.Open(dir, slog.New(slog.DiscardHandler))
		check(t, err)
		list, err := store.List()
		check(t, err)
		for _, i := range list {
			if i.Name == "hpc" {
				return filepath.Join(store.Path(i.ID), "root.squashfs")
			}
		}
	}
	t.Skip("no image to boot: set MUSTER_TEST_IMAGE to a squashfs with systemd and sshd, or build hpc in MUSTER_TEST_IMAGES")
	return ""
}

// killInMachine kills the agent; the machine's systemd starts it again, and
// nobody notices.
func killInMachine(t *testing.T, s *server, instance string) {
	t.Helper()
	first := agentPID(t, instance)
	check(t, syscall.Kill(first, syscall.SIGKILL))
	eventually(t, "started again", func() bool { pid := agentPID(t, instance); return pid != 0 && pid != first })
	s.forget()
	s.until("a report after the kill", func(r wire.Report) bool { return r.Usage != nil })
	if joins, _, _ := s.count(); joins != 1 {
		t.Errorf("%d joins", joins)
	}
	s.mu.Lock()
	for _, r := range s.reports {
		if !ready(r) || r.Generation != 1 {
			t.Errorf("after the kill it is %s, generation %d", r.State, r.Generation)
		}
	}
	s.mu.Unlock()
	eventually(t, "one reader of the journal", func() bool { return len(inMachine(t, "journalctl", instance)) == 1 })
}

// agentPID finds the agent of the machine.
func agentPID(t *testing.T, instance string) int {
	t.Helper()
	if pids := inMachine(t, "muster-agent", instance); len(pids) > 0 {
		return pids[0]
	}
	return 0
}

// inMachine finds processes of a name in the control groups of an instance:
// other machines may run here too.
func inMachine(t *testing.T, name, instance string) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/comm")
	check(t, err)
	for _, f := range all {
		comm, err := os.ReadFile(f)
		if err != nil || strings.TrimSpace(string(comm)) != name {
			continue
		}
		groups, err := os.ReadFile(filepath.Join(filepath.Dir(f), "cgroup"))
		if pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && bad == nil && strings.Contains(string(groups), instance) {
			pids = append(pids, pid)
		}
	}
	return pids
}
