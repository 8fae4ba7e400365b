package converge

import (
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// withCondition returns the list with the condition in it. Since stays what it
// was when the condition is only told anew. The list given is not changed.
func withCondition(list []muster.Condition, c muster.Condition) []muster.Condition {
	out := slices.Clone(list)
	for i := range out {
		if out[i].Code == c.Code {
			c.Since = out[i].Since
			out[i] = c
			return out
		}
	}
	return append(out, c)
}

func withoutCondition(list []muster.Condition, codes ...muster.ConditionCode) []muster.Condition {
	out := slices.DeleteFunc(slices.Clone(list), func(c muster.Condition) bool { return slices.Contains(codes, c.Code) })
	if len(out) == 0 {
		return nil
	}
	return out
}

func hasCondition(list []muster.Condition, code muster.ConditionCode) bool {
	return slices.ContainsFunc(list, func(c muster.Condition) bool { return c.Code == code })
}

// conditionOf finds a condition by its code; nil when it is not there.
func conditionOf(list []muster.Condition, code muster.ConditionCode) *muster.Condition {
	for i := range list {
		if list[i].Code == code {
			return &list[i]
		}
	}
	return nil
}

func sameConditions(a, b []muster.Condition) bool {
	return slices.EqualFunc(a, b, func(x, y muster.Condition) bool {
		return x.Code == y.Code && x.Text == y.Text && x.Hint == y.Hint && x.ETA.Equal(y.ETA) && x.Deadline.Equal(y.Deadline) && x.Next == y.Next && x.Since.Equal(y.Since) && x.Stand == y.Stand
	})
}

// condition sets a condition of the cluster; it is written with the next
// record, or by progress.
func (d *decider) condition(code muster.ConditionCode, text, hint string) {
	d.Cluster.Conditions = withCondition(d.Cluster.Conditions, muster.Condition{Code: code, Text: text, Hint: hint, Since: d.Now})
}

func (d *decider) drop(codes ...muster.ConditionCode) {
	d.Cluster.Conditions = withoutCondition(d.Cluster.Conditions, codes...)
}

// lastWord is the newest text of why a node's boot failed.
func lastWord(n muster.Node) string {
	for _, c := range n.Conditions {
		if c.Code == muster.ConditionBootFailed {
			return c.Text
		}
	}
	return "no reason is known"
}

// clock prints a time of day for people.
func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }
