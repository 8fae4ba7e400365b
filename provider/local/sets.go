package local

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// checkSets refuses sets that cannot exclude each other as they should, every fault at once.
func checkSets(list []Slice) error {
	var problems []muster.Problem
	add := func(i int, hint, format string, args ...any) {
		problems = append(problems, muster.Problem{Field: fmt.Sprintf("local[%d]", i), Reason: muster.ReasonBadMachines, Hint: hint, Message: fmt.Sprintf(format, args...)})
	}
	classes := map[string]string{} // set by class
	for i := range list {
		s := &list[i]
		if s.Set != "" && (s.Cores == 0 || s.Memory == 0) {
			add(i, "write cores=C and memory=M", "machines of set %s need their cores and their memory", s.Set)
		}
		class := s.class()
		if set, known := classes[class]; known && set != s.Set {
			add(i, "write class=NAME, another one for each set", "machines of class %s are in set %q and in set %q", class, set, s.Set)
			continue
		}
		classes[class] = s.Set
	}
	if len(problems) == 0 {
		return nil
	}
	return muster.Errorf(muster.EInvalid, "the sets of local machines have %d problems", len(problems)).Because(muster.ReasonBadMachines).Listing(problems)
}

// class is that of the machines of a slice.
func (s *Slice) class() string {
	switch {
	case s.Class != "":
		return s.Class
	case s.Set != "":
		return s.Set
	}
	return "local"
}

// region is what all sets together need: as much as the largest of them.
func region(list []Slice) (cores int, memory int64) {
	c, m := map[string]int{}, map[string]int64{}
	for _, s := range list {
		if s.Set == "" {
			continue
		}
		c[s.Set] += s.Count * s.Cores
		m[s.Set] += int64(s.Count) * s.Memory
		cores, memory = max(cores, c[s.Set]), max(memory, m[s.Set])
	}
	return cores, memory
}

// extent is where the memory of a machine of a set lies in that of all sets, in bytes. No
// memory is at a place really: machines whose extents are apart never need more than there is.
type extent struct{ from, to int64 }

// shareOut names the parts that machines of different sets have in common. Parts that the
// same machines have are one, and those of one machine alone have no name.
func shareOut(facts []muster.Facts, extents []extent) {
	has := map[string][]int{} // machines by part
	var names []string
	note := func(name string, i int) {
		if _, known := has[name]; !known {
			names = append(names, name)
		}
		has[name] = append(has[name], i)
	}
	var cuts []int64
	for i := range facts {
		if facts[i].Set != "" {
			for _, c := range facts[i].CPUs {
				note(fmt.Sprintf("local/cpu%d", c), i)
			}
			cuts = append(cuts, extents[i].from, extents[i].to)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i := range facts {
		if facts[i].Set == "" {
			continue
		}
		at, _ := slices.BinarySearch(cuts, extents[i].from)
		for ; at < len(cuts) && cuts[at] < extents[i].to; at++ {
			note(fmt.Sprintf("local/memory%d", cuts[at]>>20), i)
		}
	}
	known := map[string]bool{}
	for _, name := range names {
		list := has[name]
		if len(list) < 2 {
			continue
		}
		key := strings.Trim(fmt.Sprint(list), "[]")
		if known[key] {
			continue
		}
		known[key] = true
		for _, i := range list {
			facts[i].Parts = append(facts[i].Parts, name)
		}
	}
}
