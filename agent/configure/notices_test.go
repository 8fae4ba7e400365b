package configure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
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
