package local_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/storage/image/recipes"
)

// testAgent stands in for the agent: it starts sshd and nothing else.
const testAgent = `#!/bin/sh
mkdir -p /run/sshd
[ -d /suite ] && hostname >/suite/name
[ -e /etc/ssh/ssh_host_ed25519_key ] || ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key
exec /usr/sbin/sshd -D
`

// testImage finds an image to boot: the one named, or image raw of the store
// that tests share, which is built when it is not there.
func testImage(t testing.TB) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("making machines needs root")
	}
	if p := os.Getenv("MUSTER_TEST_IMAGE"); p != "" {
		return p
	}
	if testing.Short() {
		t.Skip("an image may have to be built first")
	}
	dir := os.Getenv("MUSTER_TEST_IMAGES")
	if dir == "" {
		dir = "/var/cache/muster-test"
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := image.Open(dir, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := image.NewBook(recipes.Recipes()).Load("raw")
	if err != nil {
		t.Fatal(err)
	}
	built, err := store.Build(t.Context(), recipe, image.BuildOptions{})
	if err != nil {
		t.Skip("no image to boot, and none could be built; MUSTER_TEST_IMAGE may name a squashfs with systemd and sshd:", err)
	}
	_, f, err := store.OpenForBoot(t.Context(), built.Image.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	return f.Name()
}

// ownImage gives a test its own name for the image, so that it can tell its
// own loop device from those of other tests.
func ownImage(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(dir, "image.squashfs")
	from := testImage(t)
	if err := os.Link(from, to); err == nil {
		return to
	}
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// config makes a configuration, and a cleaning up after it that finds traces.
func config(t testing.TB, slices string, change func(*local.Config)) local.Config {
	t.Helper()
	dir := t.TempDir()
	image := ownImage(t, dir)
	agent := filepath.Join(dir, "agent")
	if err := os.WriteFile(agent, []byte(testAgent), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := local.ParseSlice(slices)
	if err != nil {
		t.Fatal(err)
	}
	cfg := local.Config{
		Dir: dir, Instance: "t" + muster.RandomID(6), Slices: []local.Slice{s}, Oversubscribe: true, AgentBinary: agent,
		ImagePath: func(context.Context, muster.ImageID) (string, error) { return image, nil },
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&cfg)
	}
	t.Cleanup(func() {
		// As a new server would find it, whatever the test did to this one.
		ctx := context.WithoutCancel(t.Context())
		last, err := local.New(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := last.Destroy(ctx); err != nil {
			t.Error(err)
		}
		noTrace(t, cfg.Instance, image)
	})
	return cfg
}

// open makes a provider for the time of the test.
func open(t testing.TB, slices string, change func(*local.Config)) *local.Provider {
	t.Helper()
	return openConfig(t, config(t, slices, change))
}

func openConfig(t testing.TB, cfg local.Config) *local.Provider {
	t.Helper()
	p, err := local.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// noTrace looks for anything of an instance on the host.
func noTrace(t testing.TB, instance, image string) {
	t.Helper()
	for _, pattern := range []string{"/run/netns/*%s*", "/sys/fs/cgroup/*%s*", "/sys/fs/cgroup/*/*%s*"} {
		found, err := filepath.Glob(fmt.Sprintf(pattern, instance))
		if err != nil || len(found) > 0 {
			t.Error("left on the host:", found, err)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), instance) || strings.Contains(string(mounts), image) {
		t.Error("left among the mounts", err)
	}
	// Another test may use the same image at this moment, so only a copy of
	// our own can be looked for among the loop devices.
	if !strings.HasPrefix(image, os.TempDir()) {
		return
	}
	loops, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Error(err)
	}
	for _, l := range loops {
		if b, err := os.ReadFile(l); err == nil && strings.TrimSpace(string(b)) == image {
			t.Error("left attached:", l)
		}
	}
}

func wants(n int, net *provider.Network) []provider.DesiredState {
	var out []provider.DesiredState
	for i := range n {
		b := &provider.Boot{Attempt: 1, Cluster: "c-test", Hostname: fmt.Sprintf("n%02d", i+1)}
		if net != nil {
			a := net.Subnet.Addr()
			for range i + 1 {
				a = a.Next()
			}
			b.Message = &provider.Attachment{Network: *net, Address: netip.PrefixFrom(a, net.Subnet.Bits())}
		}
		out = append(out, provider.DesiredState{Machine: muster.MachineID(fmt.Sprintf("local-%02d", i+1)), Power: provider.PowerBoot, Boot: b})
	}
	return out
}

// sshUp waits for the greeting of sshd.
func sshUp(t testing.TB, p provider.Provider, id muster.MachineID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		c, err := p.Dial(ctx, id, 22)
		if err == nil {
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			line, err := bufio.NewReader(c).ReadString('\n')
			_ = c.Close()
			if err == nil && strings.HasPrefix(line, "SSH-2.0-") {
				return
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("sshd of %s: %v", id, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
