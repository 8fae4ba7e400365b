package slurm_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster/nodes/slurm"
	"github.com/muster-hpc/muster/wire"
)

// A cluster that grows, shrinks or gets other machines keeps its files: nothing
// is reconfigured or restarted for that.
func TestFilesDoNotDependOnNodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		make := func(label string) slurm.Cluster {
			c := slurm.Cluster{ID: "c-2345678923", Name: "cfd", Head: "head", HeadAddress: "10.128.0.10", Version: "24.11.5", Accounting: true, MemoryPerCore: 1000}
			c.Nodes = []wire.Host{{Name: "head", Address: "10.128.0.10", Cores: 1, Memory: 900 << 20}}
			for i := range rapid.IntRange(1, 300).Draw(t, label) {
				c.Nodes = append(c.Nodes, wire.Host{
					Name: fmt.Sprintf("n%03d", i+1), Address: fmt.Sprintf("10.128.%d.%d", 1+i/200, i%200), Compute: true,
					Cores: rapid.IntRange(1, 128).Draw(t, "cores"), Memory: rapid.Int64Range(1, 1<<20).Draw(t, "memory") << 20,
					Hold: rapid.Bool().Draw(t, "hold"), Down: rapid.Bool().Draw(t, "down"),
				})
			}
			return c
		}
		if !slices.Equal(slurm.Files(make("before")), slurm.Files(make("after"))) {
			t.Error("the files differ")
		}
	})
}

// A login node has what Slurm's commands read and nothing that runs jobs or
// keeps secrets.
func TestLoginNode(t *testing.T) {
	t.Parallel()
	c := clusters()["24.11-separate"]
	c.Nodes = append(c.Nodes, wire.Host{Name: "login1", Address: "10.128.16.20", Cores: 2, Memory: 2000 << 20})
	s := slurm.Config(c, "login1")
	if s.NodeConf != "" || s.Accounting || s.NodeLines != nil || len(s.Files) != 3 {
		t.Errorf("%+v", s)
	}
	for _, f := range s.Files {
		if f.Path == "/etc/slurm/slurmdbd.conf" {
			t.Error("the database's file is the head's")
		}
	}
	head := slurm.Config(c, "head")
	if head.Files[0] != s.Files[0] || len(head.NodeLines) != 2 {
		t.Errorf("head: %+v", head)
	}
	if n := slurm.Config(c, "n01"); n.Files != nil || n.NodeConf == "" {
		t.Errorf("compute: %+v", n)
	}
}
