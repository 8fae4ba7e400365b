package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
)

// A Counter always says what Capacity says of the same machines.
func TestCounter(t *testing.T) {
	t.Parallel()
	pick := func(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7))
		machines := make([]muster.Machine, 1+r.IntN(30))
		for i := range machines {
			machines[i] = muster.Machine{ID: muster.MachineID(fmt.Sprintf("m%02d", i)), Provider: pick(r, "metal", "local"),
				Facts: muster.Facts{Class: pick(r, "a", "b"), Rack: pick(r, "r1", "r2", "r3"), Service: r.IntN(5) == 0}}
			if f := &machines[i].Facts; seed >= 300 && r.IntN(3) > 0 {
				f.Set = pick(r, "dense", "spread")
				f.Class = f.Set + pick(r, "", "-2")
			}
		}
		p := Planner{}
		spec := muster.Spec{Nodes: 1 + r.IntN(12), Min: 1, Mixed: r.IntN(2) == 0, Within: pick(r, "", "rack"), Logins: r.IntN(3)}
		spec.Head = muster.HeadShared
		if r.IntN(2) == 0 {
			spec.Head = muster.HeadSeparate
		}
		g := p.Grouping(machines, spec.Mixed, spec.Within)
		c := NewCounter(g, spec)
		in := map[int32]bool{} // true: as a node
		for range 80 {
			j := int32(r.IntN(len(machines)))
			if node, is := in[j]; is {
				c.Remove(j, node)
				delete(in, j)
			} else {
				node := r.IntN(3) > 0 || auxiliary(spec) == 0
				c.Add(j, node)
				in[j] = node
			}
			var compute, spare []*muster.Machine
			for j, node := range in {
				if node {
					compute = append(compute, &machines[j])
				} else {
					spare = append(spare, &machines[j])
				}
			}
			slices.SortFunc(compute, byRackThenID)
			if got, want := c.Capacity(), p.Capacity(spec, compute, spare); got != want {
				t.Fatalf("seed %d: %d instead of %d, %+v", seed, got, want, spec)
			}
		}
	}
}
