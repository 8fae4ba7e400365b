package converge

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// Codes of conditions, of a node and of its cluster, for what its agent says is not as
// it should be. What an agent says repairs and condemns nothing: whoever is root on the
// node can have it say anything.
const (
	unhealthy  = "unhealthy"   // a service that people rely on
	notApplied = "not-applied" // a part of the newest configuration
)

// configurationCheck is the check of an agent that tells what of the configuration it
// could not apply.
const configurationCheck = "configuration"

// checked turns an agent's checks into conditions of its node.
func (d *decider) checked(list []muster.Condition, r *Report) []muster.Condition {
	set := func(code, text, hint string) {
		if text == "" {
			list = withoutCondition(list, code)
			return
		}
		list = withCondition(list, muster.Condition{Code: code, Text: text, Since: d.Now, Hint: hint})
	}
	isConfiguration := func(name string) bool { return name == configurationCheck }
	applied := complaint(r, isConfiguration)
	health := complaint(r, func(name string) bool { return !isConfiguration(name) })
	if r.State == "failed" && health == "" {
		health = "its own checks fail"
	}
	set(notApplied, strings.TrimPrefix(applied, configurationCheck+": "), "all else of the configuration is in force; it is tried again by itself, every half minute at the latest")
	set(unhealthy, health, "it mends itself where it can; `muster logs` of the node tells more")
	return list
}

// complaint is what is wrong by some of the checks; "" for nothing.
func complaint(r *Report, which func(name string) bool) string {
	var bad []string
	for _, c := range r.Checks {
		if !c.OK && which(c.Name) {
			bad = append(bad, strings.TrimSuffix(c.Name+": "+c.Text, ": "))
		}
	}
	return strings.Join(bad, "; ")
}

func badChecks(r *Report) string { return complaint(r, func(string) bool { return true }) }

// complaints tells the people of a cluster what is wrong on its nodes, once for all
// nodes on which the same is.
func (d *decider) complaints() {
	for _, code := range []string{notApplied, unhealthy} {
		nodes := map[string][]string{}
		var texts []string
		for _, n := range d.Nodes {
			c := conditionOf(n.Conditions, code)
			if c == nil || n.Phase == muster.NodeGone {
				continue
			}
			if nodes[c.Text] == nil {
				texts = append(texts, c.Text)
			}
			nodes[c.Text] = append(nodes[c.Text], n.Name)
		}
		slices.Sort(texts)
		var parts []string
		for _, t := range texts {
			parts = append(parts, few(nodes[t])+": "+t)
		}
		what := "not all of the newest configuration is in force on "
		if code == unhealthy {
			what = "something that people rely on does not work on "
		}
		if len(parts) == 0 {
			d.drop(code)
			continue
		}
		d.condition(code, what+strings.Join(parts, "; "), hintOf(d.Nodes, code))
	}
}

func hintOf(nodes []muster.Node, code string) string {
	for _, n := range nodes {
		if c := conditionOf(n.Conditions, code); c != nil {
			return c.Hint
		}
	}
	return ""
}
