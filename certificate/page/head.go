package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// fact is a line of the head.
type fact struct {
	Name, Text string
	Mono       bool
}

// head says the verdict in words, and what was measured when.
func (v *content) head(nodes []muster.Certificate) {
	c := v.C
	switch c.Verdict {
	case muster.GradePass:
		v.Headline = "As fast as it should be"
	case muster.GradeLow:
		v.Headline = "Slower than it should be"
	case muster.GradeUnstable:
		v.Headline = "Too unstable to say"
	default:
		v.Headline = "There was nothing to compare it with"
	}
	of := map[muster.Grade][]string{}
	for _, n := range c.Nodes {
		g := muster.Overall(n.Verdict)
		of[g] = append(of[g], n.Node)
	}
	var parts []string
	for _, g := range []muster.Grade{muster.GradePass, muster.GradeLow, muster.GradeUnstable, muster.GradeUnknown} {
		if text := standing(g, of[g], len(c.Nodes)); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) > 0 {
		v.Summary = strings.Join(parts, "; ") + "."
	}
	add := func(name, text string) {
		if text != "" {
			v.Facts = append(v.Facts, fact{name, text, name == "Image"})
		}
	}
	add("Cluster", join(" · ", c.ClusterName, string(c.Cluster)))
	if v.OfCluster {
		machines := c.Class
		if machines != "" {
			machines = "class " + machines
		}
		add("Nodes", join(" · ", fmt.Sprint(len(c.Nodes)), machines, processorOf(nodes)))
	} else {
		add("Node", c.Node)
		add("Machine", join(" · ", string(c.Machine), prefix("class ", c.Class), processorOf(nodes)))
	}
	add("Image", string(c.Image))
	add("Measured", lasted(c.Began, c.Ended))
	add("Why then", map[string]string{
		"delivery": "before the cluster was handed over", "repair": "after a machine was replaced", "scale": "when nodes joined", "deferred": "what was left out when nodes joined, once nobody used them", "request": "somebody asked for it", "idle": "the machine was free",
	}[c.Trigger])
	level := map[muster.Validation]string{muster.ValidateQuick: "quick", muster.ValidateFull: "full"}[c.Level]
	if s := c.Schedule; s != nil {
		level = join(", ", level, count(s.Launches, "launch of the probe", "launches of the probe"))
		if s.Rounds > 0 {
			level += ", " + count(s.Rounds, "round of pairs", "rounds of pairs")
		}
	}
	add("How much", level)
	add("Valid", when(c.Made)+" to "+when(c.Expires))
	add("Signed by", prefix("server ", c.Issuer))
}

func processorOf(nodes []muster.Certificate) string {
	var names []string
	for _, n := range nodes {
		if p := n.Conditions.Processor; p != "" && !slices.Contains(names, p) {
			names = append(names, p)
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return ""
}

// standing says of which nodes a verdict is.
func standing(g muster.Grade, nodes []string, all int) string {
	n := len(nodes)
	every := n == all && n > 1
	who := folded(nodes)
	if len(who) > 120 {
		who = count(n, "node", "nodes")
	}
	are := "are"
	if n == 1 {
		are = "is"
	}
	switch {
	case n == 0:
		return ""
	case every && n == 2 && g == muster.GradePass:
		return "Both nodes are as fast as they should be"
	case every && n == 2 && g == muster.GradeLow:
		return "Both nodes are slower than they should be"
	case every && n == 2 && g == muster.GradeUnstable:
		return "Both nodes vary too much to say"
	case every && n == 2:
		return "Neither of the nodes could be compared with anything"
	case every && g == muster.GradePass:
		return fmt.Sprintf("All %d nodes are as fast as they should be", n)
	case every && g == muster.GradeLow:
		return fmt.Sprintf("All %d nodes are slower than they should be", n)
	case every && g == muster.GradeUnstable:
		return fmt.Sprintf("All %d nodes vary too much to say", n)
	case every:
		return fmt.Sprintf("None of the %d nodes could be compared with anything", n)
	case g == muster.GradePass:
		return fmt.Sprintf("%s %s as fast as expected", count(n, "node", "nodes"), are)
	case g == muster.GradeLow:
		return fmt.Sprintf("%s %s slower", who, are)
	case g == muster.GradeUnstable:
		return fmt.Sprintf("%s %s too unstable to say", who, are)
	}
	return fmt.Sprintf("%s could not be compared with anything", who)
}
