package topology

import (
	"cmp"
	"math"
	"slices"

	"github.com/muster-hpc/muster"
)

// Free are machines that can be chosen, by stand, in each the best one first.
type Free struct {
	at [][]muster.MachineID
	n  int
	// have counts the machines below each stand that are chosen already; nil: none.
	have  []int
	haves int
}

// Beside says which machines are chosen already: what is packed shall be near to them.
func (f Free) Beside(k *Tree, have []muster.MachineID) Free {
	f.have, f.haves = k.sums(have), len(have)
	return f
}

// of is how many are chosen already below a stand.
func (f Free) of(v int) int {
	if f.have == nil {
		return 0
	}
	return f.have[v]
}

// Sorted puts machines, the best first, where they stand. Those with faster links come
// before others: they cost less.
func (k *Tree) Sorted(machines []muster.MachineID) Free {
	f := Free{at: make([][]muster.MachineID, len(k.Stands)), n: len(machines)}
	for _, id := range machines {
		v := k.at[id]
		f.at[v] = append(f.at[v], id)
	}
	for _, list := range f.at {
		slices.SortStableFunc(list, func(a, b muster.MachineID) int { return cmp.Compare(k.Link(b), k.Link(a)) })
	}
	return f
}

// weight is what a choice below a stand costs. Cost comes first; then how many leaves are
// touched of which all machines were free; then how many machines are left over in what
// is touched.
type weight struct {
	cost        int64
	whole, left int32
}

func (a weight) less(b weight) bool {
	if a.cost != b.cost {
		return a.cost < b.cost
	}
	if a.whole != b.whole {
		return a.whole < b.whole
	}
	return a.left < b.left
}

func (a weight) plus(b weight) weight {
	return weight{a.cost + b.cost, a.whole + b.whole, a.left + b.left}
}

// Pack chooses n of the machines so that communication costs least: see Cost. Of choices
// that cost the same it takes the one that leaves most leaves whole, then the one that
// fills what it touches best; then salt decides. It returns nil where there are fewer.
//
// It is a knapsack on the tree: for each stand, the least cost of any number of machines
// below it, from those of the stands in it. Each pair of machines meets in one stand, so
// that it takes at most n times as many steps as there are machines.
func (k *Tree) Pack(free Free, n int, salt uint64) []muster.MachineID {
	if n <= 0 || n > free.n {
		return nil
	}
	p := packer{k: k, free: free, n: n, total: n + free.haves, best: make([][]weight, len(k.Stands)), from: make([][]int32, len(k.Stands))}
	p.scale()
	p.arrange(salt)
	for v := len(k.Stands) - 1; v >= 0; v-- {
		p.stand(v)
	}
	out := make([]muster.MachineID, 0, n)
	return p.take(out, 0, n)
}

type packer struct {
	k    *Tree
	free Free
	n    int
	// total is how many machines there are then, with those that are chosen already.
	total int
	unit  float64 // of costs: they are whole numbers, so that equal ones are equal
	// children are the stands in each with free machines, in the order in which best was
	// made of them; all counts the free machines below each.
	children [][]int
	all      []int
	best     [][]weight // by stand and number of machines
	// from is, by stand and number of machines in it and in those before it among its
	// parent's, how many of these are in it.
	from [][]int32
}

// scale makes costs as large as can be.
func (p *packer) scale() {
	half := float64(p.total) / 2
	sum := 0.0
	for v := range p.k.Stands {
		if v > 0 {
			sum += half * half / float64(p.k.Stands[v].capacity())
		}
		for _, id := range p.free.at[v] {
			sum += float64(p.total) / float64(p.k.Link(id))
		}
	}
	p.unit = 1
	if sum > 0 {
		p.unit = math.Exp2(math.Floor(math.Log2(math.Exp2(60) / sum)))
	}
}

func (p *packer) price(capacity int64) int64 { return int64(p.unit / float64(capacity)) }

