package measure

import (
	"fmt"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

// Nodes that lack the same are told together, once, however many launches said so.
func TestOmitted(t *testing.T) {
	t.Parallel()
	var launches []analysis.Launch
	for range 15 {
		launches = append(launches, analysis.Launch{Omitted: []analysis.Omitted{
			{Host: "n02", What: "net", Text: "its image has no iperf3"}, {Host: "n01", What: "disk", Text: "its image has no fio"},
			{Host: "n02", What: "disk", Text: "its image has no fio"},
		}})
	}
	got := omitted(launches)
	want := []muster.Omission{{What: "disk", Text: "n[01-02]: its image has no fio"}, {What: "net", Text: "n02: its image has no iperf3"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v", got)
	}
	for i := range 100 {
		launches = append(launches, analysis.Launch{Omitted: []analysis.Omitted{{Host: "n01", What: "net", Text: fmt.Sprint("error ", i)}}})
	}
	if n := len(omitted(launches)); n != mostOmissions {
		t.Errorf("%d are told", n)
	}
}
