package local_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
)

// serverVariable makes the test binary a server that boots machines for ever.
const serverVariable = "MUSTER_TEST_LOCAL_SERVER"

// crashConfig is what that server is told.
type crashConfig struct {
	Dir, Instance, Image, Agent string
	VM                          bool // of which Dir holds kernel and initramfs
}

func (c *crashConfig) open(ctx context.Context) (*local.Provider, error) {
	return local.New(ctx, local.Config{
		Dir: c.Dir, Instance: c.Instance, AgentBinary: c.Agent, Oversubscribe: true,
		Slices:    []local.Slice{{Count: 3, Memory: 1 << 30}},
		ImagePath: func(context.Context, muster.ImageID) (string, error) { return c.Image, nil },
		Kernel: func(context.Context, muster.ImageID) (string, string, error) {
			return c.Dir + "/kernel", c.Dir + "/initramfs", nil
		},
	})
}

func crashNetwork() provider.Network {
	return provider.Network{Cluster: "c-1", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20")}
}

// crashingServer boots, stops and cleans machines until it is killed.
func crashingServer(text string) int {
	var c crashConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return 2
	}
	ctx := context.Background()
	p, err := c.open(ctx)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	for attempt := int64(1); ; attempt++ {
		net := crashNetwork()
		if err := p.EnsureNetworks(ctx, []provider.Network{net}); err != nil {
			fmt.Println(err)
			return 1
		}
		w := wants(3, &net)
		for i := range w {
			w[i].Boot.Attempt = attempt
			if c.VM {
				w[i].VM = &muster.VMOptions{Emulate: true}
			}
		}
		if errs := p.Ensure(ctx, w); errs != nil {
			fmt.Println(errs)
			return 1
		}
		var wg sync.WaitGroup
		for i := range w[1:] { // the first is replaced while it runs
			wg.Go(func() {
				if _, err := p.Fence(ctx, w[i+1].Machine); err == nil {
					_, _ = p.Clean(ctx, w[i+1].Machine)
				}
			})
		}
		wg.Wait()
	}
}

// TestKilledServer kills a server at random moments of booting, stopping and
// cleaning. The next one must be able to go on, and to leave nothing.
func TestKilledServer(t *testing.T) {
	image := testImage(t)
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	dir := t.TempDir()
	agent := dir + "/agent"
	if err := os.WriteFile(agent, []byte(testAgent), 0o755); err != nil {
		t.Fatal(err)
	}
	c := crashConfig{Dir: dir, Instance: "t" + muster.RandomID(6), Image: image, Agent: agent}
	for round := range rounds {
		killServer(t, &c, time.Duration(rnd.IntN(250))*time.Millisecond)
		p, err := c.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen, err := p.Observe(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range seen {
			if s.State != provider.StateRunning && s.State != provider.StateOff || s.State == provider.StateRunning && s.Attempt < 1 {
				t.Errorf("round %d: %+v", round, s)
			}
		}
		net := crashNetwork()
		if err := p.EnsureNetworks(t.Context(), []provider.Network{net}); err != nil {
			t.Fatal(err)
		}
		w := wants(3, &net)
		for i := range w {
			w[i].Boot.Attempt = 1 << 30
		}
		if errs := p.Ensure(t.Context(), w); errs != nil {
			t.Fatal(errs)
		}
		if round%4 == 0 {
			for i := range w {
				sshUp(t, p, w[i].Machine)
			}
		}
		if round%2 == 0 { // the next server starts with machines of this one
			err = p.Close()
		} else {
			err = p.Destroy(t.Context())
			noTrace(t, c.Instance, c.Image)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := c.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	noTrace(t, c.Instance, c.Image)
}

// killServer starts a server and kills it some time after it is ready.
func killServer(t *testing.T, c *crashConfig, after time.Duration) {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), serverVariable+"="+string(b))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Error("the server said:", lines.Text())
	}
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	for lines.Scan() {
		t.Error("the server said:", lines.Text())
	}
	_ = cmd.Wait()
}
