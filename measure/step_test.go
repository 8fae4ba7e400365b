package measure

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/validate"
	"github.com/muster-hpc/muster/wire"
)

// maxArgument is what Linux takes as one argument of a program.
const maxArgument = 128 << 10

// The command line hardly grows with the nodes, and what the probe reads fits into
// an order, also of many more nodes than any site has.
func TestPairsOfManyNodes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 16, 1024, 16384} {
		places := make([]validate.Place, n)
		for i := range places {
			places[i].Rack = fmt.Sprint("r", i/32)
		}
		for _, run := range validate.Plan(places, muster.ValidateQuick, 1, 1) {
			if run.Mode != validate.Pairs || run.Replicate > 0 {
				continue
			}
			args := strings.Join(probeArgs(&run), " ")
			text, err := probeInput(&run)
			if err != nil || len(args) > 200 || len(text) > wire.MaxLaunchInput || !strings.HasSuffix(text, "\n") {
				t.Fatalf("%d nodes: %d bytes of arguments, %d of input: %v", n, len(args), len(text), err)
			}
			t.Logf("%d nodes: %d rounds in %d bytes, %d of arguments", n, len(run.Rounds), len(text), len(args))
			if n == 16384 && len(text) < maxArgument {
				t.Error("this would have been short enough for an argument: take more nodes")
			}
			var back [][]validate.Pair
			for round := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "/") {
				var pairs []validate.Pair
				for word := range strings.FieldsSeq(round) {
					var p validate.Pair
					if _, err := fmt.Sscanf(word, "%d-%d", &p.A, &p.B); err != nil {
						t.Fatal(err)
					}
					pairs = append(pairs, p)
				}
				back = append(back, pairs)
			}
			if !slices.EqualFunc(back, run.Rounds, slices.Equal) {
				t.Errorf("%d nodes: the rounds are not what was planned", n)
			}
		}
	}
	run := validate.Run{Mode: validate.Pairs, Rounds: [][]validate.Pair{make([]validate.Pair, wire.MaxLaunchInput/4+1)}}
	if _, err := probeInput(&run); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("too many pairs: %v", err)
	}
	if text, err := probeInput(&validate.Run{Mode: validate.Alone}); text != "" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
