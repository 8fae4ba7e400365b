package local

import (
	"testing"
	"time"
)

func TestKeepImages(t *testing.T) {
	t.Parallel()
	l := newLowers(time.Minute)
	defer l.close()
	dir := t.TempDir()
	lo, err := openLower(dir)
	if err != nil {
		t.Fatal(err)
	}
	l.open[dir] = lo
	now := time.Now()
	for _, s := range []struct {
		used  bool
		after time.Duration
		open  bool
	}{
		{true, 0, true}, {false, time.Hour, true}, {false, time.Hour + 30*time.Second, true},
		{true, time.Hour + 50*time.Second, true}, {false, 2 * time.Hour, true}, {false, 2*time.Hour + 2*time.Minute, false},
	} {
		l.keep(map[string]bool{dir: s.used}, now.Add(s.after), func() {})
		if _, ok := l.open[dir]; ok != s.open {
			t.Errorf("after %v: open %v", s.after, ok)
		}
	}
	if l.timer == nil {
		t.Error("nobody would look again")
	}
	l = newLowers(-1)
	l.open[dir] = lo
	l.keep(nil, now, nil)
	if len(l.open) > 0 {
		t.Error("kept though told not to")
	}
}
