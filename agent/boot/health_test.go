package boot

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/agent/smart"
	"github.com/muster-hpc/muster/wire"
)

// diagnosis has disk sda say these things one after the other, the last again and again;
// sdb has no SMART.
func diagnosis(says ...smart.Health) func(string) (smart.Health, error) {
	var mu sync.Mutex
	return func(name string) (smart.Health, error) {
		mu.Lock()
		defer mu.Unlock()
		if name != "sda" {
			return smart.Health{}, nil
		}
		h := says[0]
		says = says[min(1, len(says)-1):]
		return h, nil
	}
}

// media is a disk that says it is well and has counted so many errors.
func media(n uint64) smart.Health {
	return smart.Health{Told: true, Wear: "3 % of its life used", Errors: []facts.Errors{{What: "disk sda, media errors", Count: n, Lost: true}}}
}

// testing does a test and returns its steps as text.
func (w *worker) testing(t *testing.T) (passed bool, text string) {
	t.Helper()
	d, _, err := w.do(t.Context(), &wire.BootTask{Kind: wire.BootTest}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Steps {
		text += fmt.Sprintf("%s: %v %s\n", s.What, s.OK, s.Check)
	}
	return d.Passed, text
}

func TestHealth(t *testing.T) {
	t.Parallel()
	bad := smart.Health{Told: true, Failing: "its media can only be read"}
	const failed = `disk A \(sda\): false FAILED: .*its media can only be read\n`
	for name, c := range map[string]struct {
		says   []smart.Health
		broken bool
		passed bool
		text   string
	}{
		"well":               {[]smart.Health{media(7)}, false, true, "nothing written.*3 % of its life used\n"},
		"counts":             {[]smart.Health{media(7)}, false, true, "errors counted: true .*1 "},
		"lost under load":    {[]smart.Health{media(7), media(8)}, false, false, "errors counted: false FAILED: 1 .*disk sda, media errors"},
		"told late":          {[]smart.Health{{}, media(8)}, false, true, "errors counted: true "},
		"fails":              {[]smart.Health{bad}, false, false, failed},
		"fails under load":   {[]smart.Health{media(7), bad}, false, false, failed},
		"failed before":      {[]smart.Health{bad, media(7)}, false, false, failed},
		"fails and unread":   {[]smart.Health{bad}, true, false, `byte 0 \(unexpected EOF\).*its media can only be read\n`},
		"well and unread":    {[]smart.Health{media(7)}, true, false, `disk A \(sda\): false FAILED: .*byte 0 \(unexpected EOF\)\n`},
		"no SMART":           {[]smart.Health{{}}, false, true, "nothing written\n"},
		"no SMART, no count": {[]smart.Health{{}}, false, true, "errors counted: true "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, disks := newPretender(&wires{})
			disks["sda"].broken = c.broken
			w.health = diagnosis(c.says...)
			if passed, text := w.testing(t); passed != c.passed || !regexp.MustCompile(c.text).MatchString(text) {
				t.Errorf("%v\n%s", passed, text)
			}
		})
	}
}

// A disk that does not answer fails and is asked once; one that holds the question for
// ever holds no test.
func TestSilentDisk(t *testing.T) {
	t.Parallel()
	end, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	for name, silence := range map[string]func() error{
		"late": func() error { return smart.ErrSilent },
		"held": func() error { <-end.Done(); return errors.New("over") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newPretender(&wires{})
			var mu sync.Mutex
			n := 0
			w.health = func(name string) (smart.Health, error) {
				if name != "sda" {
					return smart.Health{}, nil
				}
				mu.Lock()
				n++
				mu.Unlock()
				return smart.Health{}, silence()
			}
			passed, text := w.testing(t)
			mu.Lock()
			defer mu.Unlock()
			if passed || n != 1 || !strings.Contains(text, "disk A (sda): false FAILED: it does not answer when it is asked how it is\n") {
				t.Errorf("%v, asked %d times\n%s", passed, n, text)
			}
		})
	}
}

// The kernel counts a question that a disk refuses as a failed command: that fails no
// test. What fails while the processors compute, or the disks are read, does.
func TestQuestionsAreNotCounted(t *testing.T) {
	t.Parallel()
	for fails, passed := range map[int]bool{-1: true, 0: false, 2: false} { // before which look at the counters
		w, _ := newPretender(&wires{})
		var mu sync.Mutex
		n, looks := uint64(0), -1
		w.errors = func() []facts.Errors {
			mu.Lock()
			defer mu.Unlock()
			e := []facts.Errors{{What: "disk sda, failed commands", Count: n, Lost: true}}
			if looks++; looks == fails {
				n++ // after this look, and before the next
			}
			return e
		}
		w.health = func(string) (smart.Health, error) {
			mu.Lock()
			defer mu.Unlock()
			n++
			return smart.Health{}, nil
		}
		if got, text := w.testing(t); got != passed || looks != 3 {
			t.Errorf("%d, %d looks: %v\n%s", fails, looks, got, text)
		}
	}
}
