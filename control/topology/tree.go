package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
)

// Tree is where machines stand, ready to be asked. Its root, the stand 0, has no name: it
// joins what nobody says anything of.
type Tree struct {
	Stands []Placed // parents before those that stand in them
	byName map[string]int
	at     map[muster.MachineID]int
	facts  map[muster.MachineID]*muster.Facts
	order  []int // by stand: its place when the tree is walked from the top, name by name
	sites  int   // data centres
	// known are the names of the description, which facts can contradict.
	known int
}

// Placed is a stand in a Tree.
type Placed struct {
	muster.Stand
	Parent int // -1: the root
	Depth  int
	// Derived: it is in no description, but machines were registered in it.
	Derived bool
	// Below counts the machines that stand in it or below it.
	Below int
	// direct are the machines that stand in it, by name.
	direct []muster.MachineID
}

// New makes the tree of a description (nil: there is none) and of what is registered of
// the machines of a site. A machine that the description does not name stands in its
// chassis, in the leaf that its message interface is plugged into, else in its rack.
func New(t *muster.SiteTree, machines []muster.Machine) *Tree {
	k := &Tree{Stands: []Placed{{Parent: -1}}, byName: map[string]int{}, at: make(map[muster.MachineID]int, len(machines)), facts: make(map[muster.MachineID]*muster.Facts, len(machines))}
	named := map[muster.MachineID]int{}
	if t != nil {
		k.describe(t, named)
	}
	k.known = len(k.Stands)
	for i := range machines {
		m := &machines[i]
		k.facts[m.ID] = &m.Facts
		v, ok := named[m.ID]
		if !ok {
			v = k.derive(&m.Facts)
		}
		k.at[m.ID] = v
		k.Stands[v].direct = append(k.Stands[v].direct, m.ID)
	}
	k.finish()
	return k
}

// Plain reports whether nothing is known beyond racks.
func Plain(t *muster.SiteTree, machines []muster.Machine) bool {
	return t == nil && !slices.ContainsFunc(machines, func(m muster.Machine) bool { return m.Facts.Chassis != "" || m.Facts.Leaf != "" })
}

// describe puts in what an administrator described, parents first.
func (k *Tree) describe(t *muster.SiteTree, named map[muster.MachineID]int) {
	below := map[string][]int{}
	for i, s := range t.Stands {
		below[s.In] = append(below[s.In], i)
	}
	queue := slices.Clone(below[""])
	for len(queue) > 0 {
		s := t.Stands[queue[0]]
		queue = append(queue[1:], below[s.Name]...)
		v := k.add(s, k.byName[s.In])
		if set, err := nodeset.Parse(s.Machines); err == nil && set.Count() <= maxMachines {
			for name := range set.All() {
				named[muster.MachineID(name)] = v
			}
		}
	}
}

// add puts a stand in.
func (k *Tree) add(s muster.Stand, parent int) int {
	v := len(k.Stands)
	k.Stands = append(k.Stands, Placed{Stand: s, Parent: parent, Depth: k.Stands[parent].Depth + 1})
	k.byName[s.Name] = v
	return v
}

// derive is where a machine stands by its registration.
func (k *Tree) derive(f *muster.Facts) int {
	leaf := 0
	if name := cmp.Or(f.Leaf, k.lldp(f), f.Rack); name != "" {
		leaf = k.find(name, muster.StandLeaf, 0)
	}
	if f.Chassis == "" {
		return leaf
	}
	if v, ok := k.byName[f.Chassis]; ok && k.Stands[v].Kind == muster.StandChassis && !k.Stands[v].Derived {
		return v
	}
	return k.find(f.Chassis, muster.StandChassis, leaf)
}

// lldp is the described leaf that a message interface hears: what only a machine reports
// makes no new one.
func (k *Tree) lldp(f *muster.Facts) string {
	for i := range f.NICs {
		n := &f.NICs[i]
		if n.Neighbour == nil || n.Use != muster.UseMessage {
			continue
		}
		if v, ok := k.byName[n.Neighbour.System]; ok && v > 0 && !k.Stands[v].Derived && k.Stands[v].Kind == muster.StandLeaf {
			return n.Neighbour.System
		}
	}
	return ""
}

