package topology

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
)

// randomTree is a tree of up to 16 machines, of which some are free.
func randomTree(r *rand.Rand) (*Tree, []muster.MachineID) {
	rates := []int64{0, 1e9, 1e9, 2e9, 10e9, 25e9, 100e9}
	pick := func() int64 { return rates[r.IntN(len(rates))] }
	var t muster.SiteTree
	add := func(name string, kind muster.StandKind, in string) {
		t.Stands = append(t.Stands, muster.Stand{Name: name, Kind: kind, In: in, Uplink: pick(), Link: pick()})
	}
	var places []int // stands that machines may stand in
	for d := range 1 + r.IntN(2) {
		dc := fmt.Sprintf("dc%d", d)
		add(dc, muster.StandDataCentre, "")
		for s := range 1 + r.IntN(3) {
			spine := fmt.Sprintf("%s-s%d", dc, s)
			add(spine, muster.StandSpine, dc)
			for l := range 1 + r.IntN(3) {
				leaf := fmt.Sprintf("%s-l%d", spine, l)
				add(leaf, muster.StandLeaf, spine)
				places = append(places, len(t.Stands)-1)
				for c := range r.IntN(3) {
					add(fmt.Sprintf("%s-c%d", leaf, c), muster.StandChassis, leaf)
					places = append(places, len(t.Stands)-1)
				}
			}
		}
	}
	var machines []muster.Machine
	var free []muster.MachineID
	for i := range 2 + r.IntN(15) {
		id := muster.MachineID(fmt.Sprintf("m%02d", i))
		s := &t.Stands[places[r.IntN(len(places))]]
		if s.Machines != "" {
			s.Machines += ","
		}
		s.Machines += string(id)
		m := muster.Machine{ID: id}
		if r.IntN(3) == 0 {
			m.Facts.NICs = []muster.NIC{{Use: muster.UseMessage, Speed: pick()}}
		}
		machines = append(machines, m)
		if r.IntN(5) > 0 {
			free = append(free, id)
		}
	}
	return New(&t, machines), free
}

// The knapsack costs what the best of all choices costs.
func TestPackIsExact(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 26))
		tree, free := randomTree(r)
		var have []muster.MachineID
		if seed%2 == 1 && len(free) > 2 {
			have, free = free[:2], free[2:]
		}
		n := 1 + r.IntN(len(free)+1)
		sorted := tree.Sorted(free)
		if have != nil {
			sorted = sorted.Beside(tree, have)
		}
		got := tree.Pack(sorted, n, seed)
		if n > len(free) {
			if got != nil {
				t.Fatalf("seed %d: %d of %d", seed, len(got), n)
			}
			continue
		}
		if len(got) != n || len(slices.Compact(slices.Sorted(slices.Values(got)))) != n {
			t.Fatalf("seed %d: %v for %d", seed, got, n)
		}
		least := math.Inf(1)
		choice := make([]muster.MachineID, 0, n+2)
		for set := range uint32(1) << len(free) {
			if bits.OnesCount32(set) != n {
				continue
			}
			choice = choice[:0]
			for i, id := range free {
				if set&(1<<i) != 0 {
					choice = append(choice, id)
				}
			}
			least = min(least, tree.Cost(append(choice, have...)))
		}
		if cost := tree.Cost(append(got, have...)); math.Abs(cost-least) > 1e-9*least {
			t.Fatalf("seed %d: %v of %v beside %v costs %v, the least is %v", seed, got, free, have, cost, least)
		}
	}
}

