package hpl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// mostPatterns of pinning are told; more are counted.
const mostPatterns = 8

// Conditions are what ranks said of themselves: MPI, BLAS, pinning, what was
// compiled. The rest is for the nodes to say.
func (o Output) Conditions() muster.TestEnvironment {
	c := muster.TestEnvironment{MPI: o.MPI, Probe: &muster.Probe{Source: o.Source, Compiler: o.Compiler, Flags: o.Flags}}
	if len(o.Ranks) == 0 {
		return c
	}
	blas := muster.Library{File: o.Ranks[0].BLAS, Config: o.Ranks[0].BLASConfig}
	var hosts []string
	on := map[string][]string{} // what ranks may use, by host
	same := true
	for _, r := range o.Ranks {
		same = same && r.BLAS == blas.File && r.BLASConfig == blas.Config
		if on[r.Host] == nil {
			hosts = append(hosts, r.Host)
		}
		on[r.Host] = append(on[r.Host], r.CPUs)
	}
	if same {
		c.BLAS = &blas
	} else {
		c.Differ = append(c.Differ, "blas")
	}
	var patterns []string
	for _, h := range hosts {
		if p := strings.Join(on[h], " "); !slices.Contains(patterns, p) {
			patterns = append(patterns, p)
		}
	}
	if len(patterns) > mostPatterns {
		patterns = append(patterns[:mostPatterns], fmt.Sprintf("%d others", len(patterns)-mostPatterns))
	}
	c.Pinning = strings.Join(patterns, "; ")
	return c
}
