package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
)

// writeHPLHistory writes how HPL went, and what explains its changes.
func writeHPLHistory(w io.Writer, h *wire.HPLHistory) {
	if h == nil {
		return
	}
	newest := h.Runs[len(h.Runs)-1]
	fmt.Fprintf(w, "\nhpl: %s, %s; median %s, newest %s on %s with %s\n", plaintext.Count(len(h.Runs), "result"), amounts(h.Min, h.Max, "flop/s"), amount(h.Median, "flop/s"),
		amount(newest.Rate, "flop/s"), plaintext.Count(newest.Nodes, "node"), plaintext.Count(newest.Cores, "core"))
	for _, c := range h.Changes {
		fmt.Fprintf(w, "\n%s  hpl went from %s to %s (%s)%s\n", stamp(h.Runs[c.To].At), amount(c.Before, "flop/s"), amount(c.After, "flop/s"), gain(c.After/c.Before), goodOrBad(false, c.After > c.Before))
		if c.Unexplained != "" {
			fmt.Fprintf(w, "  why is not known: %s\n", c.Unexplained)
		}
		for _, v := range c.Causes {
			fmt.Fprintf(w, "  with it %s went from %s to %s\n", causeName(v), amount(v.Before, v.Unit), amount(v.After, v.Unit))
		}
		if c.MeasuredBefore != nil && len(c.Causes) == 0 {
			fmt.Fprintln(w, "  no figure of network, memory, cores or other load moved with it")
		}
		var still []string
		for _, v := range c.Unmoved {
			still = append(still, fmt.Sprintf("%s (%s, before %s)", causeName(v), amount(v.After, v.Unit), amount(v.Before, v.Unit)))
		}
		if len(still) > 0 {
			fmt.Fprintf(w, "  not with it: %s\n", strings.Join(still, "; "))
		}
		for _, e := range c.Conditions {
			fmt.Fprintf(w, "  about then %s became %s, from %s\n", clean(e.Condition), clean(e.To), clean(e.From))
		}
	}
}

func causeName(c wire.HPLCause) string {
	name := c.What
	if c.From != "" {
		name += ", " + clean(c.From) + " to " + clean(c.To)
		if c.Derived {
			name += " (by the bandwidth)"
		}
	} else if c.Name != "" {
		name += " (" + clean(metricName(c.MetricKey)) + ")"
	}
	return name
}
