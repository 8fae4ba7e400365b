package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
)

// A site of 10,000 machines: 8 spines of 25 leaves of 50 machines. The uplink of a leaf
// carries a quarter of what its machines send, that of every fourth leaf a tenth. Half of
// the machines are in use, in a way that clusters left behind: by stretches.
func benchSite() (*Tree, []muster.MachineID) {
	t := &muster.SiteTree{Stands: []muster.Stand{{Name: "dc", Kind: muster.StandDataCentre}}}
	var machines []muster.Machine
	for s := range 8 {
		spine := fmt.Sprintf("spine%d", s)
		t.Stands = append(t.Stands, muster.Stand{Name: spine, Kind: muster.StandSpine, In: "dc", Uplink: 3200e9, Cables: 8})
		for l := range 25 {
			leaf := muster.Stand{Name: fmt.Sprintf("leaf%d-%02d", s, l), Kind: muster.StandLeaf, In: spine, Uplink: 320e9, Link: 25e9}
			if l%4 == 0 {
				leaf.Uplink = 120e9
			}
			first := len(machines)
			for range 50 {
				machines = append(machines, muster.Machine{ID: muster.MachineID(fmt.Sprintf("n%05d", len(machines)))})
			}
			leaf.Machines = fmt.Sprintf("n[%05d-%05d]", first, len(machines)-1)
			t.Stands = append(t.Stands, leaf)
		}
	}
	r := rand.New(rand.NewPCG(3, 14))
	used := map[int]bool{}
	for len(used) < 5000 {
		at := r.IntN(10_000)
		for i := range 1 + r.IntN(40) {
			used[(at+i)%10_000] = true
		}
	}
	var free []muster.MachineID
	for i := range machines {
		if !used[i] {
			free = append(free, machines[i].ID)
		}
	}
	return New(t, machines), free
}

// firstFit takes the first machines in the order of their names.
func firstFit(_ *Tree, free []muster.MachineID, n int) []muster.MachineID { return free[:n] }

// slurmRule is what Slurm's topology/tree does with whole nodes: of the lowest switches that
// have enough free nodes the one with the fewest; in it, leaf by leaf, the smallest leaf
// that has the rest, else the largest.
func slurmRule(k *Tree, free []muster.MachineID, n int) []muster.MachineID {
	all := k.sums(free)
	top := 0
	for v := range k.Stands {
		if all[v] >= n && (k.Stands[v].Depth > k.Stands[top].Depth || k.Stands[v].Depth == k.Stands[top].Depth && all[v] < all[top]) {
			top = v
		}
	}
	at := map[int][]muster.MachineID{}
	for _, id := range free {
		if k.inside(k.At(id), top) || top == 0 {
			at[k.At(id)] = append(at[k.At(id)], id)
		}
	}
	leaves := sortedKeys(at)
	var out []muster.MachineID
	for len(out) < n {
		need := n - len(out)
		best := slices.MinFunc(leaves, func(a, b int) int {
			x, y := len(at[a]), len(at[b])
			switch {
			case x >= need && y >= need:
				return x - y
			case x >= need || y >= need || x != y:
				return y - x
			}
			return a - b
		})
		list := at[best]
		out = append(out, list[:min(need, len(list))]...)
		leaves = slices.DeleteFunc(leaves, func(v int) bool { return v == best })
	}
	return out
}

func rules() []struct {
	name string
	do   func(*Tree, []muster.MachineID, int) []muster.MachineID
} {
	return []struct {
		name string
		do   func(*Tree, []muster.MachineID, int) []muster.MachineID
	}{
		{"knapsack", func(k *Tree, free []muster.MachineID, n int) []muster.MachineID { return k.Pack(k.Sorted(free), n, 1) }},
		{"slurm-tree", slurmRule},
		{"first-fit", firstFit},
	}
}

// The knapsack never costs more than Slurm's rule, nor than taking what comes first.
func TestPackBeatsOthers(t *testing.T) {
	t.Parallel()
	k, free := benchSite()
	for _, n := range []int{16, 100, 256, 700} {
		var costs []float64
		for _, r := range rules() {
			got := r.do(k, free, n)
			if len(got) != n || len(slices.Compact(slices.Sorted(slices.Values(got)))) != n {
				t.Fatalf("%s: %d of %d", r.name, len(got), n)
			}
			costs = append(costs, k.Cost(got))
		}
		if costs[0] > costs[1]*(1+1e-9) || costs[0] > costs[2]*(1+1e-9) {
			t.Errorf("%d: %v", n, costs)
		}
	}
}

func BenchmarkPack(b *testing.B) {
	k, free := benchSite()
	for _, n := range []int{16, 100, 256, 700} {
		for _, r := range rules() {
			b.Run(fmt.Sprintf("%d-of-10000/%s", n, r.name), func(b *testing.B) {
				var got []muster.MachineID
				for b.Loop() {
					got = r.do(k, free, n)
				}
				d := k.Distance(got, 0)
				b.ReportMetric(d.Cost, "cost")
				b.ReportMetric(d.Mean, "switches")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms")
			})
		}
	}
}
