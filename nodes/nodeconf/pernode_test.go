package nodeconf_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/nodeconf"
	"github.com/muster-hpc/muster/wire"
)

// What a node mounts and where its way out is depends on its machine, not on its cluster.
func TestPerNode(t *testing.T) {
	t.Parallel()
	in := input(2, false)
	own := in.Nodes[1].Machine // has a kernel of its own
	in.Proxy = func(n muster.Node) string {
		if n.Machine == own {
			return "http://10.0.0.1:3128"
		}
		return ""
	}
	in.Mounts = func(n muster.Node) []wire.Mount {
		if n.Machine == own {
			return []wire.Mount{{Source: "server:/v", Target: "/home", Type: "nfs4"}}
		}
		return nil
	}
	for i, want := range []struct {
		proxy  string
		mounts int
	}{{"", 0}, {"http://10.0.0.1:3128", 1}} {
		in.Node = in.Nodes[i]
		c, err := nodeconf.Build(in)
		if err != nil || c.ProxyURL != want.proxy || len(c.Mounts) != want.mounts {
			t.Errorf("%s: %q %v %v", in.Node.Name, c.ProxyURL, c.Mounts, err)
		}
	}
}
