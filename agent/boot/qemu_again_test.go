package boot_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// startedAgain: a machine that has become its image is started again by its user. Its memory is
// gone, so the program that comes then has another key: it waits, is given nothing of the
// order that was another program's, and becomes what the next order says.
func (l *lab) startedAgain(t *testing.T) {
	s := newSite(t, l, "b-again-0001")
	s.hold = &wire.BootWait{Reason: "this machine was started again", Next: muster.Duration(300 * time.Millisecond)}
	s.order.Files = append(s.order.Files, wire.File{Path: "/etc/restart", Mode: 0o644})
	m := l.start(t, s, s.ca, "-action", "reboot=reset")
	l.becomes(t, s)

	s.mu.Lock()
	first, orders, gets, hellos := slices.Clone(s.boot.Key), s.orders, len(s.gets), len(s.heard)
	s.mu.Unlock()
	m.prints(t, "check-in: waiting: this machine was started again", 5*time.Minute)
	// It asks again and again, and nothing comes of it.
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		s.mu.Lock()
		n := len(s.again)
		s.mu.Unlock()
		if n >= 3 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it asked %d times since it was started again", n)
		}
	}
	s.mu.Lock()
	second := slices.Clone(s.again[0].Key)
	if slices.Equal(first, second) {
		t.Error("the new program has the key of the old one: the task is bound to nothing")
	}
	if s.orders != orders || len(s.gets) != gets || len(s.heard) != hellos {
		t.Errorf("since then %d orders, %d pieces of the image and %d words of a believed program", s.orders-orders, len(s.gets)-gets, len(s.heard)-hellos)
	}
	// The site decides: another attempt, with another seed, for the program that waits.
	next := *s.order
	seed := *next.Bootstrap
	seed.Token, seed.Attempt, next.Attempt, next.Bootstrap, next.Files = "another-token", 4, 4, &seed, nil
	s.order, s.boot.Key = &next, nil
	s.mu.Unlock()
	select {
	case f := <-l.report:
		var got wire.Bootstrap
		if err := json.Unmarshal([]byte(f.Seed), &got); err != nil || got.Token != "another-token" || got.Attempt != 4 {
			t.Errorf("it became attempt %d with %q: %v", got.Attempt, got.Token, err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("the image's init does not report")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.boot.Key, second) {
		t.Error("the next order went to another program than the one that waited")
	}
}
