package configure

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

// setClock stands until it is set.
type setClock struct {
	muster.Clock
	now time.Time
}

func (c *setClock) Now() time.Time { return c.now }

// Jobs that Slurm held by itself are released, ever more seldom, and no others.
func TestHeldJobsAreReleased(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	clock := &setClock{Clock: muster.SystemClock{}, now: time.Unix(1e9, 0)}
	c.clock = clock
	m := newSlurm("n01", "n02")
	run.answer = m.answer
	pending := func(id, reason, name string) string {
		return id + "|20000|alice|PENDING|1||N/A|1:00|" + reason + "|" + name + "\n"
	}
	m.queue = pending("7", "launch failed requeued held", "a") + pending("6", "launch failure limit exceeded requeued held", "i") + pending("8_3", "JobHoldMaxRequeue", "b") +
		pending("9", "JobHeldUser", "c") + pending("10", "JobHeldAdmin", "d") + pending("11", "Resources", "launch failed requeued held") +
		pending("12", "job requeued in held state", "e") + pending("13_[1-4]", "JobHoldMaxRequeue", "f") +
		"14|20000|alice|PENDING|1||N/A|1:00|Priority|g\n15|20000|alice|PENDING|1||N/A|1:00|JobHoldMaxRequeue|h\n"
	const all = "scontrol release 15,8_3,7,6"
	w := watcher{controller: controller{c: c, cfg: config()}, r: newReport(t), whole: true}
	ask := func(later time.Duration) (ran []string) {
		t.Helper()
		before := run.count("scontrol release")
		clock.now = clock.now.Add(later)
		w.askJobs(t.Context(), true)
		for _, l := range run.lines() {
			if strings.HasPrefix(l, "scontrol release") {
				ran = append(ran, l)
			}
		}
		return ran[before:]
	}
	if got := append(ask(0), ask(time.Hour)...); len(got) > 0 {
		t.Errorf("no node can run them: %q", got)
	}
	w.last.Nodes = map[string]string{"n01": "idle", "n02": "drained"}
	for i, step := range []struct {
		later time.Duration
		want  bool
	}{{forgiveFirst, false}, {forgiveFirst - 2*time.Second, false}, {2 * time.Second, true}, {forgiveFirst, false}, {forgiveFirst, true}, {forgiveMost, true}} {
		got := ask(step.later)
		slices.Sort(got)
		if want := step.want; want != (len(got) == 1) || want && !sameJobs(got[0], all) {
			t.Errorf("step %d: %q", i, got)
		}
	}
	w.cfg.Slurm.Ending = true
	if got := ask(forgiveMost); len(got) > 0 {
		t.Errorf("the cluster ends: %q", got)
	}
	w.cfg.Slurm.Ending = false
	m.queue = ""
	if got := ask(3 * forgiveMost); len(got) > 0 || len(w.released) > 0 {
		t.Errorf("none is left: %q, %v", got, w.released)
	}
}

// sameJobs compares commands whose last word is a list.
func sameJobs(a, b string) bool {
	words := func(s string) []string {
		w := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
		slices.Sort(w)
		return w
	}
	return slices.Equal(words(a), words(b))
}

// A name cannot pretend that Slurm holds a job.
func TestHeldJobIsNoName(t *testing.T) {
	t.Parallel()
	mark := newMark()
	q := parseSqueue(mark+"7|20000|a|PENDING|1||N/A|1:00|JobHeldUser|x\n8|20000|a|PENDING|1||N/A|1:00|JobHoldMaxRequeue|y", mark, nil)
	if len(q.held) > 0 || q.pending != 1 {
		t.Errorf("%+v", q)
	}
}