// find is a stand of a kind, which is made where there is none.
func (k *Tree) find(name string, kind muster.StandKind, in int) int {
	for _, name := range []string{name, strings.TrimPrefix(k.Stands[in].Name+"/"+name, "/"), string(kind) + " " + name, string(kind) + " " + k.Stands[in].Name + "/" + name} {
		v, taken := k.byName[name]
		if !taken {
			v = k.add(muster.Stand{Name: name, Kind: kind, In: k.Stands[in].Name}, in)
			k.Stands[v].Derived = true
			return v
		}
		// A leaf is where it is; chassis of one number may be in several leaves.
		if s := k.Stands[v]; s.Kind == kind && (kind == muster.StandLeaf || s.Parent == in) {
			return v
		}
	}
	return in
}

// finish counts, and puts everything in order.
func (k *Tree) finish() {
	children := make([][]int, len(k.Stands))
	for v := len(k.Stands) - 1; v >= 0; v-- {
		s := &k.Stands[v]
		slices.SortFunc(s.direct, func(a, b muster.MachineID) int { return compareNatural(string(a), string(b)) })
		s.Below += len(s.direct)
		if s.Kind == muster.StandDataCentre {
			k.sites++
		}
		if s.Parent >= 0 {
			k.Stands[s.Parent].Below += s.Below
			children[s.Parent] = append(children[s.Parent], v)
		}
	}
	k.order = make([]int, len(k.Stands))
	next := 0
	var walk func(v int)
	walk = func(v int) {
		k.order[v] = next
		next++
		slices.SortFunc(children[v], func(a, b int) int { return compareNatural(k.Stands[a].Name, k.Stands[b].Name) })
		for _, c := range children[v] {
			walk(c)
		}
	}
	walk(0)
}

// At is the stand of a machine; 0, the root, of one that is not known.
func (k *Tree) At(id muster.MachineID) int { return k.at[id] }

// Order is where a machine comes when the tree is walked: neighbours are near to each other.
func (k *Tree) Order(id muster.MachineID) int { return k.order[k.at[id]] }

// Location names what a machine stands in, from the outermost to the machine itself.
func (k *Tree) Location(id muster.MachineID) []string {
	out := []string{string(id)}
	for v := k.at[id]; v > 0; v = k.Stands[v].Parent {
		out = append(out, k.Stands[v].Name)
	}
	slices.Reverse(out)
	return out
}

// Around are what a machine stands in, the outermost first.
func (k *Tree) Around(id muster.MachineID) []muster.Stand {
	var out []muster.Stand
	for v := k.at[id]; v > 0; v = k.Stands[v].Parent {
		out = append(out, k.Stands[v].Stand)
	}
	slices.Reverse(out)
	return out
}

// above is the innermost stand of a kind in which v is; 0: none.
func (k *Tree) above(v int, kind muster.StandKind) int {
	for ; v > 0; v = k.Stands[v].Parent {
		if k.Stands[v].Kind == kind {
			return v
		}
	}
	return 0
}

// leafOf is the leaf of a stand: a chassis that is in none is one itself.
func (k *Tree) leafOf(v int) int {
	if leaf := k.above(v, muster.StandLeaf); leaf > 0 {
		return leaf
	}
	return k.above(v, muster.StandChassis)
}

// Zone names what holds together the machines that may be in one cluster with this one,
// where it is kept within a level. Where the tree does not say it, a machine is by itself:
// nothing shows that another is in the same chassis, spine or room.
func (k *Tree) Zone(id muster.MachineID, within string) string {
	v := k.at[id]
	switch within {
	case muster.WithinRack:
		if f := k.facts[id]; f != nil {
			return f.Rack
		}
	case muster.WithinLeaf:
		if leaf := k.leafOf(v); leaf > 0 {
			return k.Stands[leaf].Name
		}
	case muster.WithinChassis, muster.WithinSpine, muster.WithinRoom:
		if at := k.above(v, muster.StandKind(within)); at > 0 {
			return k.Stands[at].Name
		}
	default:
		return ""
	}
	return "\x00" + string(id)
}

