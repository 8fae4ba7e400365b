package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// A deleted cluster has used something, and uses nothing now.
func TestUsageNow(t *testing.T) {
	t.Parallel()
	value := func(v float64) *float64 { return &v }
	u := wire.ClusterUsage{
		ID: "c-1", Name: "cfd",
		Curves: map[string]wire.Curve{"jobs_running": {Min: 2, Mean: 3, Max: 7, Points: []*float64{value(2), nil, value(7)}}},
		Nodes: []wire.NodeUsage{{Node: "n01", Curves: map[string]wire.Curve{
			"load1":                      {Min: 1, Mean: 1, Max: 1, Points: []*float64{value(1), value(1), nil}}, // the last has just begun
			"disk_read_bytes_per_second": {Min: 1, Mean: 1, Max: 1, Points: []*float64{value(1), nil, nil}},
			"cpu_user":                   {Min: 1, Mean: 1, Max: 1, Points: []*float64{value(1), value(1), value(1)}},
			"cpu_system":                 {Min: 1, Mean: 1, Max: 1, Points: []*float64{value(1), value(1), value(4)}},
			"memory_used_bytes":          {Min: 1, Mean: 1, Max: 1, Points: []*float64{value(1), value(1), value(1)}},
			"memory_total_bytes":         {Min: 4, Mean: 4, Max: 4, Points: []*float64{value(4), value(4), value(4)}},
		}}},
	}
	for _, c := range []struct {
		status muster.ClusterPhase
		now    map[string]string
	}{
		{muster.ClusterReady, map[string]string{"jobs running": "7", "load": "1.00", "cpu (cores)": "5.00", "memory": "B", "disk read": "-"}},
		{muster.ClusterDeleting, map[string]string{"jobs running": "7", "load": "1.00"}},
		{muster.ClusterDeleted, map[string]string{"jobs running": "-", "load": "-", "cpu (cores)": "-", "memory": "-", "disk read": "-"}},
	} {
		u.Status = c.status
		var out bytes.Buffer
		(&usagePage{width: 80, ascii: true}).cluster(&out, u)
		for label, want := range c.now {
			for line := range strings.Lines(out.String()) {
				words := strings.Fields(line)
				if strings.HasPrefix(strings.TrimSpace(line), label+" ") && words[len(words)-1] != want {
					t.Errorf("%s: NOW of %s is %q, want %q\n%s", c.status, label, words[len(words)-1], want, out.String())
				}
			}
			if !strings.Contains(out.String(), label) {
				t.Errorf("no %s in\n%s", label, out.String())
			}
		}
		if c.status == muster.ClusterDeleted && !strings.Contains(out.String(), "7") {
			t.Errorf("what was used is forgotten:\n%s", out.String())
		}
	}
}
