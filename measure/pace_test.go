package measure

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster/measure/analysis"
)

// How long the rest takes is told by what was seen of each kind of launch: not from
// the moment in which conditions were read, and not as if all modes were alike.
func TestPace(t *testing.T) {
	t.Parallel()
	const second = time.Second
	conditions := step{}
	alone := step{run: &analysis.Run{Mode: analysis.Alone, Budget: 2 * second}}
	pairs := step{run: &analysis.Run{Mode: analysis.Pairs, Budget: second / 2, Rounds: make([][]analysis.Pair, 3)}}
	rest := []step{alone, pairs, alone, conditions}
	p := newPace()
	if _, ok := p.left(rest); ok {
		t.Error("it knows before anything was seen")
	}
	p.add(conditions, second)
	if _, ok := p.left(rest); ok {
		t.Error("it knows once conditions were read")
	}
	p.add(alone, 40*second)
	// Twenty times what was planned: the pairs, too.
	if left, ok := p.left(rest); !ok || left != (40+30+40+1)*second {
		t.Errorf("%s, %v", left, ok)
	}
	p.add(pairs, 10*second)
	p.add(alone, 20*second)
	if left, _ := p.left(rest); left != (30+10+30+1)*second {
		t.Error(left)
	}
	if left, ok := p.left(nil); left != 0 || !ok {
		t.Error(left, ok)
	}
}
