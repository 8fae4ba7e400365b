package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestKeepFile: a file that says the same is not written again.
func TestKeepFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ca.pem")
	for _, text := range []string{"one", "two"} {
		if err := keepFile(path, text); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		if err := keepFile(path, text); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		b, rerr := os.ReadFile(path)
		if err != nil || rerr != nil || string(b) != text || time.Since(info.ModTime()) < time.Minute {
			t.Errorf("%q, changed %v, %v, %v", b, info, err, rerr)
		}
	}
}
