package boot

import (
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
)

// mostMended is how many errors that were mended on the way one counter may gain while a
// machine is tested: a bit flips now and then, and a cable that is bad does it in each
// second.
const mostMended = 10

// span is what was counted when it began and when it ended. What appeared meanwhile
// began with nothing.
type span struct{ before, after []facts.Errors }

// counted compares what was counted before parts of a test and after them.
func counted(spans ...span) muster.CleanStep {
	step := muster.CleanStep{What: "errors counted", OK: true}
	gained, last := map[string]uint64{}, map[string]facts.Errors{}
	var order []string
	for _, s := range spans {
		was := map[string]uint64{}
		for _, e := range s.before {
			was[e.What] = e.Count
		}
		for _, e := range s.after {
			if _, ok := last[e.What]; !ok {
				order = append(order, e.What)
			}
			last[e.What] = e
			gained[e.What] += e.Count - min(e.Count, was[e.What]) // a counter that began anew has gained nothing
		}
	}
	var more []string
	for _, what := range order {
		n := gained[what]
		if n == 0 {
			continue
		}
		more = append(more, fmt.Sprintf("%d of %s", n, what))
		if last[what].Lost || n > mostMended {
			step.OK = false
		}
	}
	switch {
	case len(order) == 0:
		step.Check = "this machine counts none"
	case len(more) == 0:
		step.Check = fmt.Sprintf("none of %d counters gained any under load", len(order))
	case step.OK:
		step.Check = "few, and mended: " + strings.Join(more, ", ")
	default:
		step.Check = "FAILED: " + strings.Join(more, ", ")
	}
	return step
}
