package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// core is a physical core of the host.
type core struct {
	pkg, node int
	group     int // what shares a last-level cache, numbered over the machine
	threads   []int
}

// coresOf are the cores of a topology in its order. Caches nearer than the third level make no
// groups: cores that share nothing but memory are one.
func coresOf(t muster.Topology) []core {
	var list []core
	group := -1
	for _, p := range t.Packages {
		for _, n := range p.Nodes {
			for i, g := range n.Groups {
				if i == 0 || len(g.Caches) > 0 && g.Caches[0].Level >= 3 {
					group++
				}
				for _, threads := range g.Cores {
					c := core{p.ID, n.ID, group, slices.Sorted(slices.Values(threads))}
					if len(c.threads) > 0 {
						list = append(list, c)
					}
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b core) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.group, b.group), cmp.Compare(a.threads[0], b.threads[0]))
	})
	return list
}

// A machine of so many cores keeps one for QEMU's own threads, unless the options say
// otherwise.
const enoughToKeep = 8

// chooseCores decides which cores are the virtual machine's and which the host keeps.
func (m *maker) chooseCores() {
	all := len(m.cores)
	keep := 0
	switch {
	case m.opt.HostCores != nil:
		keep = *m.opt.HostCores
	case !m.host.Slice && all >= enoughToKeep && m.opt.Cores < all:
		keep = 1
	}
	if keep < 0 || keep >= all {
		m.lack(muster.LackCores, fmt.Sprintf("the host is to keep %d of its %s", keep, plaintext.Count(all, "core")), fmt.Sprintf("keep 0 to %d", all-1))
		keep = 0
	}
	want := cmp.Or(m.opt.Cores, all-keep)
	if want > all-keep {
		m.lack(muster.LackCores, fmt.Sprintf("%d cores are asked, and there are %d beside the host's", want, all-keep), fmt.Sprintf("ask for at most %d cores", all-keep))
		want = all - keep
	}
	if want < 1 { // said with the options
		want = 1
	}
	near := m.cores[0].node
	if m.card != nil && m.card.MemoryNode != nil && slices.ContainsFunc(m.cores, func(c core) bool { return c.node == *m.card.MemoryNode }) {
		near = *m.card.MemoryNode
	}
	var rest []core
	m.kept, rest = keepCores(m.cores, keep, near)
	m.taken = pick(rest, want, near)
	if m.tuned() {
		m.sameThreads(rest)
	}
	if m.plan.HostCPUs = threadsOf(m.kept); len(m.kept) == 0 {
		m.plan.HostCPUs = threadsOf(m.taken)
	}
}

// sameThreads refuses cores that differ: nobody would know which program runs on which.
func (m *maker) sameThreads(rest []core) {
	count := map[int]int{}
	for _, c := range m.taken {
		count[len(c.threads)]++
	}
	if len(count) < 2 {
		return
	}
	alike := map[int]int{}
	most := 0
	for _, c := range rest {
		alike[len(c.threads)]++
		most = max(most, alike[len(c.threads)])
	}
	m.lack(muster.LackTopology, fmt.Sprintf("its cores differ: some of the %d have one hardware thread, others more", len(m.taken)),
		"switch hyper-threading on or off for all of them in firmware setup, or ask for an untuned virtual machine")
}

// keepCores takes cores for the host: the first near the card, whose interrupts and packets
// they handle, then of each package in turn.
func keepCores(all []core, n, near int) (kept, rest []core) {
	rest = slices.Clone(all)
	take := func(i int) {
		kept = append(kept, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	last := -1
	for len(kept) < n {
		i := -1
		if len(kept) == 0 {
			i = slices.IndexFunc(rest, func(c core) bool { return c.node == near })
		} else {
			i = slices.IndexFunc(rest, func(c core) bool { return c.pkg > last })
		}
		i = max(i, 0)
		last = rest[i].pkg
		take(i)
	}
	return kept, rest
}

// pick chooses n of the cores as near to each other as can be: in the smallest part that holds
// them, a group of a cache, a memory node or a package, of those alike in the one near the
// card; of several packages the same number of each where that is possible.
func pick(all []core, n, near int) []core {
	for _, part := range []func(core) int{func(c core) int { return c.group }, func(c core) int { return c.node }, func(c core) int { return c.pkg }} {
		best := []core(nil)
		for _, list := range partsOf(all, part) {
			if len(list) < n {
				continue
			}
			if best == nil || better(list, best, near) {
				best = list
			}
		}
		if best != nil {
			return best[:n]
		}
	}
	packages := partsOf(all, func(c core) int { return c.pkg })
	slices.SortStableFunc(packages, func(a, b []core) int { return cmp.Compare(len(b), len(a)) })
	var out []core
	for k := 2; k <= len(packages); k++ { // the fewest that hold an equal share each
		if n%k == 0 && len(packages[k-1]) >= n/k {
			for _, p := range packages[:k] {
				out = append(out, p[:n/k]...)
			}
			return inOrder(out)
		}
	}
	for _, p := range packages {
		out = append(out, p[:min(len(p), n-len(out))]...)
	}
	return inOrder(out)
}

func inOrder(list []core) []core {
	slices.SortStableFunc(list, func(a, b core) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.group, b.group), cmp.Compare(a.threads[0], b.threads[0]))
	})
	return list
}

// partsOf divides cores, in their order.
func partsOf(all []core, key func(core) int) [][]core {
	var parts [][]core
	at := map[int]int{}
	for _, c := range all {
		i, ok := at[key(c)]
		if !ok {
			i = len(parts)
			at[key(c)] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], c)
	}
	return parts
}

// better reports whether a is a better part to take cores from than b: smaller, or nearer.
func better(a, b []core, near int) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a[0].node == near && b[0].node != near
}
