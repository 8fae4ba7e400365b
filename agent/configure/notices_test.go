package configure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Everybody who is logged in is told once, also when the agent was restarted in
// between; who logs in later finds it in the message of the day.
func TestNoticesAreToldOnce(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	terminals := []string{filepath.Join(root, "dev/pts/0"), filepath.Join(root, "dev/pts/1")}
	if err := os.MkdirAll(filepath.Dir(terminals[0]), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(terminals, filepath.Join(root, "dev/pts/ptmx")) {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(i int) string {
		b, err := os.ReadFile(terminals[i])
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	cfg := config()
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	cfg.Notices = []muster.Notice{{ID: 1, At: at, Text: "an old one"}}
	apply := func(c *Configurer) {
		t.Helper()
		cfg.Generation++
		if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err != nil {
			t.Fatal(err)
		}
	}
	apply(c)
	if read(0) != "" {
		t.Errorf("a node that boots tells: %q", read(0))
	}
	cfg.Expires = at.Add(15 * time.Minute)
	cfg.Notices = append(cfg.Notices, muster.Notice{ID: 2, At: at, Text: "ends in 15 minutes\x1b[2J\nnow"})
	apply(c)
	for i := range terminals {
		if got := read(i); strings.Count(got, "ends in 15 minutes") != 1 || strings.Contains(got, "\x1b") || strings.Contains(got, "old one") {
			t.Errorf("terminal %d: %q", i, got)
		}
	}
	again := New(Options{Root: root, Run: run, Dial: answering, NoOwners: true, Hostname: func(string) error { return nil }, Timeout: 5 * time.Second})
	for i := range terminals {
		if err := os.WriteFile(terminals[i], nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	apply(again)
	if read(0) != "" || read(1) != "" {
		t.Error("told twice")
	}
	for id := int64(3); id < 8; id++ {
		cfg.Notices = append(cfg.Notices, muster.Notice{ID: id, At: at, Text: "notice " + string(rune('0'+id))})
	}
	text := motd(cfg, nil)
	if strings.Contains(text, "notice 4") || !strings.Contains(text, "notice 5") || !strings.Contains(text, "notice 7") || !strings.Contains(text, "ends 2026-03-01 10:15 UTC") {
		t.Errorf("%s", text)
	}
	if got := tree(t, root)[motdFile]; !strings.Contains(got, "Cluster cfd (c-2345678923), node n01.") {
		t.Errorf("%q", got)
	}
}

// dayClock stands still but when the test sets it.
type dayClock struct {
	muster.SystemClock
	now time.Time
}

func (c *dayClock) Now() time.Time { return c.now }

// Which jobs were lost is told for a week, whatever else is: by the same head
// and by the next one, which has another machine.
func TestRemarksStayForTheirTime(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	clock := &dayClock{now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	c.clock = clock
	cfg := config()
	shows := func(cfg *wire.NodeConfig, yes, no []string) {
		t.Helper()
		if err := c.notices(cfg, memory{}); err != nil {
			t.Fatal(err)
		}
		text := tree(t, root)[motdFile]
		for _, s := range yes {
			if strings.Count(text, s) != 1 {
				t.Errorf("no %q in %s", s, text)
			}
		}
		for _, s := range no {
			if strings.Contains(text, s) {
				t.Errorf("%q in %s", s, text)
			}
		}
	}
	c.remark(cfg, "lost with the head, submit again: job 1")
	for _, job := range []string{"21", "22", "23", "24"} {
		clock.now = clock.now.Add(24 * time.Hour)
		c.remark(cfg, "ended: job "+job)
	}
	shows(cfg, []string{"2026-03-01 10:00 UTC  lost with the head, submit again: job 1\n", "job 21", "job 22", "job 23", "job 24"}, nil)
	// Another machine: nothing of the old one but the scheduler's state.
	for _, gone := range []string{"run/muster", "etc/motd.d"} {
		if err := os.RemoveAll(filepath.Join(root, gone)); err != nil {
			t.Fatal(err)
		}
	}
	c.remark(cfg, "lost with the head, submit again: job 3\x1b[2J")
	shows(cfg, []string{"submit again: job 1\n", "job 24", "submit again: job 3�[2J\n"}, nil)
	clock.now = time.Date(2026, 3, 8, 10, 0, 0, 0, time.UTC)
	shows(cfg, []string{"job 21", "submit again: job 3"}, []string{"submit again: job 1\n"})
	for i := range 2 * mostRemarks {
		c.remark(cfg, "again "+strconv.Itoa(i))
	}
	shows(cfg, []string{"again 39", "again 20\n"}, []string{"again 19", "job 21"})

	// Elsewhere what is found is of the machine, and what is no remark is not shown.
	if err := os.Remove(filepath.Join(root, headRemarksFile)); err != nil {
		t.Fatal(err)
	}
	cfg.Head = false
	c.remark(cfg, "ended: job 30")
	if text, err := c.files.read(remarksFile); err != nil || c.files.exists(headRemarksFile) {
		t.Errorf("%q, %v", text, err)
	} else if _, err := c.files.write(remarksFile, "\nshort\nno moment at its beginning\n"+text, 0o600, ""); err != nil {
		t.Fatal(err)
	}
	shows(cfg, []string{"ended: job 30"}, []string{"short", "no moment"})
}

// Two who find something at once both tell it.
func TestRemarksDoNotReplaceEachOther(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	cfg := config()
	var all sync.WaitGroup
	for i := range mostRemarks {
		all.Go(func() { c.remark(cfg, "job "+strconv.Itoa(100+i)) })
	}
	all.Wait()
	for i := range mostRemarks {
		if text := tree(t, root)[motdFile]; !strings.Contains(text, "job "+strconv.Itoa(100+i)) {
			t.Errorf("no job %d in %s", 100+i, text)
		}
	}
}
