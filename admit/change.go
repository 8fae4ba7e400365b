package admit

import (
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
)

// mostChanges is how many ways out an answer names.
const mostChanges = 6

// changes tells what to change to be served: now when keep is isFree, ever
// when keep is nil. Each sentence alone is enough. room is how many nodes find
// a place as it is. There is always at least one sentence.
func (a *asked) changes(room int, keep func(int) bool) []string {
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
		list = append(list, a.lastResort(room))
	}
	return list
}

// waiting tells what the request waits for.
func (a *asked) waiting() string {
	counts := make(map[string]int)
	for j := range a.machines {
		if a.failed[j] == 0 {
			counts[a.state[j]]++
		}
	}
	var parts []string
	for _, s := range []struct{ reason, text string }{
		{ReasonBusy, "busy"},
		{ReasonCleaning, "being cleaned"},
		{ReasonReserved, "waited for by earlier requests"},
		{ReasonNotAnswering, "not answering"},
		{ReasonQuarantined, "in quarantine"},
		{ReasonMaintenance, "in maintenance"},
	} {
		if n := counts[s.reason]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.text))
		}
	}
	if len(parts) == 0 {
		return "wait: the machines that could carry the head are not free"
	}
	return fmt.Sprintf("wait: of the %s that fit, %s", count(a.fitting(0, nil), "machine"), strings.Join(parts, ", "))
}

// when says what a change brings.
func when(keep func(int) bool) string {
	if keep == nil {
		return "can be served"
	}
	return "can start now"
}

// fewer offers the nodes that there are.
func (a *asked) fewer(keep func(int) bool) []string {
	spec := a.spec
	spec.Min = 1
	compute, spare := a.pick(0, keep)
	n := a.placer.Room(spec, compute, spare)
	if n < 1 || n >= a.least {
		return nil
	}
	return []string{fmt.Sprintf("ask for nodes: %d or min: %d: %s %s", n, n, count(n, "node"), when(keep))}
}

// otherShape tries the wishes about the cluster as a whole, one at a time.
func (a *asked) otherShape(keep func(int) bool) []string {
	var list []string
	try := func(change func(*muster.Spec), text string) {
		spec := a.spec
		change(&spec)
		t := *a.sifted
		t.spec = spec
		compute, spare := t.pick(0, keep)
		if n := a.placer.Room(spec, compute, spare); n >= a.least {
			list = append(list, fmt.Sprintf("%s: %s %s", text, count(n, "node"), when(keep)))
		}
	}
	if !a.spec.Mixed {
		try(func(s *muster.Spec) { s.Mixed = true }, "say mixed: true, so that nodes may be of different classes")
	}
	if a.spec.Within != "" {
		try(func(s *muster.Spec) { s.Within = "" }, "leave out within: "+a.spec.Within)
	}
	if a.spec.Head == muster.HeadSeparate {
		try(func(s *muster.Spec) { s.Head = muster.HeadShared }, "say head: shared, which saves a machine")
	}
	return list
}

// lastResort is said when no single change is enough.
func (a *asked) lastResort(room int) string {
	if len(a.machines) == 0 {
		return "there are no machines here yet: an administrator can add some"
	}
	var wishes []string
	for i, c := range a.checks {
		for j := range a.failed {
			if a.failed[j]&(1<<i) != 0 {
				wishes = append(wishes, c.reason)
				break
			}
		}
	}
	if len(wishes) > 1 {
		return "no single change is enough: relax several of " + strings.Join(wishes, ", ")
	}
	if room == 0 && a.spec.Head == muster.HeadSeparate {
		return "no machine can carry the head beside the nodes: an administrator can add machines"
	}
	return "the site has too few machines: an administrator can add some"
}

// fitting counts the machines that fit with the waived checks dropped.
func (a *asked) fitting(waived uint64, keep func(int) bool) int {
	n := 0
	for j, failed := range a.failed {
		if failed&^waived == 0 && (keep == nil || keep(j)) {
			n++
		}
	}
	return n
}
