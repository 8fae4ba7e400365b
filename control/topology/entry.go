package topology

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/internal/yamldoc"
)

// Limits of a description.
const (
	MaxBytes    = 512 << 10 // a request has room for it
	maxStands   = 10_000
	maxDepth    = 32 // stands in each other; switches of real sites have three or four levels
	maxMachines = 100_000
	maxProblems = 100
	// A cable carries less than fastest, in bits/s, and an uplink is of so many at most.
	slowest   = 1_000_000
	fastest   = 1_000_000_000_000
	maxCables = 4096
)

// standName is also a name in Slurm's files and in sets of names.
var standName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$`)

// entry is a stand as a file has it, before it is known whether it can be.
type entry struct {
	muster.Stand
	field, line string // its path, and where it is in the file
	children    string // in Slurm's files: the switches below, as a set
	names       []string
}

// file gathers what is wrong with a description.
type file struct {
	yamldoc.Reader
	entries []entry
	// slurm: parents name their children, and levels follow from heights.
	slurm bool
}

// finish judges the entries as a whole.
func (f *file) finish() muster.SiteTree {
	if len(f.entries) > maxStands {
		f.Wrong(muster.ReasonTooMany, f.entries[maxStands].field, f.entries[maxStands].line,
			fmt.Sprintf("at most %d are possible: leave chassis out, or join small switches", maxStands), "%d stands are too many", len(f.entries))
		return muster.SiteTree{}
	}
	byName := f.unique()
	if f.slurm {
		f.adopt(byName)
	}
	f.parents(byName)
	f.depth(byName)
	if f.slurm {
		f.levels(byName)
	}
	f.order(byName)
	f.machines()
	if len(f.Problems) > 0 {
		return muster.SiteTree{}
	}
	t := muster.SiteTree{Stands: make([]muster.Stand, len(f.entries))}
	for i, e := range f.entries {
		t.Stands[i] = e.Stand
	}
	return t
}

// unique finds entries by their names.
func (f *file) unique() map[string]int {
	byName := make(map[string]int, len(f.entries))
	for i, e := range f.entries {
		if e.Name == "" {
			continue // that is told
		}
		if !standName.MatchString(e.Name) {
			f.Wrong(muster.ReasonBadName, e.field+".name", e.line, "write letters, digits, dots, dashes and underscores, at most 64 of them", "%q cannot be the name of a stand", yamldoc.Clip(e.Name))
		}
		if first, twice := byName[e.Name]; twice {
			hint := "give one of them another name, or remove it"
			if a, b := f.entries[first].In, e.In; a != b && a != "" && b != "" {
				hint = "it can stand in one only, " + a + " or " + b + ": keep one entry"
			}
			f.Wrong(muster.ReasonGivenTwice, e.field+".name", e.line, hint, "%s stands in %s already", e.Name, f.entries[first].line)
			continue
		}
		byName[e.Name] = i
	}
	return byName
}

// adopt gives the switches that others name as theirs their parents.
func (f *file) adopt(byName map[string]int) {
	for i := range f.entries {
		e := &f.entries[i]
		for _, name := range f.expand(e.field+".switches", e.line, e.children) {
			c, known := byName[name]
			switch {
			case !known:
				f.unknown(e.field+".switches", e.line, name, byName)
			case f.entries[c].In != "" && f.entries[c].In != e.Name:
				f.Wrong(muster.ReasonContradiction, e.field+".switches", e.line, "name it in one of them only", "switch %s is below %s already: it cannot have two parents", name, f.entries[c].In)
			default:
				f.entries[c].In = e.Name
			}
		}
	}
}

func (f *file) unknown(field, line, name string, byName map[string]int) {
	hint := "add it to the file, or correct the name"
	names := make([]string, 0, len(byName))
	for n := range byName {
		names = append(names, n)
	}
	slices.Sort(names)
	if near := suggest.Of(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	f.Wrong(muster.ReasonBadValue, field, line, hint, "nothing in the file is named %q", yamldoc.Clip(name))
}

// parents looks for links to nowhere, and for cycles.
func (f *file) parents(byName map[string]int) {
	for i := range f.entries {
		if e := &f.entries[i]; e.In != "" && !f.slurm {
			if _, known := byName[e.In]; !known {
				f.unknown(e.field+".in", e.line, e.In, byName)
			}
		}
	}
	const new, open, done = 0, 1, 2
	state := make([]int, len(f.entries))
	for i := range f.entries {
		var way []int
		for at := i; state[at] == new; {
			state[at] = open
			way = append(way, at)
			p, ok := byName[f.entries[at].In]
			if !ok || f.entries[at].In == "" {
				break
			}
			if state[p] == open {
				from := slices.Index(way, p)
				var names []string
				for _, w := range way[from:] {
					names = append(names, f.entries[w].Name)
				}
				e := f.entries[p]
				f.Wrong(muster.ReasonContradiction, e.field+".in", e.line, "one of them must stand in none of the others", "%s stand in each other, in a circle", yamldoc.Clip(strings.Join(append(names, e.Name), ", ")))
				break
			}
			at = p
		}
		for _, w := range way {
			state[w] = done
		}
	}
}

// depth looks how many stands are in each other. What stands in a circle, or in nothing that is known, was told.
func (f *file) depth(byName map[string]int) {
	for i := range f.entries {
		n, at := 1, i
		for n <= maxDepth+1 && f.entries[at].In != "" {
			p, ok := byName[f.entries[at].In]
			if !ok {
				break
			}
			n, at = n+1, p
		}
		if n == maxDepth+1 && f.entries[at].In == "" { // the first of a chain that is too long, and not all below it
			e := f.entries[i]
			f.Wrong(muster.ReasonTooMany, e.field+".in", e.line, "leave out what only passes on", "%s stands in %d others, and %d are possible", e.Name, maxDepth, maxDepth-1)
		}
	}
}

// levels are what switches of Slurm are: those with nodes are leaves, the others spines.
func (f *file) levels(byName map[string]int) {
	for i := range f.entries {
		e := &f.entries[i]
		e.Kind = muster.StandSpine
		if e.Machines != "" {
			e.Kind = muster.StandLeaf
		}
		if e.Machines != "" && e.children != "" {
			f.Wrong(muster.ReasonContradiction, e.field+".nodes", e.line, "put the nodes behind a switch of their own", "switch %s has both nodes and switches, which Slurm does not take", yamldoc.Clip(e.Name))
		}
		if e.Machines == "" && e.children == "" {
			f.Wrong(muster.ReasonRequired, e.field, e.line, "write Nodes= or Switches=, or remove it", "switch %s joins nothing", yamldoc.Clip(e.Name))
		}
	}
}

// order looks whether each stand may stand where it does.
func (f *file) order(byName map[string]int) {
	for i := range f.entries {
		e := &f.entries[i]
		rank := slices.Index(muster.StandKinds(), e.Kind)
		p, ok := byName[e.In]
		if !ok || e.In == "" || rank < 0 || f.slurm {
			continue
		}
		above := f.entries[p].Kind
		switch at := slices.Index(muster.StandKinds(), above); {
		case at < 0 || at < rank || above == muster.StandSpine && e.Kind == muster.StandSpine:
		default:
			f.Wrong(muster.ReasonContradiction, e.field+".in", e.line, "from the outside in, the kinds are: datacentre, room, spine, leaf, chassis", "a %s cannot stand in a %s: %s in %s", e.Kind, above, e.Name, e.In)
		}
	}
}

// machines looks for machines in two stands. It makes no names of sets that are too large.
func (f *file) machines() {
	total := 0
	at := map[string]int{}
	for i := range f.entries {
		e := &f.entries[i]
		if e.Machines == "" {
			continue
		}
		if !f.slurm && e.Kind != muster.StandLeaf && e.Kind != muster.StandChassis && slices.Contains(muster.StandKinds(), e.Kind) {
			f.Wrong(muster.ReasonContradiction, e.field+".machines", e.line, "name the leaf switch or the chassis that they are in", "machines cannot stand in a %s", e.Kind)
		}
		set, err := nodeset.Parse(e.Machines)
		if err != nil {
			f.Bad(e.field+".machines", e.line, "write names, or a range such as n[01-14]", "%s", yamldoc.Clip(err.Error()))
			continue
		}
		if total += set.Count(); total > maxMachines || total < 0 {
			f.Wrong(muster.ReasonTooMany, e.field+".machines", e.line, fmt.Sprintf("at most %d machines are possible", maxMachines), "the file names more machines than a site can have")
			return
		}
		e.Machines = set.String()
		e.names, _ = set.Expand() // as many as are possible
		twice := map[int][]string{}
		for _, name := range e.names {
			if first, ok := at[name]; ok {
				twice[first] = append(twice[first], name)
				continue
			}
			at[name] = i
		}
		for _, first := range sortedKeys(twice) {
			list := twice[first]
			f.Wrong(muster.ReasonContradiction, e.field+".machines", e.line, "a machine stands in one: take it out of the other", "%s stand in %s (%s) already", yamldoc.Clip(nodeset.Fold(list)), f.entries[first].Name, f.entries[first].line)
		}
	}
}

func sortedKeys[V any](m map[int]V) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// expand makes the names of a set of switches.
func (f *file) expand(field, line, text string) []string {
	if text == "" {
		return nil
	}
	set, err := nodeset.Parse(text)
	if err != nil {
		f.Bad(field, line, "write names, or a range such as leaf[1-4]", "%s", yamldoc.Clip(err.Error()))
		return nil
	}
	if set.Count() > maxStands {
		f.Wrong(muster.ReasonTooMany, field, line, fmt.Sprintf("at most %d are possible", maxStands), "%d switches are too many", set.Count())
		return nil
	}
	names, _ := set.Expand()
	return names
}
