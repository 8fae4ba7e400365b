package procstat

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const head = "12 (a) b (c) "
	for _, c := range []struct {
		state, flags, signals string
		want                  Stat
	}{
		{"S", "0", "0", Stat{Start: 4711}},
		{"R", "4", "0", Stat{Start: 4711, Ending: true}},
		{"D", "1", "256", Stat{Start: 4711, Ending: true}},
		{"S", "1", "512", Stat{Start: 4711}},
		{"Z", "0", "0", Stat{Start: 4711, Ending: true, Ended: true}},
	} {
		line := head + c.state + " 1 2 3 4 5 " + c.flags + " 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21 22 23 24 25 26 27 " + c.signals + " 30\n"
		if got, err := Parse(line); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
	for _, line := range []string{"", "12 (a", "12 (a) S 1 2 3", ") S"} {
		if _, err := Parse(line); err == nil {
			t.Errorf("%q is a line", line)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	if s, err := Read(os.Getpid()); err != nil || s.Start == 0 || s.Ending {
		t.Errorf("this process: %+v, %v", s, err)
	}
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if s, err := Read(c.Process.Pid); err != nil || !s.Ending { // at once, whatever the host is busy with
		t.Errorf("killed: %+v, %v", s, err)
	}
	_ = c.Wait()
	if _, err := Read(c.Process.Pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21 22 23 24 25 26 27 28 29\n")
	f.Add(")")
	f.Fuzz(func(_ *testing.T, line string) { _, _ = Parse(line) })
}
