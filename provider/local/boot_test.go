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
)

// testAgent stands in for the agent: it starts sshd and nothing else.
const testAgent = `#!/bin/sh
mkdir -p /run/sshd
exec /usr/sbin/sshd -D
`

// testImage finds an image to boot; without one there is nothing to test.
func testImage(t testing.TB) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("making machines needs root")
	}
	for _, p := range []string{os.Getenv("MUSTER_TEST_IMAGE"), "/var/tmp/muster-dev/mini.squashfs"} {
		if _, err := os.Stat(p); p != "" && err == nil {
			return p
		}
	}
	t.Skip("no image to boot: set MUSTER_TEST_IMAGE to a squashfs with systemd and sshd")
	return ""
}

func open(t testing.TB, slices string, change func(*local.Config)) *local.Provider {
	t.Helper()
	image := testImage(t)
	dir := t.TempDir()
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
	p, err := local.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		ms, _ := p.Discover(ctx)
		for _, m := range ms {
			if err := p.Fence(ctx, m.ID); err != nil {
				t.Error(err)
			}
			if c, err := p.Clean(ctx, m.ID); err != nil {
				t.Error(err, c)
			}
		}
		nets, _ := p.Networks(ctx)
		if err := p.RemoveNetworks(ctx, nets); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func wants(n int, net *provider.Network) []provider.Want {
	var out []provider.Want
	for i := range n {
		b := &provider.Boot{Attempt: 1, Cluster: "c-test", Hostname: fmt.Sprintf("n%02d", i+1)}
		if net != nil {
			a := net.Subnet.Addr()
			for range i + 1 {
				a = a.Next()
			}
			b.Message = &provider.Attachment{Network: *net, Address: netip.PrefixFrom(a, net.Subnet.Bits())}
		}
		out = append(out, provider.Want{Machine: muster.MachineID(fmt.Sprintf("local-%02d", i+1)), Power: provider.PowerBoot, Boot: b})
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

func TestBoot(t *testing.T) {
	p := open(t, "1,memory=1GiB", nil)
	start := time.Now()
	if errs := p.Ensure(t.Context(), wants(1, nil)); errs != nil {
		t.Fatal(errs)
	}
	ran := time.Since(start)
	sshUp(t, p, "local-01")
	t.Logf("init after %v, sshd after %v", ran, time.Since(start))
	start = time.Now()
	if err := p.Fence(t.Context(), "local-01"); err != nil {
		t.Fatal(err)
	}
	t.Logf("fenced in %v", time.Since(start))
	c, err := p.Clean(t.Context(), "local-01")
	t.Logf("cleaned %+v %v", c, err)
}
