package measure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// came are the nodes for which a measurement in the life of a cluster was made: not
// those that they were measured beside.
func (s *subject) came() []string {
	var list []string
	for _, n := range s.nodes {
		if !slices.Contains(s.m.Partners, n.Name) {
			list = append(list, n.Name)
		}
	}
	return list
}

// joins reports whether it was made because nodes come.
func (s *subject) joins() bool {
	return s.m.Trigger == muster.TriggerRepair || s.m.Trigger == muster.TriggerScale
}

// leftOut reports which links were not measured because those at their other ends
// were in use; "" if none were left out.
func (s *subject) leftOut() string {
	switch {
	case len(s.m.Partners) > 0:
		return fmt.Sprintf("measured were the links of %s to %s, and among them; those to other nodes were not, because these could be in use", strings.Join(s.came(), ", "), strings.Join(s.m.Partners, ", "))
	case s.joins():
		return "deferred: no other node was idle, so that the links to them were not measured; that is done later, when some are, or now with `muster certificate run " + s.cluster.Name + "`"
	}
	return ""
}

// deferred are the nodes whose links are still to be measured after this measurement.
// Where figures say nothing of machines nobody waits for more of them.
func (s *subject) deferred(before []string, worthwhile bool) []string {
	now := s.came()
	list := slices.DeleteFunc(slices.Clone(before), func(n string) bool {
		return slices.Contains(now, n) && (len(s.nodes) > len(now) || !s.joins() && len(s.nodes) > 1)
	})
	if s.joins() && len(s.m.Partners) == 0 && worthwhile {
		list = append(list, now...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
