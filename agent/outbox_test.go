package agent

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Whatever happens between taking and settling, and however many reports are
// lost, the server learns the last state of everything, every stage, and every
// journal line or that it was dropped; and the memory stays bounded.
func TestOutboxProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := newOutbox()
		stages, checks := map[string]bool{}, map[string]wire.Check{}
		var scheduler *wire.SchedulerState
		put := int64(0)
		got := struct {
			stages    map[string]bool
			checks    map[string]wire.Check
			scheduler *wire.SchedulerState
			lines     map[string]bool
			dropped   int64
			facts     bool
		}{stages: map[string]bool{}, checks: map[string]wire.Check{}, lines: map[string]bool{}}
		hear := func(r wire.Report) {
			for _, s := range r.Stages {
				got.stages[s.Name] = true
			}
			for _, c := range r.Checks {
				got.checks[c.Name] = c
			}
			if r.Scheduler != nil {
				got.scheduler = r.Scheduler
			}
			for _, l := range r.Journal {
				got.lines[l.Message] = true
			}
			got.facts = got.facts || r.Facts != nil
			if len(r.Journal) > reportLines {
				t.Fatalf("a report of %d lines", len(r.Journal))
			}
		}
		happen := func() {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				n := rapid.StringMatching("[a-c]").Draw(t, "stage")
				stages[n] = true
				o.stage(n, time.Now())
			case 1:
				c := wire.Check{Name: rapid.StringMatching("[a-c]").Draw(t, "check"), OK: rapid.Bool().Draw(t, "ok")}
				checks[c.Name] = c
				o.check(c)
			case 2:
				s := wire.SchedulerState{Jobs: rapid.IntRange(0, 3).Draw(t, "jobs")}
				scheduler = &s
				o.setScheduler(s)
			case 3:
				for range rapid.IntRange(1, 1500).Draw(t, "lines") {
					put++
					o.line(wire.JournalLine{Message: fmt.Sprint("line ", put)}, fmt.Sprint(put))
				}
			case 4:
				o.setFacts(muster.Facts{})
			}
			if len(o.lines) > maxLines || o.bytes > maxLineBytes || o.bytes < 0 {
				t.Fatalf("%d lines, %d bytes", len(o.lines), o.bytes)
			}
		}
		o.setFacts(muster.Facts{})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			happen()
			if rapid.Bool().Draw(t, "report") {
				r, k := o.take()
				for range rapid.IntRange(0, 3).Draw(t, "meanwhile") {
					happen()
				}
				switch rapid.IntRange(0, 2).Draw(t, "fate") {
				case 0: // never arrived
				case 1: // arrived, the answer was lost
					hear(r)
				case 2:
					hear(r)
					got.dropped += r.Dropped
					o.settle(k)
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "again") == 0 {
				o.again()
			}
		}
		for range 100 {
			r, k := o.take()
			hear(r)
			got.dropped += r.Dropped
			o.settle(k)
			if !k.more {
				break
			}
		}
		if len(o.lines) != 0 || o.bytes != 0 {
			t.Fatalf("left: %d lines, %d bytes", len(o.lines), o.bytes)
		}
		if len(got.stages) != len(stages) || fmt.Sprint(got.checks) != fmt.Sprint(checks) || !got.facts {
			t.Fatalf("stages %v of %v, checks %v of %v", got.stages, stages, got.checks, checks)
		}
		if scheduler != nil && fmt.Sprint(*got.scheduler) != fmt.Sprint(*scheduler) {
			t.Fatalf("scheduler %v, not %v", got.scheduler, scheduler)
		}
		if int64(len(got.lines))+got.dropped < put {
			t.Fatalf("%d lines heard, %d dropped, of %d", len(got.lines), got.dropped, put)
		}
		r, _ := o.take()
		if len(r.Stages)+len(r.Checks)+len(r.Journal) != 0 || r.Facts != nil || r.Scheduler != nil || r.Dropped != 0 {
			t.Fatalf("said again: %+v", r)
		}
	})
}

func TestCredentialSurvivesDamage(t *testing.T) {
	t.Parallel()
	c, err := newCredential()
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.marshal()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if back, err := parseCredential(b, now); err != nil || !back.key.Equal(c.key) || back.cert != nil {
		t.Errorf("%v", err)
	}
	for i := range b {
		bad := append([]byte(nil), b...)
		bad[i] ^= 0x20
		_, _ = parseCredential(bad, now) // must not panic
	}
	if _, err := parseCredential(b[:40], now); muster.CodeOf(err) != muster.ECorrupt {
		t.Errorf("half a file: %v", err)
	}
}
