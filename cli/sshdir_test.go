package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestKeysOfKilledProcessesGo(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	dead, now := cmd.Process.Pid, time.Now()
	for _, c := range []struct {
		name string
		age  time.Duration
		goes bool
	}{
		{fmt.Sprintf("muster-ssh-%d-1", dead), time.Hour, true},
		{fmt.Sprintf("muster-ssh-%d-2", dead), 0, false},
		{fmt.Sprintf("muster-ssh-%d-3", os.Getpid()), time.Hour, false},
		{fmt.Sprintf("muster-ssh-%d-4", os.Getpid()), 25 * time.Hour, true},
		{"muster-ssh-old", time.Hour, false},
		{"muster-ssh-older", 25 * time.Hour, true},
		{"other", 25 * time.Hour, false},
	} {
		path := filepath.Join(place, c.name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "key"), []byte("k"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-c.age), now.Add(-c.age)); err != nil {
			t.Fatal(err)
		}
		sweepKeys(place, now)
		if _, err := os.Lstat(path); os.IsNotExist(err) != c.goes {
			t.Errorf("%s, %s old: %v", c.name, c.age, err)
		}
	}
}
