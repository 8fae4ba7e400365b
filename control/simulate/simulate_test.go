package simulate

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

func job(n int, submit, runtime, walltime time.Duration, nodes int) Job {
	return Job{Number: n, User: fmt.Sprint("u", n), Submit: submit, Nodes: nodes, Runtime: runtime, Walltime: walltime}
}

// A job that fits beside the one that is first in the queue goes before it with backfilling,
// and not by strict order. Ten machines: 1 has eight for ten hours, 2 wants all of them, 3
// wants two for an hour.
func TestBackfilling(t *testing.T) {
	t.Parallel()
	w := Workload{Machines: 10, Jobs: []Job{job(1, 0, 10*time.Hour, 10*time.Hour, 8), job(2, time.Minute, time.Hour, time.Hour, 10), job(3, 2*time.Minute, time.Hour, time.Hour, 2)}}
	second := 10*time.Hour + lead + turn - time.Minute
	third := second + time.Hour + lead + turn - time.Minute
	for policy, want := range map[string][3]time.Duration{"fifo": {0, second, third}, "easy": {0, second, 0}, "muster": {0, second, 0}} {
		r, err := Run(w, policy)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Waits // in the order of length
		if policy == "fifo" && (got[1] != want[1] || got[2] != want[2]) || policy != "fifo" && (got[0] != 0 || got[1] != 0 || got[2] != want[1]) {
			t.Errorf("%s: waits %v, want %v", policy, got, want)
		}
	}
}

// A month of a busy site: no machine is ever anybody's twice, no promise is late, and none
// is moved by anything but a failure; all that was asked runs in the end.
func TestMonth(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		g := Generated{Machines: 40, Requests: 500, Length: 30 * 24 * time.Hour, Seed: seed, Users: 12, Early: 0.15, Extended: 0.05, Promised: 0.15, Pauses: 12, Load: 0.9}
		if seed%2 == 1 {
			g.Failures = 20
		}
		w := Generate(g)
		r := byCalendar(w, func(p *pool) {
			has := map[muster.MachineID]int{}
			for i := range p.jobs {
				if p.jobs[i].phase != running {
					continue
				}
				for _, a := range p.jobs[i].slot.Plan.Assign {
					if other, twice := has[a.Machine]; twice {
						t.Fatalf("seed %d: jobs %d and %d have machine %s at %v", seed, other, i, a.Machine, p.now)
					}
					has[a.Machine] = i
				}
			}
		})
		t.Logf("seed %d: %+v", seed, map[string]any{"use": r.Use, "moved": r.Moved, "pauses": r.Pauses, "extended": r.Extended, "refused": r.Refused, "took": r.Took})
		if r.Late != 0 || r.Unfinished != 0 || r.Moved != r.Told || g.Failures == 0 && r.Moved != 0 || r.Pauses == 0 || r.Promises == 0 || r.Extended == 0 {
			t.Errorf("seed %d: %+v", seed, r)
		}
	}
}

// The year that a site lives through in under two minutes: `go test -run xxx -bench Year`.
func BenchmarkYear(b *testing.B) {
	for b.Loop() {
		w := Generate(Generated{Machines: 1000, Requests: 20_000, Length: 365 * 24 * time.Hour, Seed: 1, Users: 60, Early: 0.15, Extended: 0.05, Promised: 0.1, Failures: 200, Pauses: 300})
		r := byCalendar(w, nil)
		b.Logf("seed 1: use %.3f, %d promises, %d moved and told, %d late, %d pauses, %d extended, %d refused, %d unfinished, %v", r.Use, r.Promises, r.Moved, r.Late, r.Pauses, r.Extended, r.Refused, r.Unfinished, r.Took)
		if r.Late != 0 || r.Unfinished != 0 || r.Moved != r.Told {
			b.Fatalf("%+v", r)
		}
	}
}

const trace = `; MaxProcs: 128
; a comment
1 0 5 3600 8 -1 -1 8 7200 -1 1 3 1 -1 1 -1 -1 -1
2 10 -1 60 -1 -1 -1 65 -1 -1 1 4 1 -1 1 -1 -1 -1
3 20 5 -1 8 -1 -1 8 7200 -1 0 3 1 -1 1 -1 -1 -1
`

// A trace is read: processors become machines, and jobs that never ran are left out.
func TestSWF(t *testing.T) {
	t.Parallel()
	w, err := ReadSWF(strings.NewReader(trace), SWFOptions{CoresPerMachine: 8})
	if err != nil || w.Machines != 16 || len(w.Jobs) != 2 || w.Jobs[0].Nodes != 1 || w.Jobs[1].Nodes != 9 || w.Jobs[0].Walltime != 2*time.Hour || w.Jobs[1].Walltime != time.Minute || len(w.Notes) != 1 {
		t.Errorf("%+v, %v", w, err)
	}
	for _, bad := range []string{"", "1 2 3", "a b c d e f g h i j k l m n o p q r", "; nothing"} {
		if _, err := ReadSWF(strings.NewReader(bad), SWFOptions{}); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzSWF(f *testing.F) {
	f.Add([]byte(trace))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := ReadSWF(bytes.NewReader(b), SWFOptions{Jobs: 20})
		if err == nil && len(w.Jobs) > 0 && w.Machines < 1 {
			t.Errorf("%+v", w)
		}
	})
}
