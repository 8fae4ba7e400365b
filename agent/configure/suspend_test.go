package configure

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// For a pause that freezes, running jobs are suspended once no other can start, and go on before others
// may start. One that somebody had suspended stays so.
func TestSuspendForAPause(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	m := newSlurm()
	const mine, other = "7|20000|alice|%s|1|n02|2026-03-01T10:00:00|1:00|None|a", "9|20000|alice|SUSPENDED|1|n01|2026-03-01T10:00:00|1:00|None|b"
	says := func(state string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.queue = strings.Replace(mine, "%s", state, 1) + "\n" + other
	}
	says("RUNNING")
	run.answer = func(line string) (string, error) {
		switch {
		case strings.HasPrefix(line, "scontrol suspend"):
			says("SUSPENDED")
		case strings.HasPrefix(line, "scontrol resume"):
			says("RUNNING")
		case strings.HasSuffix(line, "--states=SUSPENDED --format=%i"):
			m.mu.Lock()
			defer m.mu.Unlock()
			if strings.Count(m.queue, "SUSPENDED") == 2 {
				return "7\n9\n", nil
			}
			return "9\n", nil
		}
		return m.answer(line)
	}
	r := newReport(t)
	cfg := members(wire.Host{Name: "n01"}, wire.Host{Name: "n02"})
	apply := func() { t.Helper(); applyNext(t, c, cfg, r) }
	apply()
	m.register("n01")
	m.register("n02")
	eventually(t, "jobs", func() bool { return r.state().Jobs == 2 })
	cfg.Slurm.Pause = muster.PauseFreeze
	apply()
	eventually(t, "suspended", func() bool { return r.state().Ended })
	closed := slices.Index(run.lines(), "scontrol update PartitionName=main State=INACTIVE")
	if at := slices.Index(run.lines(), "scontrol suspend 7"); closed < 0 || at < closed {
		t.Errorf("%q", run.lines())
	}
	cfg.Slurm.Pause = ""
	apply()
	on, up := slices.Index(run.lines(), "scontrol resume 7"), slices.Index(run.lines(), "scontrol update PartitionName=main State=UP")
	if on < 0 || up < on || run.count("scontrol resume") != 1 || run.count("scontrol suspend") != 1 {
		t.Errorf("%q", run.lines())
	}
	if left, err := c.suspended(); err != nil || len(left) > 0 {
		t.Errorf("%q %v", left, err)
	}
}
