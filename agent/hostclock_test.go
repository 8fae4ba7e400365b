package agent

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

// at is a clock that stands.
type at struct {
	muster.Clock
	t time.Time
}

func (a at) Now() time.Time { return a.t }

// The clock is set as the host says, and only then: not by noise, nor where it is right.
func TestHostClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 5, 0, 0, 0, time.UTC)
	a := &agent{Config: Config{Clock: at{t: now}, Log: slog.New(slog.DiscardHandler)}}
	var set []time.Time
	says := strings.Join([]string{
		"", "task", `{"clock":`, `{"clock":"tomorrow"}`, `{"wait":{"reason":"this machine had its task"}}`, strings.Repeat("x", 5000),
		`{"clock":"2026-11-28T05:00:00.02Z"}`, `{"clock":"2026-11-28T08:00:00.5Z"}`, `{"clock":"2026-11-28T04:59:00Z"}`, `{"clock":"2026-11-28T09:00:00Z"`,
	}, "\r\n")
	fails := errors.New("it may not")
	a.followHost(t.Context(), strings.NewReader(says), func(at time.Time) error {
		set = append(set, at)
		return fails // one that fails does not end it
	})
	if len(set) != 2 || !set[0].Equal(now.Add(3*time.Hour+500*time.Millisecond)) || !set[1].Equal(now.Add(-time.Minute)) {
		t.Errorf("%v", set)
	}
}

func FuzzHostLine(f *testing.F) {
	f.Add([]byte(`{"clock":"2026-11-28T05:00:00.02Z"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, ok := parseHostLine(b); ok == l.Clock.IsZero() {
			t.Errorf("%q", b)
		}
	})
}
