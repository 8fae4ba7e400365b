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

// counted compares what the kernel counted before a test and after it.
func counted(before, after []facts.Errors) muster.CleanStep {
	step := muster.CleanStep{What: "errors counted", OK: true}
	was := map[string]uint64{}
	for _, e := range before {
		was[e.What] = e.Count
	}
	var more []string
	for _, e := range after {
		n := e.Count - min(e.Count, was[e.What]) // a counter that began anew has gained nothing
		if n == 0 {
			continue
		}
		more = append(more, fmt.Sprintf("%d of %s", n, e.What))
		if e.Lost || n > mostMended {
			step.OK = false
		}
	}
	switch {
	case len(after) == 0:
		step.Check = "this machine counts none"
	case len(more) == 0:
		step.Check = fmt.Sprintf("none of %d counters gained any under load", len(after))
	case step.OK:
		step.Check = "few, and mended: " + strings.Join(more, ", ")
	default:
		step.Check = "FAILED: " + strings.Join(more, ", ")
	}
	return step
}
