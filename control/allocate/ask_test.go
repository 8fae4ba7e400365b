package allocate

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/place"
)

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func randomMachine(r *rand.Rand, i int, now time.Time) muster.Machine {
	m := muster.Machine{
		ID: muster.MachineID(fmt.Sprintf("m%02d", i)), Provider: pick(r, "metal", "metal", "local"),
		Phase:    pick(r, muster.MachineFree, muster.MachineFree, muster.MachineFree, muster.MachineActive, muster.MachineCleaning, muster.MachineSuspect, muster.MachineMaintenance, muster.MachineAllocated),
		LastSeen: now.Add(-time.Duration(r.IntN(80)) * time.Second),
		Facts: muster.Facts{
			Architecture: pick(r, "amd64", "amd64", "amd64", "arm64"), CPULevel: pick(r, 2, 3, 4), Cores: pick(r, 2, 4, 8),
			Memory: int64(pick(r, 4, 8, 16)) << 30, Class: pick(r, "a", "b"), Rack: pick(r, "r1", "r2", "r3"), Service: r.IntN(8) == 0,
		},
	}
	if m.Phase.Held() {
		m.Cluster, m.Node = pick[muster.ClusterID](r, "c-1", "c-2"), "n01"
	}
	if r.IntN(10) == 0 {
		m.Intent = muster.IntentDrain
	}
	return m
}

func randomSpec(r *rand.Rand) muster.Spec {
	n := 1 + r.IntN(6)
	s := muster.Spec{
		Name: "x", Nodes: n, Min: pick(r, n, n, 1), Logins: pick(r, 0, 0, 1), Head: pick(r, muster.HeadShared, muster.HeadSeparate), Mixed: r.IntN(4) == 0, Queue: r.IntN(2) == 0,
		Placement: pick(r, muster.PlaceAny, muster.PlacePack, muster.PlaceSpread), Within: pick(r, "", "", "rack"), Egress: pick(r, muster.EgressNone, muster.EgressProxy),
	}
	if r.IntN(3) == 0 {
		s.Machine.Class = pick(r, "a", "b", "?*")
	}
	if r.IntN(3) == 0 {
		s.Machine.Cores = muster.Quantity{Op: muster.AtLeast, Value: 4}
	}
	return s
}

// What each purpose asks of admission, on random sites.
func TestAsk(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	img := &muster.Image{Name: "hpc", Architecture: "amd64"}
	verdicts := map[muster.Verdict]int{}
	for seed := range uint64(2_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		snap := admit.Snapshot{Now: now, Silence: pick(r, 0, time.Minute)}
		for i := range r.IntN(20) {
			m := randomMachine(r, i, now)
			snap.Machines = append(snap.Machines, m)
			if r.IntN(20) == 0 {
				snap.ReservedForRepair = map[muster.MachineID]bool{m.ID: true}
			}
		}
		whole := slices.Clone(snap.Machines)
		site := func() *Site {
			s := &Site{snap: snap}
			s.binding = s.timetable(nil)
			s.snap.Times = s.binding
			return s
		}
		check := func(what string, got, want muster.Answer) {
			verdicts[got.Verdict]++
			got.StartAt = time.Time{} // only the calendar knows it
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %s:\n%+v\ninstead of\n%+v", seed, what, got, want)
			}
		}
		spec := randomSpec(r)
		create := Demand{Cluster: "c-9", Purpose: Create, Spec: spec, Image: img}
		check("create", site().Ask(create), admit.Answer("c-9", spec, img, snap, place.Planner{}))

		// A change of size: compute nodes, then login nodes of what is left.
		c := muster.Cluster{ID: "c-1", Class: "a", Spec: randomSpec(r)}
		var near []muster.Machine
		for _, m := range snap.Machines {
			if m.Cluster == c.ID {
				near = append(near, m)
			}
		}
		before := snap
		before.Machines = slices.DeleteFunc(slices.Clone(snap.Machines), func(m muster.Machine) bool { return m.Cluster == c.ID })
		demands := []Demand{
			{Cluster: c.ID, Purpose: Scale, Image: img, Near: near, Role: muster.RoleCompute, Spec: admit.MoreNodes(c, near, 1+r.IntN(4), r.IntN(2) == 0)},
			{Cluster: c.ID, Purpose: Scale, Image: img, Near: near, Role: muster.RoleLogin, Spec: admit.MoreLogins(c, near, 1, false)},
		}
		got := site().AskAll(demands)
		for i, d := range demands {
			before.Kept = kept(place.Planner{}, snap.Machines, d)
			want := admit.Answer(c.ID, d.Spec, img, before, place.ScaleOut{Near: near, Logins: d.Role == muster.RoleLogin})
			if i == 1 && got[0].Verdict != muster.VerdictNow {
				break // the change was refused before this was asked
			}
			if i == 1 {
				for j := range before.Machines {
					if slices.ContainsFunc(got[0].Plan.Assign, func(a muster.Assignment) bool { return a.Machine == before.Machines[j].ID }) {
						before.Machines[j].Phase, before.Machines[j].Cluster = muster.MachineAllocated, c.ID
					}
				}
				want = admit.Answer(c.ID, d.Spec, img, before, place.ScaleOut{Near: near, Logins: true})
			}
			check("scale "+string(d.Role), got[i], want)
		}

		// A benchmark of some machines.
		var only []muster.MachineID
		chosen := snap
		chosen.Machines = nil
		for _, m := range snap.Machines {
			if r.IntN(2) == 0 {
				only = append(only, m.ID)
				chosen.Machines = append(chosen.Machines, m)
			}
		}
		check("benchmark", site().Ask(Demand{Cluster: "c-9", Purpose: Benchmark, Spec: spec, Image: img, Only: only}), admit.Answer("c-9", spec, img, chosen, place.Planner{}))
		if !reflect.DeepEqual(whole, snap.Machines) {
			t.Fatalf("seed %d: asking changed the site", seed)
		}
	}
	t.Log(verdicts)
	for _, v := range []muster.Verdict{muster.VerdictNow, muster.VerdictQueued, muster.VerdictNever} {
		if verdicts[v] < 100 {
			t.Errorf("%s was answered %d times only", v, verdicts[v])
		}
	}
}
