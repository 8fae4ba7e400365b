package admit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// mostChanges is how many ways out an answer names.
const mostChanges = 6

// changes reports what to change to be served: now when keep is isFree, ever
// when keep is nil. Each sentence alone is enough, and there is always one.
func (a *query) changes(keep func(int) bool) []string {
	var list []string
	if keep != nil {
		list = append(list, a.waiting())
	}
	list = append(list, a.fewer(keep)...)
	list = append(list, a.otherShape(keep)...)
	for i := range a.checks {
		if len(list) >= mostChanges {
			break
		}
		if s := a.relax(i, keep); s != "" {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		list = append(list, a.lastResort(keep))
	}
	return list
}

// waiting reports what the request waits for.
func (a *query) waiting() string {
	counts := make(map[string]int)
	for j := range a.machines {
		if a.failed[j] == 0 {
			counts[a.state[j]]++
		}
	}
	var parts []string
	for _, s := range []struct{ reason, text string }{
		{ReasonBusy, "busy"},
		{ReasonPartsInUse, "made of what serves a machine of another set"},
		{ReasonCleaning, "being cleaned"},
		{ReasonTesting, "being tested"},
		{ReasonReserved, "waited for by earlier requests"},
		{ReasonNotAnswering, "not answering"},
		{ReasonQuarantined, "in quarantine"},
		{ReasonMaintenance, "in maintenance"},
	} {
		if n := counts[s.reason]; n > 0 {
			verb := "are"
			if n == 1 {
				verb = "is"
			}
			parts = append(parts, fmt.Sprintf("%d %s %s", n, verb, s.text))
		}
	}
	if len(parts) == 0 {
		return "wait: the machines that could carry the head are not free"
	}
	if len(parts) == 1 && a.fitting(0, nil) == 1 {
		return "wait: the one machine that fits " + strings.TrimPrefix(parts[0], "1 ")
	}
	return fmt.Sprintf("wait: of the %s that fit, %s", plaintext.Count(a.fitting(0, nil), "machine"), strings.Join(parts, ", "))
}

// when says what a change brings.
func when(keep func(int) bool) string {
	if keep == nil {
		return "can be served"
	}
	return "can start now"
}

// fewer offers the nodes that there are.
func (a *query) fewer(keep func(int) bool) []string {
	spec := a.spec
	spec.Min = 1
	compute, spare := a.pick(0, keep)
	n := a.placer.Capacity(spec, compute, spare)
	if n < 1 || n >= a.least {
		return nil
	}
	return []string{fmt.Sprintf("ask for nodes: %d (or say min: %d): %s %s", n, n, plaintext.Count(n, "node"), when(keep))}
}

// otherShape tries the constraints on the cluster as a whole, one at a time.
func (a *query) otherShape(keep func(int) bool) []string {
	var list []string
	try := func(change func(*muster.Spec), text string) bool {
		spec := a.spec
		change(&spec)
		t := *a.filtered
		t.spec = spec
		compute, spare := t.pick(0, keep)
		n := a.placer.Capacity(spec, compute, spare)
		if n >= a.least {
			list = append(list, fmt.Sprintf("%s: %s %s", text, plaintext.Count(n, "node"), when(keep)))
		}
		return n >= a.least
	}
	if !a.spec.Mixed {
		try(func(s *muster.Spec) { s.Mixed = true }, "say mixed: true, so that nodes may be of different classes")
	}
	for _, within := range wider(a.spec.Within) {
		if try(func(s *muster.Spec) { s.Within = within }, "ask for within: "+within) {
			break
		}
	}
	if a.spec.Head == muster.HeadSeparate {
		try(func(s *muster.Spec) { s.Head = muster.HeadShared }, "say head: shared, which saves a machine")
	}
	return list
}

// wider are the words for more than a cluster is kept within, the narrowest first.
func wider(within string) []string {
	all := muster.Within()
	if within == "" {
		within = muster.WithinSite
	}
	return all[slices.Index(all, within)+1:]
}

// lastResort is said when no single change is enough: which to make together,
// or that the site is too small.
func (a *query) lastResort(keep func(int) bool) string {
	if len(a.machines) == 0 {
		return "there are no machines here yet: an administrator can add some"
	}
	var wishes, all uint64
	for i, c := range a.checks {
		if c.reason == ReasonRetired {
			continue
		}
		all |= 1 << i
		if c.change == "" && c.reason != ReasonService {
			wishes |= 1 << i
		}
	}
	for _, waived := range []uint64{wishes, all} {
		if !a.served(waived, keep, nil) {
			continue
		}
		// Take back whatever need not be waived.
		for i := range a.checks {
			if bit := uint64(1) << i; waived&bit != 0 && a.served(waived&^bit, keep, nil) {
				waived &^= bit
			}
		}
		var names, cures []string
		for i, c := range a.checks {
			if waived&(1<<i) != 0 {
				cure, _, _ := strings.Cut(c.change, ";")
				names, cures = append(names, c.reason), append(cures, cure)
			}
		}
		if cures = slices.Compact(cures); len(cures) == 1 && cures[0] != "" { // one wish is behind all of them
			return cures[0] + ": then it " + when(keep)
		}
		return "no single change is enough: relax " + strings.Join(names, " and ") + " together"
	}
	return "the site has too few machines: ask for fewer nodes, or an administrator can add machines"
}

// fitting counts the machines that fit with the waived checks dropped.
func (a *query) fitting(waived uint64, keep func(int) bool) int {
	n := 0
	for j, failed := range a.failed {
		if failed&^waived == 0 && (keep == nil || keep(j)) {
			n++
		}
	}
	return n
}
