package nodeconf_test

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/nodeconf"
	"github.com/muster-hpc/muster/wire"
)

// What was decided about nodes and their cluster is in everybody's
// configuration.
func TestFlagsAreTold(t *testing.T) {
	t.Parallel()
	in := input(3, false)
	in.Nodes[0].Hold = true
	in.Nodes[1].Leave = true
	in.Nodes[2].Down = true
	in.Cluster.Measurement = &muster.Measurement{Phase: muster.MeasurementRunning, Reserve: []string{in.Nodes[1].Name}}
	in.Cluster.Notices = []muster.Notice{{ID: 1, Text: "soon"}}
	in.Cluster.Expires = time.Unix(1e9, 0)
	in.Cluster.Ending = time.Unix(1e9, 0)
	in.Mounts = func(n muster.Node) []wire.Mount {
		if n.Head {
			return []wire.Mount{{Source: "files:/slurm", Target: "/var/lib/slurm"}}
		}
		return nil
	}
	for _, n := range in.Nodes {
		in.Node = n
		c, err := nodeconf.Build(in)
		if err != nil {
			t.Fatal(err)
		}
		var flags int
		for _, h := range c.Hosts {
			for i, m := range in.Nodes {
				if m.Name == h.Name && h.Hold == (i == 0) && h.Drain == (i == 1) && h.Reserve == (i == 1) && h.Down == (i == 2) {
					flags++
				}
			}
		}
		if flags != 3 || len(c.Notices) != 1 || !c.Expires.Equal(in.Cluster.Expires) || c.Slurm != nil && !c.Slurm.Ending || (len(c.Mounts) == 1) != n.Head {
			t.Errorf("%s: %+v", n.Name, c)
		}
	}
}
