package local_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/muster-hpc/muster/internal/executable"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local"
)

// withScript makes a shell script the agent of every machine.
func withScript(t testing.TB, script string) func(*local.Config) {
	t.Helper()
	agent := filepath.Join(t.TempDir(), "agent")
	text := "#!/bin/sh\nexec 2>&1\n" + script + "\nexec sleep infinity\n"
	if err := executable.Write(agent, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return func(c *local.Config) { c.AgentBinary = agent }
}

// share gives every wanted machine /share, a directory of its own on the host,
// in which its script leaves what it found. It returns a function that waits
// for the file done of a machine and reads the file out.
func share(t testing.TB, w []provider.DesiredState) func(i int) string {
	t.Helper()
	root := t.TempDir()
	dirs := make([]string, len(w))
	for i := range w {
		dirs[i] = filepath.Join(root, w[i].Boot.Hostname)
		if err := os.Mkdir(dirs[i], 0o755); err != nil {
			t.Fatal(err)
		}
		w[i].Boot.Shares = append(w[i].Boot.Shares, provider.BindMount{Path: dirs[i], Target: "/share"})
	}
	return func(i int) string {
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(dirs[i], "done")); err == nil {
				b, err := os.ReadFile(filepath.Join(dirs[i], "out"))
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
		}
		b, _ := os.ReadFile(filepath.Join(dirs[i], "out"))
		t.Fatalf("machine %d did not finish its script, which said: %s", i, b)
		return ""
	}
}
