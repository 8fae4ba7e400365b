package configure

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A node of which a head that booted again knows nothing has its slurmd register
// anew; one that is known does not.
func TestANodeRegistersWithTheNextHead(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	cfg := config()
	cfg.HeadBoot = 1
	if err := c.markStarted("slurmd"); err != nil {
		t.Fatal(err)
	}
	if err := c.markRegistered(cfg); err != nil {
		t.Fatal(err)
	}
	asked, restarts := 0, func() int { return run.count("systemctl restart --no-block slurmd.service") }
	run.answer = func(line string) (string, error) {
		if !strings.HasPrefix(line, "scontrol --future --oneliner show node n01") {
			return "", nil
		}
		asked++
		switch {
		case asked == 1:
			return "", fmt.Errorf("Unable to contact slurm controller")
		case restarts() == 0:
			return "NodeName=n01 NodeAddr=10.128.0.10 State=FUTURE CPUTot=1 RealMemory=900\n", nil
		}
		return "NodeName=n01 NodeAddr=10.128.0.10 State=IDLE+DYNAMIC_NORM CPUTot=1 RealMemory=900\n", nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.registerAgain(ctx, cfg) // the same boot
	if asked != 0 {
		t.Error("it asked though the head did not boot")
	}
	cfg.HeadBoot = 2
	c.registerAgain(ctx, cfg)
	if restarts() != 1 {
		t.Errorf("slurmd was started anew %d times: %q", restarts(), run.lines())
	}
	n := asked
	c.registerAgain(ctx, cfg)
	if asked != n {
		t.Error("it asked again though it is known")
	}
}
