package configure

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

// Most changes are of other nodes: they run no program on this one.
func TestOtherNodesChange(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	cfg := members(wire.Host{Name: "n01"}, wire.Host{Name: "n02"})
	cfg.Node, cfg.Head = "n02", false
	cfg.Slurm.Files, cfg.Slurm.NodeLines = nil, nil
	if err := c.files.mkdirs("/home"); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err != nil {
		t.Fatal(err)
	}
	ran := len(run.lines())
	cfg.Generation = 2
	cfg.Hosts = append(cfg.Hosts, wire.Host{Name: "n03", Address: "10.128.0.12", Compute: true, Hold: true})
	if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err != nil {
		t.Fatal(err)
	}
	if extra := run.lines()[ran:]; len(extra) != 0 {
		t.Errorf("ran %q", extra)
	}
	if !strings.Contains(tree(t, root)["/etc/hosts"], "n03") {
		t.Error("n03 is not known")
	}
}
