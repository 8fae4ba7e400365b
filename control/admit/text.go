package admit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// namesShown is how many names a sentence lists before it says how many more.
const namesShown = 5

// explain is the text of a rejection: what was asked, and what is here.
func (c check) explain(rejected []*muster.Machine) string {
	switch {
	case c.text != "" && c.label != nil:
		return c.reason + ": " + c.text + ": " + names(c.label.all(rejected))
	case c.text != "":
		return c.reason + ": " + c.text
	case c.amount != nil:
		return c.reason + ": " + c.amount.explain(rejected)
	}
	return fmt.Sprintf("%s: %q asked, here: %s", c.reason, c.label.want, names(c.label.all(rejected)))
}

func (a *amount) explain(rejected []*muster.Machine) string {
	least, most := a.fact(rejected[0]), a.fact(rejected[0])
	for _, m := range rejected[1:] {
		v := a.fact(m)
		least, most = min(least, v), max(most, v)
	}
	asked := a.unit.asked(a.want) + " asked"
	switch a.want.Op {
	case muster.AtLeast, muster.More:
		return asked + ", the most here is " + a.unit.people(most)
	case muster.AtMost, muster.Less:
		return asked + ", the least here is " + a.unit.people(least)
	}
	if least == most {
		return asked + ", here it is " + a.unit.people(least)
	}
	return asked + ", here it is " + a.unit.people(least) + " to " + a.unit.people(most)
}

// all lists the distinct names that machines have, sorted.
func (l *label) all(machines []*muster.Machine) []string {
	seen := make(map[string]bool)
	var list []string
	for _, m := range machines {
		for _, f := range l.facts(m) {
			if !seen[f] {
				seen[f] = true
				list = append(list, f)
			}
		}
	}
	slices.Sort(list)
	return list
}

// names lists some of the names.
func names(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	shown := slices.Clone(list[:min(len(list), namesShown)])
	for i, s := range shown {
		if s == "" {
			shown[i] = "(unknown)"
		}
	}
	text := strings.Join(shown, ", ")
	if more := len(list) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// fit writes "1 machine fits", "5 machines fit".
func fit(n int) string {
	if n == 1 {
		return "1 machine fits"
	}
	return plaintext.Count(n, "machine") + " fit"
}