// arrange counts, and puts stands in the order that the salt has for them.
func (p *packer) arrange(salt uint64) {
	p.children, p.all = make([][]int, len(p.k.Stands)), make([]int, len(p.k.Stands))
	for v := len(p.k.Stands) - 1; v >= 0; v-- {
		p.all[v] += len(p.free.at[v])
		s := &p.k.Stands[v]
		if v > 0 && p.all[v] > 0 {
			p.all[s.Parent] += p.all[v]
			p.children[s.Parent] = append(p.children[s.Parent], v)
		}
		slices.SortFunc(p.children[v], func(a, b int) int {
			x, y := p.k.Stands[a].Name, p.k.Stands[b].Name
			return cmp.Or(cmp.Compare(scramble(salt, x), scramble(salt, y)), cmp.Compare(x, y))
		})
	}
}

// scramble is FNV-1a with a final scramble: even, and the same for ever.
func scramble(h uint64, s string) uint64 {
	h ^= 0x9e3779b97f4a7c15
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// stand finds what any number of machines below a stand costs, with its uplink.
func (p *packer) stand(v int) {
	if p.all[v] == 0 {
		return
	}
	best := p.own(v)
	for _, c := range p.children[v] {
		best, p.from[c] = p.join(best, p.best[c])
		p.best[c] = nil
	}
	s := &p.k.Stands[v]
	leaf := v > 0 && p.k.leafOf(v) == v
	price := p.price(s.capacity())
	for j := range best {
		if below := j + p.free.of(v); v > 0 {
			best[j].cost += price * int64(below) * int64(p.total-below)
		}
		if j == 0 {
			continue
		}
		if leaf || s.Kind == muster.StandChassis {
			best[j].left += int32(p.all[v] - j)
		}
		if leaf && p.all[v] == s.Below {
			best[j].whole++
		}
	}
	p.best[v] = best
}

// own is what the machines that stand in v itself cost, by their own links.
func (p *packer) own(v int) []weight {
	list := p.free.at[v]
	best := make([]weight, min(len(list), p.n)+1)
	for j := 1; j < len(best); j++ {
		best[j] = weight{cost: best[j-1].cost + p.price(p.k.Link(list[j-1]))*int64(p.total-1)}
	}
	return best
}

// join is the cheapest way to have any number of machines of a and b together, and how
// many of them b gives.
func (p *packer) join(a, b []weight) ([]weight, []int32) {
	size := min(len(a)+len(b)-2, p.n) + 1
	out, from := make([]weight, size), make([]int32, size)
	for j := range out {
		first := max(0, j-len(a)+1)
		least, of := a[j-first].plus(b[first]), first
		for i := first + 1; i <= min(j, len(b)-1); i++ {
			if a[j-i].cost+b[i].cost > least.cost {
				continue
			}
			if w := a[j-i].plus(b[i]); w.less(least) {
				least, of = w, i
			}
		}
		out[j], from[j] = least, int32(of)
	}
	return out, from
}

// take collects n machines below v.
func (p *packer) take(out []muster.MachineID, v, n int) []muster.MachineID {
	for _, c := range slices.Backward(p.children[v]) {
		if i := int(p.from[c][n]); i > 0 {
			out = p.take(out, c, i)
			n -= i
		}
	}
	return append(out, p.free.at[v][:n]...)
}

// Spread chooses n of the machines from as many stands as can be, as many from each as from
// the others: of data centres first, then of what stands in them. It returns nil where
// there are fewer.
func (k *Tree) Spread(free Free, n int, salt uint64) []muster.MachineID {
	if n <= 0 || n > free.n {
		return nil
	}
	p := packer{k: k, free: free, n: n}
	p.arrange(salt)
	return p.deal(make([]muster.MachineID, 0, n), 0, n)
}

// deal collects n machines below v, evenly.
func (p *packer) deal(out []muster.MachineID, v, n int) []muster.MachineID {
	room := []int{len(p.free.at[v])} // of v itself, then of its children
	for _, c := range p.children[v] {
		room = append(room, p.all[c])
	}
	share := even(room, n)
	for i, c := range p.children[v] {
		if share[i+1] > 0 {
			out = p.deal(out, c, share[i+1])
		}
	}
	return append(out, p.free.at[v][:share[0]]...)
}

// even divides n among rooms as evenly as they allow; those with more room get the rest.
func even(room []int, n int) []int {
	order := make([]int, len(room))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(room[a], room[b]) })
	share := make([]int, len(room))
	for i, at := range order {
		left := len(order) - i
		share[at] = min(room[at], n/left)
		n -= share[at]
	}
	return share
}
