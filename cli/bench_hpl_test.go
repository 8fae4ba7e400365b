package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
	"github.com/muster-hpc/muster/wire"
)

func TestBench(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	w := at(t, s)
	w.run("create", "cfd", "-n", "2", "--head", "shared").want(t, 0, "")
	var c wire.Cluster
	if err := json.Unmarshal([]byte(w.run("show", "cfd", "-o", "json").out), &c); err != nil {
		t.Fatal(err)
	}
	if r := w.run("bench", "list", "cfd"); r.code != 0 || !strings.Contains(r.out, "HPL was not run on cfd") {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
	w.refused(3, muster.ReasonNoSuchResult, "bench", "show", "cfd").naming("HPL", "cfd")
	fast, slow := storetest.NewHPL(c.ID, 6e10), storetest.NewHPL(c.ID, 5e10)
	slow.Caveats = []muster.Caveat{{Code: "oversubscribed", Text: "two machines share a core"}}
	slow.Use = []muster.UseSeries{{Node: "n01", Start: slow.Began, Step: 1, CPU: []float64{1.5, 2}, User: []float64{1, 2}, System: []float64{0.5, 0}, Wait: []float64{0, 0.25}}}
	slow.Rate.Interval = &muster.Interval{Low: 5.1e10, High: 6e10, Level: 0.5}
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		if err := tx.PutHPL(fast); err != nil {
			return err
		}
		return tx.PutHPL(slow)
	})
	if err != nil {
		t.Fatal(err)
	}
	r := w.run("bench", "list", "cfd")
	lines := strings.Split(r.out, "\n")
	if r.code != 0 || len(lines) != 4 || !strings.HasPrefix(lines[1], string(slow.ID)) || !strings.HasSuffix(lines[1], "oversubscribed") ||
		!strings.Contains(lines[1], "56.25 Gflop/s") || !strings.HasSuffix(lines[2], "fastest") || !strings.Contains(lines[2], "50.0 %") {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
	var list wire.HPLResults
	if err := json.Unmarshal([]byte(w.run("bench", "list", "cfd", "-o", "json").out), &list); err != nil || len(list.Results) != 2 || list.Fastest.ID != fast.ID {
		t.Errorf("%+v, %v", list, err)
	}
	for _, want := range []string{
		"56.25 Gflop/s: the median of 2 launches", "51 Gflop/s to 60 Gflop/s with a chance of 50.0 %", "N = 9216, NB = 192, 1 x 2 ranks, 1 a node, 1 thread each",
		"caveat     oversubscribed: two machines share a core", "AMD EPYC 9354", "it was killed", "50.0 % of 112.5 Gflop/s",
		"Processors meanwhile, in cores", "user    =#         1.500  2.000", "wait    _.         0.125  0.250",
	} {
		if r := w.run("bench", "show", "cfd"); r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("no %q: status %d\n%s%s", want, r.code, r.out, r.err)
		}
	}
	if r := w.run("bench", "show", "cfd", string(fast.ID)); r.code != 0 || !strings.Contains(r.out, "67.5 Gflop/s") {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
	w.refused(3, muster.ReasonNoSuchResult, "bench", "show", "cfd", "hr-2222222222")
	w.refused(2, muster.ReasonBadUsage, "bench", "show").naming("CLUSTER")
	w.refused(2, muster.ReasonBadUsage, "bench", "show", "cfd", "a", "b").naming(`"b"`)
	w.refused(3, muster.ReasonNoSuchCluster, "bench", "list", "nothing").naming("nothing")
}
