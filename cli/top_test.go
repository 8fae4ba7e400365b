package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// A node that has not reported yet is shown with what its machine has.
func TestTopOfANodeThatHasNotReported(t *testing.T) {
	t.Parallel()
	top := wire.Top{
		At:       time.Now(),
		Clusters: []wire.TopCluster{{ID: "c-1", Name: "cfd", Status: muster.ClusterReady, Up: 1, Nodes: 2, Cores: 16, MemoryTotal: 64 << 30}},
		Nodes: []wire.TopNode{
			{Node: "n01", Status: muster.NodeReady, Cores: 8, Memory: 32 << 30, Usage: &wire.Usage{CPUUser: 2, Load1: 1, MemoryUsed: 1 << 30, MemoryTotal: 31 << 30}, Seen: time.Now()},
			{Node: "n02", Status: muster.NodeBooting, Cores: 8, Memory: 32 << 30},
		},
	}
	var out bytes.Buffer
	(&topScreen{ref: "cfd"}).page(&out, top)
	for _, want := range []string{
		"cores busy 0.00 of 16   memory 0 B of 64 GiB",
		"n01 ready - 2.00 8 1.00 1 GiB 31 GiB",
		"n02 booting - - 8 - - 32 GiB - - - - -",
	} {
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, strings.Join(strings.Fields(want), " ")) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
