package agentserver

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func TestNobodyIsBusierThanItsProcessors(t *testing.T) {
	t.Parallel()
	one, two := &muster.Facts{Cores: 1, Threads: 1}, &muster.Facts{Cores: 1, Threads: 2}
	for _, c := range []struct {
		f    *muster.Facts
		busy float64
		want bool
	}{{one, 5.01, false}, {one, 1.04, true}, {one, 1.06, false}, {two, 2, true}, {nil, 99, true}, {&muster.Facts{}, 99, true}} {
		if got := possible(c.f, wire.Usage{CPUUser: c.busy / 2, CPUSystem: c.busy / 2}); got != c.want {
			t.Errorf("%v of %+v: %v", c.busy, c.f, got)
		}
	}
}
