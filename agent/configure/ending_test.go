package configure

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// At the end no job begins, running ones are ended, and the head says when none
// is left; what waits stays in the queue. Given more time, it all goes on.
func TestEnding(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	m := newSlurm()
	m.queue = "7|20000|alice|RUNNING|1|n02|2026-03-01T10:00:00|1:00|None|a\n8|20000|alice|PENDING|1||N/A|1:00|Resources|b"
	run.answer = m.answer
	r := newReport(t)
	cfg := members(wire.Host{Name: "n01"}, wire.Host{Name: "n02"})
	apply := func() { t.Helper(); applyNext(t, c, cfg, r) }
	apply()
	m.register("n01")
	m.register("n02")
	eventually(t, "jobs", func() bool { return r.state().Jobs == 1 && r.state().Queue == 1 && len(r.state().List) == 2 })
	cfg.Slurm.Ending = true
	apply()
	eventually(t, "the job is cancelled", func() bool { return run.count("scancel --quiet 7") == 1 })
	closed := slices.Index(run.lines(), "scontrol update PartitionName=main State=INACTIVE")
	if closed < 0 || closed > slices.Index(run.lines(), "scancel --quiet 7") || r.state().Ended {
		t.Errorf("%q", run.lines())
	}
	m.mu.Lock()
	m.queue = "8|20000|alice|PENDING|1||N/A|1:00|PartitionInactive|b"
	m.mu.Unlock()
	eventually(t, "ended", func() bool { return r.state().Ended })
	if run.count("scancel") != 1 {
		t.Errorf("%q", run.lines())
	}
	cfg.Slurm.Ending = false
	apply()
	eventually(t, "goes on", func() bool { return !r.state().Ended && run.count("scontrol update PartitionName=main State=UP") == 1 })
}

// A pause that queues jobs again touches none while one of them would be lost that nobody gave up: the server takes it
// back, and all go on.
func TestRequeueLosesNothingUnasked(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	m := newSlurm()
	m.queue = "7|20000|alice|RUNNING|1|n02|2026-03-01T10:00:00|1:00|None|shell\n8|20000|alice|RUNNING|1|n01|2026-03-01T10:00:00|1:00|None|batch"
	m.marks = "7|0|1|\n8|1|1|\n"
	run.answer = m.answer
	r := newReport(t)
	cfg := members(wire.Host{Name: "n01"}, wire.Host{Name: "n02"})
	apply := func() { t.Helper(); applyNext(t, c, cfg, r) }
	apply()
	m.register("n01")
	m.register("n02")
	eventually(t, "jobs", func() bool { return r.state().Jobs == 2 })
	cfg.Slurm.Pause = muster.PauseRequeue
	apply()
	eventually(t, "it is looked at twice", func() bool {
		closed := slices.Index(run.lines(), "scontrol update PartitionName=main State=INACTIVE")
		return closed >= 0 && strings.Count(strings.Join(run.lines()[closed:], "\n"), "BatchFlag") >= 2
	})
	if run.count("scontrol requeue") > 0 || run.count("scancel") > 0 {
		t.Fatalf("%q", run.lines())
	}
	cfg.Slurm.Pause = ""
	apply()
	eventually(t, "goes on", func() bool { return run.count("scontrol update PartitionName=main State=UP") == 1 })
	cfg.Slurm.Pause, cfg.Slurm.Lose = muster.PauseRequeue, true
	apply()
	eventually(t, "what was given up is ended", func() bool { return run.count("scontrol requeue 8") == 1 && run.count("scancel --quiet 7") == 1 })
}

// The jobs of a person who left are cancelled, whoever else has some, and
// whatever names that person gave to jobs.
func TestJobsOfThoseWhoLeft(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	m := newSlurm()
	m.queue = "7|20000|alice|RUNNING|1|n02|2026-03-01T10:00:00|1:00|None|a\n8|20001|bob|RUNNING|1|n01|2026-03-01T10:00:00|1:00|None|b\n9|0|root|RUNNING|1|n01|2026-03-01T10:00:00|1:00|None|c\n" +
		"7|20001|bob|RUNNING|1|n01|N/A|1:00|None|a line in a name\n--user=alice|20001|bob|RUNNING|1|n01|N/A|1:00|None|another"
	m.owner = map[string]string{"7": "20000", "8": "20001", "9": "0"}
	run.answer = m.answer
	cfg := members(wire.Host{Name: "n01"}, wire.Host{Name: "n02"})
	bob := wire.Account{Name: "bob", UID: 20001, GID: 20001}
	cfg.Users = append(cfg.Users, bob)
	r := newReport(t)
	if err := c.Apply(t.Context(), copied(cfg), r); err != nil {
		t.Fatal(err)
	}
	m.register("n01")
	m.register("n02")
	eventually(t, "jobs", func() bool { return r.state().Jobs == 4 })
	if run.count("scancel") != 0 {
		t.Errorf("%q", run.lines())
	}
	cfg.Users, cfg.Generation = cfg.Users[:1], 2
	if err := c.Apply(t.Context(), copied(cfg), r); err != nil {
		t.Fatal(err)
	}
	eventually(t, "bob's job is cancelled", func() bool { return run.count("scancel --quiet 8") == 1 })
	if run.count("scancel") != 1 || slices.ContainsFunc(run.lines(), func(l string) bool { return strings.Contains(l, "scancel --quiet 7") }) {
		t.Errorf("%q", run.lines())
	}
}

// A slurmctld that has ended is started again.
func TestControllerIsStartedAgain(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	m := newSlurm()
	run.answer = m.answer
	r := newReport(t)
	if err := c.Apply(t.Context(), members(wire.Host{Name: "n01"}, wire.Host{Name: "n02"}), r); err != nil {
		t.Fatal(err)
	}
	eventually(t, "up", func() bool { return r.state().Up })
	w := watcher{controller: controller{c: c, cfg: config()}, r: r, whole: true}
	m.mu.Lock()
	m.down = true
	m.mu.Unlock()
	before := run.count("systemctl start --no-block slurmctld.service")
	w.look(t.Context())
	if run.count("systemctl start --no-block slurmctld.service") != before+1 || r.state().Up {
		t.Errorf("%q", run.lines())
	}
}
