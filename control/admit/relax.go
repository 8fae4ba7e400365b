package admit

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/muster-hpc/muster"
)

// namesTried bounds the search where a site has a thousand racks.
const namesTried = 8

// relax reports how far one check has to be relaxed for the request to be
// served; "" when that alone does not help.
func (a *query) relax(i int, keep func(int) bool) string {
	c, bit := a.checks[i], uint64(1)<<i
	var gained []*muster.Machine // fail nothing else
	for j, failed := range a.failed {
		if failed == bit && (keep == nil || keep(j)) {
			gained = append(gained, &a.machines[j])
		}
	}
	if len(gained) == 0 && (!c.head || a.spec.Head != muster.HeadSeparate) {
		return ""
	}
	if !a.served(bit, keep, nil) {
		return ""
	}
	switch {
	case c.reason == ReasonRetired:
		return ""
	case c.change != "":
		return c.change
	case c.amount != nil:
		return a.relaxAmount(c, bit, keep, gained)
	}
	return a.relaxLabel(c, bit, keep, gained)
}

// served reports whether the request is served when a check is waived for the
// machines that also allows, or for all.
func (a *query) served(bit uint64, keep func(int) bool, also func(*muster.Machine) bool) bool {
	compute, spare := a.pickWhere(bit, keep, func(j int) bool {
		return also == nil || a.failed[j]&bit == 0 || also(&a.machines[j])
	})
	return a.placer.Capacity(a.spec, compute, spare) >= a.least
}

// relaxAmount finds the value nearest to the one asked that is enough.
func (a *query) relaxAmount(c check, bit uint64, keep func(int) bool, gained []*muster.Machine) string {
	am := c.amount
	var op muster.Op
	switch am.want.Op {
	case muster.AtLeast, muster.More:
		op = muster.AtLeast
	case muster.AtMost, muster.Less:
		op = muster.AtMost
	default:
		n := a.fitting(bit, keep)
		return fmt.Sprintf("leave out %s: %s%d and %s", c.reason, am.want.Op, am.want.Value, fit(n))
	}
	values := make([]int64, len(gained))
	for i, m := range gained {
		values[i] = am.fact(m)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if op == muster.AtLeast {
		slices.Reverse(values) // from the nearest to the farthest
	}
	// The farther, the more machines: search for the first value that is enough.
	at := sort.Search(len(values), func(k int) bool {
		q := muster.Quantity{Op: op, Value: values[k]}
		return a.served(bit, keep, func(m *muster.Machine) bool { return q.Met(am.fact(m)) })
	})
	if at == len(values) {
		return "" // only the head would profit
	}
	q := muster.Quantity{Op: op, Value: values[at]}
	n := 0
	for j, failed := range a.failed {
		if failed&^bit == 0 && (keep == nil || keep(j)) && (failed == 0 || q.Met(am.fact(&a.machines[j]))) {
			n++
		}
	}
	return fmt.Sprintf("ask for %s: %s and %s", requestField(c.reason), am.unit.request(op, q.Value), fit(n))
}

// requestField is the field of a request that a reason is about.
func requestField(reason string) string {
	if reason == ReasonService {
		return ReasonClass
	}
	return strings.ReplaceAll(reason, "-", "_")
}

// relaxLabel finds the name to ask for instead.
func (a *query) relaxLabel(c check, bit uint64, keep func(int) bool, gained []*muster.Machine) string {
	field := requestField(c.reason)
	for _, name := range c.label.commonest(gained) {
		compute, spare := a.pickWhere(bit, keep, func(j int) bool {
			return slices.Contains(c.label.facts(&a.machines[j]), name)
		})
		if a.placer.Capacity(a.spec, compute, spare) >= a.least {
			return fmt.Sprintf("ask for %s: %s and %s", field, name, fit(len(compute)))
		}
	}
	if c.reason == ReasonService {
		return "" // cannot be left out: it was not asked
	}
	return fmt.Sprintf("leave out %s: %s and %s", field, c.label.want, fit(a.fitting(bit, keep)))
}

// commonest lists the names that most machines have, at most namesTried.
func (l *label) commonest(machines []*muster.Machine) []string {
	counts := make(map[string]int)
	for _, m := range machines {
		for _, f := range l.facts(m) {
			counts[f]++
		}
	}
	delete(counts, "")
	list := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(list, func(a, b string) int { return counts[b] - counts[a] })
	return list[:min(len(list), namesTried)]
}
