package configure

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// forgetful is a scheduler that forgets the node whenever it is told to, until the
// node's slurmd starts anew.
func forgetful(run *fakeRun, asked, forgets *atomic.Int32) {
	run.answer = func(line string) (string, error) {
		if strings.HasPrefix(line, "systemctl restart --no-block slurmd.service") {
			forgets.Store(0)
		}
		if !strings.HasPrefix(line, "scontrol --future --oneliner show node n01") {
			return "", nil
		}
		switch {
		case asked.Add(1) == 1:
			return "", fmt.Errorf("Unable to contact slurm controller")
		case forgets.Load() > 0:
			return "NodeName=n01 NodeAddr=10.128.0.10 State=FUTURE CPUTot=1 RealMemory=900\n", nil
		}
		return "NodeName=n01 NodeAddr=10.128.0.10 State=IDLE+DYNAMIC_NORM CPUTot=1 RealMemory=900\n", nil
	}
}

func registering(t *testing.T, headBoot int64, f func(c *Configurer, cfg *wire.NodeConfig, asked, forgets *atomic.Int32, restarts func() int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, run, _ := node(t)
		cfg := config()
		cfg.HeadBoot = 1
		if err := c.markStarted("slurmd"); err != nil {
			t.Fatal(err)
		}
		if err := c.markRegistered(cfg); err != nil {
			t.Fatal(err)
		}
		cfg.HeadBoot = headBoot
		var asked, forgets atomic.Int32
		forgetful(run, &asked, &forgets)
		ctx, cancel := context.WithCancel(t.Context())
		go c.keepRegistered(ctx, cfg)
		f(c, cfg, &asked, &forgets, func() int { return run.count("systemctl restart --no-block slurmd.service") })
		cancel()
		synctest.Wait()
	})
}

// A node of which a head that booted again knows nothing has its slurmd register
// anew within seconds.
func TestANodeRegistersWithTheNextHead(t *testing.T) {
	t.Parallel()
	registering(t, 2, func(c *Configurer, _ *wire.NodeConfig, _, forgets *atomic.Int32, restarts func() int) {
		forgets.Store(1)
		time.Sleep(5 * time.Second)
		if restarts() != 1 {
			t.Errorf("slurmd was started anew %d times", restarts())
		}
		time.Sleep(20 * time.Second)
		if mark, _ := c.files.read(registeredMark); mark != "2" || restarts() != 1 {
			t.Errorf("registered with boot %q after %d starts", mark, restarts())
		}
	})
}

// A scheduler that forgets its nodes without a boot of the head learns of them again,
// soon while it is young and some time after that.
func TestRegistrationIsKept(t *testing.T) {
	t.Parallel()
	registering(t, 1, func(_ *Configurer, _ *wire.NodeConfig, asked, forgets *atomic.Int32, restarts func() int) {
		time.Sleep(20 * time.Second)
		if restarts() != 0 {
			t.Fatalf("slurmd was started anew %d times though it is known", restarts())
		}
		forgets.Store(1)
		time.Sleep(20 * time.Second)
		if restarts() != 1 {
			t.Errorf("slurmd of a young cluster was started anew %d times, want 1", restarts())
		}
		time.Sleep(time.Hour)
		before := asked.Load()
		time.Sleep(time.Hour)
		if n := asked.Load() - before; n > 12 {
			t.Errorf("an old cluster's node asked %d times in an hour", n)
		}
		forgets.Store(1)
		time.Sleep(8 * time.Minute)
		if restarts() != 2 {
			t.Errorf("slurmd of an old cluster was started anew %d times, want 2", restarts())
		}
	})
}

// Nodes of a large cluster ask seldom.
func TestRegistrationIsCheap(t *testing.T) {
	t.Parallel()
	c, _, _ := node(t)
	cfg := config()
	cfg.Hosts = make([]wire.Host, 10000)
	if wait := c.registerWait(cfg, 0); wait < 100*time.Second {
		t.Errorf("each of 10,000 nodes asks every %s", wait)
	}
}
