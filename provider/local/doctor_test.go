package local

import (
	"os"
	"testing"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	for _, c := range Doctor(t.Context()) {
		t.Logf("%+v", c)
		if c.Name == "" || c.Found == "" || !c.OK && c.Fix == "" {
			t.Errorf("says too little: %+v", c)
		}
	}
}

func TestCheckGroups(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		hybridMounts: true,
		"29 25 0:9 / /g/pids rw - cgroup cgroup rw,pids\n31 25 0:11 / /g/unified rw - cgroup2 cgroup2 rw\n": false,
		"nothing": false,
		"31 25 0:11 / /nowhere rw - cgroup2 cgroup2 rw\n": false,
	} {
		file := t.TempDir() + "/mountinfo"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := checkGroups(file); c.OK != want {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

func TestParseRelease(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{"6.18.44-fc": {6, 18}, "6.1.0-13-amd64": {6, 1}, "x": {}} {
		if a, b := parseRelease(text); a != want[0] || b != want[1] {
			t.Error(text, a, b)
		}
	}
}