// Cost is what is written of it, link by link.
func TestCost(t *testing.T) {
	t.Parallel()
	tree := New(&muster.SiteTree{Stands: []muster.Stand{
		{Name: "s", Kind: muster.StandSpine},
		{Name: "a", Kind: muster.StandLeaf, In: "s", Uplink: 4e9, Cables: 4, Link: 1e9, Machines: "m[1-3]"},
		{Name: "b", Kind: muster.StandLeaf, In: "s", Uplink: 2e9, Link: 10e9, Machines: "m[4-5]"},
	}}, machines(5))
	// a: 2*1/4; b: 1*2/2; s, through which nothing leaves: 0; machines: 2*(1*2/1) + 1*2/10.
	if got, want := tree.Cost([]muster.MachineID{"m1", "m2", "m4"}), 0.5+1+4+0.2; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, not %v", got, want)
	}
	d := tree.Distance([]muster.MachineID{"m1", "m2", "m4"}, 1)
	if d.Switches != 3 || math.Abs(d.Mean-7.0/3) > 1e-12 || len(d.Uplinks) != 2 || d.Unknown != 0 || d.Least != 1 {
		t.Errorf("%+v", d)
	}
	if u := d.Uplinks[0]; u.Share != 2e9 || d.Uplinks[1].Share != 2e9 || u.Stand != "a" || u.Nodes != 2 {
		t.Errorf("%+v", d.Uplinks)
	}
}

func machines(n int) []muster.Machine {
	var out []muster.Machine
	for i := range n {
		out = append(out, muster.Machine{ID: muster.MachineID(fmt.Sprintf("m%d", i+1))})
	}
	return out
}

// Leaves stay whole where that costs nothing, and what is touched is filled best.
func TestPackKeepsLeavesWhole(t *testing.T) {
	t.Parallel()
	var all []muster.MachineID
	for _, m := range machines(20) {
		all = append(all, m.ID)
	}
	tree := New(&muster.SiteTree{Stands: []muster.Stand{
		{Name: "whole", Kind: muster.StandLeaf, Link: 1e9, Machines: "m[1-4]"},
		{Name: "part", Kind: muster.StandLeaf, Link: 1e9, Machines: "m[5-12]"},
		{Name: "larger", Kind: muster.StandLeaf, Link: 1e9, Machines: "m[13-20]"},
	}}, machines(20))
	free := slices.DeleteFunc(slices.Clone(all), func(id muster.MachineID) bool { return id == "m5" || id == "m6" || id == "m13" })
	for n, want := range map[int]string{2: "part", 4: "part", 6: "part", 7: "larger"} {
		for salt := range uint64(20) {
			got := tree.Pack(tree.Sorted(free), n, salt)
			for _, id := range got {
				if at := tree.Location(id)[0]; at != want {
					t.Errorf("%d with salt %d: %s in %s, not in %s", n, salt, id, at, want)
				}
			}
		}
	}
	seen := map[string]bool{}
	for salt := range uint64(50) {
		seen[tree.Location(tree.Pack(tree.Sorted(all[4:]), 3, salt)[0])[0]] = true
	}
	if len(seen) != 2 {
		t.Errorf("of two leaves that are alike, salt chose among %v", seen)
	}
}

// Spread takes as many from each as from the others.
func TestSpread(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		tree, free := randomTree(r)
		n := 1 + r.IntN(len(free)+1)
		got := tree.Spread(tree.Sorted(free), n, seed)
		if n > len(free) {
			if got != nil {
				t.Fatal(got)
			}
			continue
		}
		if len(got) != n || len(slices.Compact(slices.Sorted(slices.Values(got)))) != n {
			t.Fatalf("seed %d: %v for %d", seed, got, n)
		}
		// Of stands side by side, one has more than one machine more than another only
		// where the other has no more.
		has, room := tree.sums(got), tree.sums(free)
		for a := 1; a < len(has); a++ {
			for b := 1; b < len(has); b++ {
				if tree.Stands[a].Parent == tree.Stands[b].Parent && has[a] > has[b]+1 && has[b] < room[b] {
					t.Fatalf("seed %d: %d in %s, %d in %s, which has %d", seed, has[a], tree.Stands[a].Name, has[b], tree.Stands[b].Name, room[b])
				}
			}
		}
	}
}
