package control

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// complete names what something that waits lacks.
func complete(deadline time.Time, next string, eta time.Time, unknown string) []string {
	var lacks []string
	if deadline.IsZero() {
		lacks = append(lacks, "a deadline")
	}
	if next == "" {
		lacks = append(lacks, "a next step")
	}
	if eta.IsZero() == (unknown == "") {
		lacks = append(lacks, "either an ETA or why there is none")
	}
	return lacks
}

// waitingRecord is a cluster of a phase, as it is recorded.
func waitingRecord(p muster.ClusterPhase, now time.Time) muster.Cluster {
	c := muster.Cluster{ID: "c-1", Name: "cfd", Phase: p, Created: now, PhaseSince: now}
	switch p {
	case muster.ClusterReserved:
		c.Promise = &muster.Promise{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour), Lead: muster.Duration(time.Minute)}
	case muster.ClusterPausing, muster.ClusterPaused, muster.ClusterFrozen:
		c.Pause = &muster.Pause{By: "alice", Asked: now, Stopped: now}
	}
	return c
}

// Every phase in which something is waited for has a deadline, a next step and an ETA, or a
// word on why nobody knows it.
func TestPhasesHaveDeadlines(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	s := New(Config{})
	notWaiting := map[muster.ClusterPhase]string{
		muster.ClusterReady: "people use it", muster.ClusterFailed: "its people decide", muster.ClusterDeleted: "it is over",
	}
	for _, p := range muster.ClusterPhases() {
		for _, known := range []bool{false, true} {
			c := waitingRecord(p, now)
			out := wire.Cluster{}
			if known {
				out.StartAt, out.ETA = now.Add(time.Hour), now.Add(time.Minute)
			}
			s.deadlines(&out, c)
			lacks := complete(out.Deadline, out.Next, out.ETA, out.ETAUnknown)
			if why, is := notWaiting[p]; is {
				if out.Next != "" {
					t.Errorf("%s: %s, and then %q", p, why, out.Next)
				}
			} else if len(lacks) > 0 {
				t.Errorf("%s (start known: %v) lacks %s", p, known, strings.Join(lacks, ", "))
			}
		}
	}
	resuming := waitingRecord(muster.ClusterPaused, now.Add(-29*24*time.Hour))
	resuming.Pause.Resume = now
	if end := pausedUntil(resuming, *s.policy.Load()); end.Before(now.Add(20 * 24 * time.Hour)) {
		t.Errorf("a cluster that waits to come back is deleted at %s", end)
	}
}

// conditionCodes are all that the dictionary has.
func conditionCodes(t *testing.T) map[string]muster.ConditionCode {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../condition.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]muster.ConditionCode{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "ConditionCode" {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out[v.Names[0].Name] = muster.ConditionCode(text)
		}
		return true
	})
	return out
}

// Every condition either waits for something, and then has all that, or is on the list of
// those that do not, with the reason.
func TestConditionsHaveDeadlines(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	s := New(Config{})
	const state, told = "says what is so", "goes with what it comments on"
	notWaiting := map[muster.ConditionCode]string{
		muster.ConditionLate: told, muster.ConditionShort: state, muster.ConditionNotMeasured: state, muster.ConditionSlow: state,
		muster.ConditionScaleFailed: state, muster.ConditionMassSilence: state, muster.ConditionNotInScheduler: state, muster.ConditionDrained: state,
		muster.ConditionWalltime: "its ETA is the end", muster.ConditionHeld: told, muster.ConditionBootFailed: told, muster.ConditionReplaced: told,
		muster.ConditionLost: told, muster.ConditionSilent: told, muster.ConditionUnhealthy: state, muster.ConditionUnfit: state,
		muster.ConditionNotApplied: state, muster.ConditionAnew: state, muster.ConditionElsewhere: state,
		// Of machines: administrators see phases with their histories.
		muster.ConditionNotAnswering: state, muster.ConditionStillFound: state, muster.ConditionStuck: state, muster.ConditionCleanFailed: state,
		muster.ConditionSuspect: state, muster.ConditionCannotTest: state, muster.ConditionTestFailed: state, muster.ConditionQuarantined: state,
		muster.ConditionFailedUnderTenants: state, muster.ConditionDoubtful: state, muster.ConditionCommonCause: state, muster.ConditionDisturbed: state,
		muster.ConditionHardwareChanged: state, muster.ConditionTPMChanged: state, muster.ConditionManualFenceRequired: "somebody has to do something",
	}
	in := map[muster.ConditionCode]muster.ClusterPhase{ // where they are not of every phase
		muster.ConditionWaitingForMachines: muster.ClusterQueued, muster.ConditionWaitingForMissingMachines: muster.ClusterQueued,
		muster.ConditionOverLimit: muster.ClusterQueued, muster.ConditionCannotBeServed: muster.ClusterQueued,
		muster.ConditionPromiseLate: muster.ClusterReserved, muster.ConditionPausing: muster.ClusterPausing,
		muster.ConditionResuming: muster.ClusterPaused, muster.ConditionPauseEnds: muster.ClusterPaused,
	}
	codes := conditionCodes(t)
	if len(codes) < 50 {
		t.Fatalf("%d conditions", len(codes))
	}
	for name, code := range codes {
		_, waits := code.Waiting()
		if _, not := notWaiting[code]; not == waits {
			t.Errorf("%s: give it a deadline in ConditionCode.Waiting, or a reason here why it waits for nothing", name)
		}
		if !waits {
			continue
		}
		phase, special := in[code]
		if !special {
			phase = muster.ClusterReady
		}
		c := waitingRecord(phase, now)
		c.Conditions = []muster.Condition{{Code: code, Text: "x", Since: now}}
		out := wire.Cluster{}
		s.deadlines(&out, c)
		d := out.Conditions[0]
		if lacks := complete(d.Deadline, d.Next, d.ETA, d.ETAUnknown); len(lacks) > 0 {
			t.Errorf("%s lacks %s: %+v", name, strings.Join(lacks, ", "), d)
		}
		if c.Conditions[0].Next != "" {
			t.Errorf("%s: the record was changed", name)
		}
	}
}