// Site is the data centre of a machine; "": none is known, or there are not several.
func (k *Tree) Site(id muster.MachineID) string {
	if v := k.outermost(id); v > 0 && k.sites > 1 {
		return k.Stands[v].Name
	}
	return ""
}

// Centres is how many data centres machines are in, as far as that is known.
func (k *Tree) Centres() int { return k.sites }

// outermost is the data centre of a machine.
func (k *Tree) outermost(id muster.MachineID) int { return k.above(k.at[id], muster.StandDataCentre) }

// Switches are those between two machines: the stands on the way, without the rooms and
// data centres that it only passes through.
func (k *Tree) Switches(a, b muster.MachineID) int { return k.between(k.at[a], k.at[b]) }

func (k *Tree) between(a, b int) int {
	if a == b {
		return 1
	}
	n := 0
	count := func(v int) int {
		if kind := k.Stands[v].Kind; kind != muster.StandRoom && kind != muster.StandDataCentre {
			n++
		}
		return k.Stands[v].Parent
	}
	for a != b {
		if k.Stands[a].Depth >= k.Stands[b].Depth {
			a = count(a)
		} else {
			b = count(b)
		}
	}
	return n + 1 // what joins them
}

// List are the stands as a description, with all machines, in the order of the tree.
func (k *Tree) List() []Placed {
	out := make([]Placed, 0, len(k.Stands))
	index := make([]int, len(k.Stands))
	for v, at := range k.order {
		index[at] = v
	}
	for _, v := range index {
		s := k.Stands[v]
		var names []string
		for _, id := range s.direct {
			names = append(names, string(id))
		}
		s.Machines = nodeset.Fold(names)
		if v == 0 {
			s.Below = len(names)
		}
		if v > 0 || len(names) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Contradictions are what registrations and switches say of machines that the description
// says otherwise, one sentence each, at most mostContradictions; and how many there are.
func (k *Tree) Contradictions() (list []string, n int) {
	ids := make([]muster.MachineID, 0, len(k.at))
	for id := range k.at {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b muster.MachineID) int { return compareNatural(string(a), string(b)) })
	for _, id := range ids {
		v := k.at[id]
		if k.Stands[v].Derived || v == 0 {
			continue
		}
		f := k.facts[id]
		type saying struct{ by, name string }
		says := []saying{{"by its registration", f.Leaf}, {"by its registration", f.Chassis}}
		for _, nic := range f.NICs {
			if nic.Neighbour != nil && nic.Use == muster.UseMessage {
				says = append(says, saying{"by LLDP", nic.Neighbour.System})
			}
		}
		var told []string
		for _, s := range says {
			other, ok := k.byName[s.name]
			if !ok || s.name == "" || other >= k.known || k.inside(v, other) || k.inside(other, v) || slices.Contains(told, s.name) {
				continue
			}
			told = append(told, s.name)
			if n++; n <= mostContradictions {
				list = append(list, fmt.Sprintf("%s stands in %s by the description, and in %s %s", id, k.Stands[v].Name, s.name, s.by))
			}
		}
	}
	return list, n
}

// mostContradictions are told one by one.
const mostContradictions = 50

// inside reports whether v stands in outer, or is it.
func (k *Tree) inside(v, outer int) bool {
	for ; v > 0; v = k.Stands[v].Parent {
		if v == outer {
			return true
		}
	}
	return false
}

// compareNatural orders names so that leaf2 comes before leaf10.
func compareNatural(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := digits(a[i:]), digits(b[j:])
		if x != "" && y != "" {
			u, v := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(u), len(v)), strings.Compare(u, v)); c != 0 {
				return c
			}
			i, j = i+len(x), j+len(y)
			continue
		}
		if a[i] != b[j] {
			return cmp.Compare(a[i], b[j])
		}
		i, j = i+1, j+1
	}
	return cmp.Or(cmp.Compare(len(a)-i, len(b)-j), strings.Compare(a, b))
}

func digits(s string) string {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}
