package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/muster-hpc/muster/wire"
	"pgregory.net/rapid"
)

func points(v ...float64) (out []*float64) {
	for _, x := range v {
		if x < 0 {
			out = append(out, nil)
			continue
		}
		out = append(out, &x)
	}
	return out
}

func TestSpark(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		points []*float64
		top    float64
		width  int
		ascii  bool
		want   string
	}{
		{points(0, 1, 2, 4, 8), 8, 10, false, "▁▂▃▅█"},
		{points(0, -1, -1, 8), 8, 10, false, "▁  █"},
		{points(0, -1, 4, 8), 8, 10, true, "_ =#"},
		{points(0, 0), 0, 10, false, "▁▁"},
		{points(1, 8, 0, -1), 8, 2, false, "█▁"},
		{nil, 1, 10, false, ""},
		{points(1), 1, 0, false, ""},
	} {
		if got := spark(c.points, c.top, c.width, c.ascii); got != c.want {
			t.Errorf("%v: %q, want %q", c.points, got, c.want)
		}
	}
}

func TestPropertySparkFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(-1, 1e18), 1, 300).Draw(rt, "points")
		width := rapid.IntRange(1, 400).Draw(rt, "width")
		got := spark(points(v...), rapid.Float64Range(0, 1e18).Draw(rt, "top"), width, rapid.Bool().Draw(rt, "ascii"))
		if n := utf8.RuneCountInString(got); n != min(width, len(v)) {
			rt.Fatalf("%d characters of %d points in %d", n, len(v), width)
		}
	})
}

// A screen of top is never wider or higher than the terminal.
func TestTopPageIsCut(t *testing.T) {
	t.Parallel()
	top := wire.Top{At: time.Now(), Site: &wire.TopSite{}, Clusters: []wire.TopCluster{
		{Name: "b", Status: "ready", CoresBusy: 1, Jobs: 3, Up: 2, Nodes: 3, Down: 1},
		{Name: "a", Status: "ready", CoresBusy: 2, Expires: time.Now().Add(time.Hour)},
	}}
	for key, first := range map[byte]string{'n': "a", 'c': "a", 'j': "b", 't': "a"} {
		var b strings.Builder
		s := &topScreen{app: &app{}, key: key}
		s.page(&b, top)
		lines := strings.Split(b.String(), "\n")
		if !strings.HasPrefix(lines[3], first+" ") {
			t.Errorf("sorted by %c: %s", key, b.String())
		}
		if key == 'n' && !strings.Contains(b.String(), "1!") {
			t.Errorf("a lost host does not stand out: %s", b.String())
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(cut(l, 20)); n > 20 {
				t.Errorf("%d characters", n)
			}
		}
	}
}
