package agent

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
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
	c := &Config{Clock: at{t: now}, Log: slog.New(slog.DiscardHandler)}
	joins := make(chan wire.HostJoin, 1)
	var set []time.Time
	says := strings.Join([]string{
		"", "task", `{"clock":`, `{"clock":"tomorrow"}`, `{"wait":{"reason":"this machine had its task"}}`, strings.Repeat("x", 5000),
		`{"clock":"2026-11-28T05:00:00Z","join":{"machine":"m-2","attempt":3,"token":"old"}}`, `{"clock":"2026-11-28T05:00:00Z","join":{"machine":"m-3","attempt":4,"token":"new"}}`,
		`{"clock":"2026-11-28T05:00:00Z","join":{"machine":"m-4","attempt":0,"token":"none"}}`, `{"join":{"machine":"m-5","attempt":5,"token":"without a time"}}`,
		`{"clock":"2026-11-28T05:00:00.02Z"}`, `{"clock":"2026-11-28T08:00:00.5Z"}`, `{"clock":"2026-11-28T04:59:00Z"}`, `{"clock":"2026-11-28T09:00:00Z"`,
	}, "\r\n")
	fails := errors.New("it may not")
	followHost(t.Context(), c, strings.NewReader(says), func(at time.Time) error {
		set = append(set, at)
		return fails // one that fails does not end it
	}, joins)
	if j := <-joins; j.Machine != "m-3" || j.Attempt != 4 || j.Token != "new" || len(joins) > 0 {
		t.Errorf("%+v", j)
	}
	if len(set) != 2 || !set[0].Equal(now.Add(3*time.Hour+500*time.Millisecond)) || !set[1].Equal(now.Add(-time.Minute)) {
		t.Errorf("%v", set)
	}
}

func FuzzHostLine(f *testing.F) {
	f.Add([]byte(`{"clock":"2026-11-28T05:00:00.02Z"}`))
	f.Add([]byte(`{"clock":"2026-11-28T05:00:00Z","join":{"machine":"m-3","attempt":4,"token":"new","links":[{"mac":"52:00:00:00:00:01","name":"mgmt0","address":"10.0.0.1/32"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, ok := parseHostLine(b); ok == l.Clock.IsZero() || l.Join != nil && (l.Join.Token == "" || l.Join.Attempt < 1) {
			t.Errorf("%q", b)
		}
	})
}
