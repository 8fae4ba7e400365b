package tool_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/agent/tool"
)

// What a program prints is kept, with the files that it was given, also if it fails.
func TestRun(t *testing.T) {
	t.Parallel()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, err := tool.Run(t.Context(), []*os.File{f}, "sh", "-c", "echo inside >&3; echo words; echo no >&2; echo way >&2; exit 3")
	if string(out) != "words\n" || err == nil || err.Error() != "sh failed: no way" {
		t.Errorf("%q, %v", out, err)
	}
	if b, err := os.ReadFile(f.Name()); err != nil || string(b) != "inside\n" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := tool.Run(t.Context(), nil, "sh", "-c", "exit 3"); err == nil || !strings.Contains(err.Error(), "3") {
		t.Error(err)
	}
	if _, err := tool.Run(t.Context(), nil, "no-such-program"); err == nil {
		t.Error("there is none")
	}
}

// It is bounded in what it prints and in time.
func TestRunIsBounded(t *testing.T) {
	t.Parallel()
	out, err := tool.Run(t.Context(), nil, "sh", "-c", "yes | head -c 10000000")
	if len(out) != tool.Most || err == nil {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := tool.Run(ctx, nil, "sleep", "300"); err == nil || !strings.Contains(err.Error(), "was ended") || time.Since(began) > time.Minute {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if v := tool.Version(t.Context(), "sh"); strings.Contains(v, "\n") {
		t.Errorf("%q", v)
	}
	if v := tool.Version(t.Context(), "no-such-program"); v != "" || tool.There("no-such-program") || !tool.There("sh") {
		t.Errorf("%q", v)
	}
	if v := tool.Version(t.Context(), "bash"); !strings.HasPrefix(v, "GNU bash, version ") || strings.Contains(v, " (") {
		t.Errorf("%q", v)
	}
}
