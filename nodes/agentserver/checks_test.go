package agentserver

import (
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// A report names the checks that changed: what was told of others stays.
func TestMergeChecks(t *testing.T) {
	t.Parallel()
	known := []wire.Check{{Name: "configuration", Text: "a part"}, {Name: "sshd", OK: true}}
	got := mergeChecks(known, []wire.Check{{Name: "sshd", Text: "away"}, {Name: "home", OK: true}})
	want := []wire.Check{{Name: "configuration", Text: "a part"}, {Name: "sshd", Text: "away"}, {Name: "home", OK: true}}
	if !slices.Equal(got, want) || !known[1].OK {
		t.Errorf("%+v, %+v", got, known)
	}
	for range 3 * maxChecks {
		got = mergeChecks(got, []wire.Check{{Name: string(rune('a' + len(got)))}})
	}
	if len(got) > maxChecks {
		t.Errorf("%d checks", len(got))
	}
}

// A pause and a walltime's end wait for the head's word that its jobs have ended: it wakes
// the converger, as what changes in the queue alone does not.
func TestEndedJobsAreNews(t *testing.T) {
	t.Parallel()
	p := newPresence()
	id := pki.NodeIdentity{Cluster: "c-1", Node: "n01", Machine: "m-1", Attempt: 1}
	now := time.Now()
	say := func(s wire.SchedulerState) bool {
		news, _ := p.heard(id, wire.Report{Attempt: 1, State: "ready", Scheduler: &s}, now, time.Second)
		return news
	}
	say(wire.SchedulerState{Up: true, Jobs: 1})
	if say(wire.SchedulerState{Up: true, Jobs: 2}) {
		t.Error("another job is news")
	}
	if !say(wire.SchedulerState{Up: true, Ended: true}) {
		t.Error("that its jobs have ended is no news")
	}
	if !say(wire.SchedulerState{Up: true}) {
		t.Error("that jobs start again is no news")
	}
}
