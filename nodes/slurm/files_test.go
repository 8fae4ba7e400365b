package slurm_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster/nodes/slurm"
	"github.com/muster-hpc/muster/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

func clusters() map[string]slurm.Cluster {
	shared := []wire.Host{
		{Name: "n01", Address: "10.128.0.10", Cores: 1, Memory: 2688 << 20, Compute: true},
		{Name: "n02", Address: "10.128.0.11", Cores: 1, Memory: 2944 << 20, Compute: true},
	}
	separate := []wire.Host{
		{Name: "head", Address: "10.128.16.10", Cores: 2, Memory: 1500 << 20},
		{Name: "n01", Address: "10.128.16.11", Cores: 64, Memory: 256000 << 20, Compute: true},
		{Name: "n02", Address: "10.128.16.12", Cores: 32, Sockets: 2, Scratch: 1 << 30, Memory: 64000 << 20, Compute: true},
	}
	whole := []wire.Host{
		{Name: "n01", Address: "10.128.32.10", Cores: 63, Sockets: 2, Scratch: 1 << 40, Memory: 64000 << 20, Compute: true, GPUs: 4, GPUFiles: "/dev/nvidia[0-3]"},
	}
	return map[string]slurm.Cluster{
		"24.11-shared":   {ID: "c-2345678923", Name: "cfd", Head: "n01", HeadAddress: "10.128.0.10", Version: "24.11.5", Nodes: shared, Accounting: true},
		"24.11-separate": {ID: "c-2345678924", Name: "my-runs", Head: "head", HeadAddress: "10.128.16.10", Version: "24.11.5", Nodes: separate, Accounting: true},
		"24.11-metal":    {ID: "c-2345678926", Name: "bare", Head: "n01", HeadAddress: "10.128.32.10", Version: "24.11.5", Nodes: whole, Accounting: true, OwnKernel: true, TmpFS: "/scratch"},
		"24.11-tree": {
			ID: "c-2345678927", Name: "wide", Head: "n01", HeadAddress: "10.128.0.10", Version: "24.11.5", Nodes: shared, Tree: true,
			Places: map[string][]string{"n01": {"dc1", "core", "leaf1"}, "n02": {"dc1", "core", "leaf2", "enc1"}},
		},
		"22.05-plain": {ID: "c-2345678925", Name: "old", Head: "n01", HeadAddress: "10.128.0.10", Version: "22.05.8", Nodes: shared},
	}
}

func TestFilesGolden(t *testing.T) {
	t.Parallel()
	for name, c := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, f := range slurm.Files(c) {
				b.WriteString("==> " + f.Path + " " + f.Owner + "\n" + f.Content)
			}
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(want) {
				t.Errorf("differs from %s (go test -update writes it anew):\n%s", path, b.String())
			}
		})
	}
}

func TestConfigGivesEachNodeItsPart(t *testing.T) {
	t.Parallel()
	c := clusters()["24.11-separate"]
	head := slurm.Config(c, "head")
	if head.NodeConf != "" || len(head.Files) == 0 || !head.Accounting {
		t.Errorf("a separate head runs slurmctld and no slurmd: %+v", head)
	}
	if len(head.NodeLines) != 2 || head.NodeLines[0].Name != "n01" || head.NodeLines[1].Name != "n02" {
		t.Errorf("compute nodes in their order, without the head: %+v", head.NodeLines)
	}
	node := slurm.Config(c, "n02")
	if node.NodeConf != "CPUs=32 Sockets=2 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=64000 TmpDisk=1024" || node.Server != "head" || len(node.Scripts) != 2 {
		t.Errorf("node: %+v", node)
	}
	if len(node.Files) != 0 || node.Accounting || len(node.NodeLines) != 0 {
		t.Errorf("a node asks the head for its files: %+v", node)
	}
	shared := slurm.Config(clusters()["24.11-shared"], "n01")
	if shared.NodeConf == "" || len(shared.NodeLines) != 2 {
		t.Errorf("a shared head computes too: %+v", shared)
	}
}

// Jobs that ask for nothing must be able to fill every node, one per core.
func TestDefaultMemoryFillsNodes(t *testing.T) {
	t.Parallel()
	def := regexp.MustCompile(`(?m)^DefMemPerCPU=(\d+)$`)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "nodes")
		c := slurm.Cluster{Name: "x", Head: "n01", HeadAddress: "10.0.0.1", Version: "24.11.5"}
		for range n {
			c.Nodes = append(c.Nodes, wire.Host{
				Name: "n01", Address: "10.0.0.1", Compute: true,
				Cores: rapid.IntRange(0, 256).Draw(t, "cores"), Memory: rapid.Int64Range(0, 1<<22).Draw(t, "memory") << 20,
			})
		}
		m := def.FindStringSubmatch(slurm.Files(c)[0].Content)
		if m == nil {
			t.Fatal("no DefMemPerCPU")
		}
		var per int64
		for _, d := range m[1] {
			per = per*10 + int64(d-'0')
		}
		for _, h := range c.Nodes {
			if per < 1 || per > 1 && per*int64(max(1, h.Cores)) > max(1, h.Memory>>20) {
				t.Fatalf("%d MiB for each of %d cores is more than %d", per, h.Cores, h.Memory>>20)
			}
		}
	})
}

func TestClusterName(t *testing.T) {
	t.Parallel()
	ok := regexp.MustCompile(`^[a-z0-9_]{1,40}$`)
	rapid.Check(t, func(t *rapid.T) {
		name := slurm.ClusterName(rapid.String().Draw(t, "name"))
		if !ok.MatchString(name) {
			t.Fatalf("%q", name)
		}
		if again := slurm.ClusterName(name); again != name {
			t.Fatalf("%q becomes %q", name, again)
		}
	})
}

func FuzzVersion(f *testing.F) {
	for _, s := range []string{"24.11.5", "22.05.8-4+deb12u3", "", "24.", "24.11", "-1.3", "99999999999999999999.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, version string) {
		for _, file := range slurm.Files(slurm.Cluster{Name: "a", Head: "n01", HeadAddress: "10.0.0.1", Version: version}) {
			if file.Path == "" || file.Content == "" {
				t.Fatalf("%+v", file)
			}
		}
	})
}
