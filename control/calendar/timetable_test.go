package calendar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/place"
)

func epoch() time.Time { return time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC) }

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func randomMachines(r *rand.Rand, n int) []muster.Machine {
	list := make([]muster.Machine, n)
	for i := range list {
		list[i] = muster.Machine{ID: muster.MachineID(fmt.Sprintf("m%05d", i)), Provider: "metal", Phase: muster.MachineFree,
			Facts: muster.Facts{Class: pick(r, "a", "a", "b"), Rack: pick(r, "r1", "r2", "r3"), Cores: pick(r, 8, 16)}}
	}
	return list
}

func randomNeed(r *rand.Rand, machines int) Need {
	nodes := 1 + r.IntN(6)
	n := Need{ID: muster.ClusterID(fmt.Sprint("c-", r.IntN(1000))), Lead: time.Duration(r.IntN(3)) * time.Hour, Turn: time.Duration(r.IntN(2)) * time.Hour, Spec: muster.Spec{
		Nodes: nodes, Min: pick(r, nodes, nodes, 1), Mixed: r.IntN(2) == 0, Within: pick(r, "", "", "rack"), Placement: pick(r, muster.PlacePack, muster.PlaceAny),
		Head: pick(r, muster.HeadShared, muster.HeadSeparate), Walltime: muster.Duration(time.Duration(r.IntN(8)) * time.Hour),
	}}
	for j := range int32(machines) {
		switch r.IntN(5) {
		case 0:
		case 1:
			if n.Spec.Head == muster.HeadSeparate {
				n.Spare = append(n.Spare, j)
			}
		default:
			n.Compute = append(n.Compute, j)
		}
	}
	if r.IntN(3) == 0 {
		n.After = epoch().Add(time.Duration(r.IntN(30)) * time.Hour)
		if r.IntN(2) == 0 {
			n.Before = n.After.Add(time.Duration(r.IntN(10)) * time.Hour)
		}
	}
	return n
}

// The place that is found is the first of all, by trying every hour: all machines of its
// plan are free for as long as they are needed, and at no hour before is there room.
func TestEarliestIsTheFirst(t *testing.T) {
	t.Parallel()
	found, none := 0, 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 3))
		machines := randomMachines(r, 1+r.IntN(10))
		table := New(epoch(), machines, place.Planner{})
		for _, m := range machines {
			for range r.IntN(4) {
				from := epoch().Add(time.Duration(r.IntN(40)-3) * time.Hour)
				until := from.Add(time.Duration(r.IntN(12)) * time.Hour)
				if r.IntN(12) == 0 {
					until = time.Time{}
				}
				table.Block(m.ID, from, until)
			}
		}
		n := randomNeed(r, len(machines))
		got, ok := table.Earliest(n)
		want, can := bruteForce(table, n)
		if ok != can || ok && !got.Take.Equal(want) {
			t.Fatalf("seed %d: %v %v instead of %v %v\n%+v\n%v", seed, got.Take, ok, want, can, n, table.busy)
		}
		if !ok {
			none++
			continue
		}
		found++
		if !table.Holds(got.Plan, got.Take, got.Give) || len(got.Plan.Assign) < n.Spec.TotalNodes()-n.Spec.Nodes+n.Spec.Min {
			t.Fatalf("seed %d: %+v does not hold", seed, got)
		}
		again, _ := table.Clone().Earliest(n)
		if !slices.Equal(again.Plan.Assign, got.Plan.Assign) {
			t.Fatalf("seed %d: another plan of the same calendar", seed)
		}
		table.Take(got.Plan, got.Take, got.Give)
		for _, a := range got.Plan.Assign {
			if table.Free(a.Machine, got.Take, got.Take.Add(time.Nanosecond)) {
				t.Fatalf("seed %d: taken, and free", seed)
			}
		}
	}
	t.Log(found, none)
	if found < 300 || none < 100 {
		t.Errorf("%d found, %d not", found, none)
	}
}

// bruteForce tries every hour and every end of a span.
func bruteForce(t *Timetable, n Need) (time.Time, bool) {
	low := epoch()
	if a := n.After.Add(-n.Lead); !n.After.IsZero() && a.After(low) {
		low = a
	}
	for at := low; at.Before(epoch().Add(100 * time.Hour)); at = at.Add(time.Hour) {
		if !n.Before.IsZero() && at.Add(n.Lead).After(n.Before) {
			return time.Time{}, false
		}
		s := n.slot(at.UnixNano())
		var compute, spare []*muster.Machine
		for _, j := range n.Compute {
			if t.Free(t.machines[j].ID, s.Take, s.Give) {
				compute = append(compute, &t.machines[j])
			}
		}
		for _, j := range n.Spare {
			if t.Free(t.machines[j].ID, s.Take, s.Give) {
				spare = append(spare, &t.machines[j])
			}
		}
		if t.planner.Capacity(n.Spec, compute, spare) >= max(1, n.Spec.Min) {
			return at, true
		}
	}
	return time.Time{}, false
}

// Fewer nodes, a shorter time and more machines never start later.
func TestRelaxedNeverLater(t *testing.T) {
	t.Parallel()
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 4))
		machines := randomMachines(r, 2+r.IntN(10))
		table := New(epoch(), machines, place.Planner{})
		for _, m := range machines {
			from := epoch().Add(time.Duration(r.IntN(20)) * time.Hour)
			table.Block(m.ID, from, from.Add(time.Duration(r.IntN(12))*time.Hour))
		}
		n := randomNeed(r, len(machines))
		n.Spec.Min, n.Before = n.Spec.Nodes, time.Time{}
		strict, ok := table.EarliestStart(n)
		if !ok {
			continue
		}
		less := n
		switch r.IntN(3) {
		case 0:
			less.Spec.Nodes, less.Spec.Min = 1, 1
		case 1:
			if less.Spec.Walltime == 0 {
				less.Spec.Walltime = muster.Duration(10 * time.Hour)
			} else {
				less.Spec.Walltime /= 2
			}
		case 2:
			less.Spec.Within = ""
		}
		if relaxed, ok := table.EarliestStart(less); !ok || relaxed.After(strict) {
			t.Fatalf("seed %d: %v, %v after %v\n%+v\n%+v", seed, relaxed, ok, strict, n.Spec, less.Spec)
		}
	}
}

func BenchmarkEarliest(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			machines := randomMachines(r, size)
			for i := range machines {
				machines[i].Facts.Rack = fmt.Sprint("r", i/40)
			}
			table := New(epoch(), machines, place.Planner{})
			all := make([]int32, size)
			for i := range all {
				all[i] = int32(i)
			}
			need := func(nodes int) Need {
				return Need{ID: "c-1", Compute: all, Lead: time.Minute, Turn: time.Minute, Spec: muster.Spec{
					Nodes: nodes, Min: nodes, Mixed: true, Head: muster.HeadShared, Placement: muster.PlaceAny, Walltime: muster.Duration(time.Duration(1+r.IntN(48)) * time.Hour)}}
			}
			for range size / 7 {
				n := need(1 + r.IntN(20))
				if s, ok := table.Earliest(n); ok {
					table.Take(s.Plan, s.Take, s.Give)
				}
				if b.Elapsed() > time.Minute {
					break
				}
			}
			n := need(16)
			b.ResetTimer()
			for range b.N {
				if _, ok := table.Earliest(n); !ok {
					b.Fatal("no place")
				}
			}
		})
	}
}
