package spec

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

// What is left open is as another request has it; what is said counts first, and what
// contradicts it is left out by name.
func TestInherit(t *testing.T) {
	t.Parallel()
	had := wire.Request{
		Name: "first", Project: "aero", Nodes: 6, Min: 4, Head: "shared", Logins: 1, Image: "hpc@0ddd19d63a2e", Scheduler: "slurm",
		Machine: wire.MachineConstraints{Class: "std", Rack: "r1", Cores: ">=4", Accelerators: ">=1", Accelerator: "H100"},
		Shape:   wire.ShapeWish{Cores: 2}, LinkRate: "1Gb/s", Placement: "spread", Within: "site",
		Users: []string{"alice"}, Walltime: "8h", Volumes: []string{"data"}, Priority: "scavenger", Egress: "nat",
	}
	machine := wire.Request{Name: "first", Nodes: 2, Machine: wire.MachineConstraints{Provider: "vm"}, VM: wire.VMWish{NIC: "vf"}, Placement: "pack", Within: "leaf"}
	for name, c := range map[string]struct {
		had  wire.Request
		ask  wire.Request
		want string // what the merged request has
		left string // what is left out, with |
	}{
		"all of it":             {had, wire.Request{}, "nodes 6 min 4 head shared logins 1 image hpc@0ddd19d63a2e slurm class std rack r1 cores >=4 accelerator H100 shape 2 rate 1Gb/s spread within site", ""},
		"said":                  {had, wire.Request{Nodes: 3, Head: "separate", Logins: 2, Image: "raw", Within: "any-site"}, "nodes 3 min 0 head separate logins 2 image raw  class std rack r1 cores >=4 accelerator H100 shape 2 rate 1Gb/s spread within any-site", ""},
		"within and spread":     {had, wire.Request{Within: "leaf"}, "nodes 6 min 4 head shared logins 1 image hpc@0ddd19d63a2e slurm class std rack r1 cores >=4 accelerator H100 shape 2 rate 1Gb/s  within leaf", "placement: spread: within: leaf and placement: spread contradict each other"},
		"spread and within":     {machine, wire.Request{Placement: "spread"}, "nodes 2 min 0 head  logins 0 image   class  rack  cores  accelerator  shape 0 rate  spread within ", "within: leaf: within: leaf and placement: spread contradict each other"},
		"no accelerators":       {had, wire.Request{Machine: wire.MachineConstraints{Accelerators: "=0"}}, "nodes 6 min 4 head shared logins 1 image hpc@0ddd19d63a2e slurm class std rack r1 cores >=4 accelerator  shape 2 rate 1Gb/s spread within site", "accelerator: H100: a model is asked of machines without accelerators"},
		"another class":         {had, wire.Request{Machine: wire.MachineConstraints{Class: "fat", Cores: "=1"}}, "nodes 6 min 4 head shared logins 1 image hpc@0ddd19d63a2e slurm class fat rack r1 cores =1 accelerator H100 shape 0 rate 1Gb/s spread within site", "shape: "},
		"no virtual machines":   {machine, wire.Request{Provider: "local"}, "nodes 2 min 0 head  logins 0 image   class  rack  cores  accelerator  shape 0 rate  pack within leaf", "vm: it says how virtual machines are to be"},
		"saved with its memory": {machine, wire.Request{OnPause: "save"}, "nodes 2 min 0 head  logins 0 image   class  rack  cores  accelerator  shape 0 rate  pack within leaf", "vm: a virtual machine with a virtual function cannot be saved"},
	} {
		c.ask.Name, c.ask.Like = "second", "first"
		got, left := Inherit(c.ask, c.had, Defaults{})
		text := strings.Join([]string{
			"nodes " + digit(got.Nodes), "min " + digit(got.Min), "head " + got.Head, "logins " + digit(got.Logins), "image " + got.Image, got.Scheduler, "class " + got.Machine.Class,
			"rack " + got.Machine.Rack, "cores " + got.Machine.Cores, "accelerator " + got.Machine.Accelerator, "shape " + digit(got.Shape.Cores), "rate " + got.LinkRate, got.Placement, "within " + got.Within,
		}, " ")
		if text != c.want {
			t.Errorf("%s:\n%q, not\n%q", name, text, c.want)
		}
		if joined := strings.Join(left, "|"); !strings.HasPrefix(joined, c.left) || (c.left == "") != (joined == "") {
			t.Errorf("%s: left out %q, not %q", name, joined, c.left)
		}
		if got.Name != "second" || got.Project != "" || len(got.Users)+len(got.Volumes) > 0 || got.Walltime != "" || got.Priority != "" || got.Egress != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func digit(n int) string { return string(rune('0' + n)) }
