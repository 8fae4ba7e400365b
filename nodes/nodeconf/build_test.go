package nodeconf_test

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/nodeconf"
	"github.com/muster-hpc/muster/nodes/slurm"
)

// input is a cluster of n compute nodes and, if separate, a head beside them.
func input(n int, separate bool) nodeconf.Input {
	in := nodeconf.Input{
		Cluster: muster.Cluster{
			ID: "c-2345678923", Name: "cfd", Project: "p", Subnet: netip.MustParsePrefix("10.128.16.0/20"),
			Spec: muster.Spec{Scheduler: muster.SchedulerSlurm, Users: []string{"bob", "alice"}, Egress: muster.EgressProxy},
		},
		Machines: map[muster.MachineID]muster.Machine{},
		Users:    []muster.User{{Name: "bob", UID: 20001}, {Name: "alice", UID: 20000, Keys: []string{"ssh-ed25519 AAAA a"}}},
		Secrets: nodeconf.Secrets{
			HostKey: "host private", HostCA: "host ca", UserCA: "user ca",
			MungeKey: []byte("munge secret munge secret munge s"), RootKey: "root private", RootPublicKey: "root public", DBPassword: "db secret",
		},
		Image:      muster.Image{Name: "hpc", Slurm: "24.11.5", Packages: []muster.ImagePackage{{Name: "slurmdbd"}, {Name: "mariadb-server"}}},
		Generation: 7,
		Proxy:      func(muster.Node) string { return "http://10.90.0.1:3128" },
		Slurm:      slurm.Config,
	}
	add := func(name string, role muster.Role, head bool) {
		i := len(in.Nodes)
		id := muster.MachineID(fmt.Sprintf("local-%02d", i))
		in.Machines[id] = muster.Machine{ID: id, Facts: muster.Facts{Cores: 2, Memory: 4 << 30}}
		in.Nodes = append(in.Nodes, muster.Node{
			Name: name, Index: i, Role: role, Head: head, Machine: id,
			Address: netip.AddrFrom4([4]byte{10, 128, byte(16 + i/200), byte(10 + i%200)}),
		})
	}
	if separate {
		add("head", muster.RoleHead, true)
	}
	for i := range n {
		add(fmt.Sprintf("n%02d", i+1), muster.RoleCompute, i == 0 && !separate)
	}
	in.Node = in.Nodes[0]
	return in
}

func TestBuildHead(t *testing.T) {
	t.Parallel()
	in := input(3, true)
	slices.Reverse(in.Nodes) // the order of records does not matter
	c, err := nodeconf.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	if c.Node != "head" || !c.Head || c.HeadNode != "head" || c.Domain != "cfd.muster" || c.Generation != 7 {
		t.Errorf("who: %+v", c)
	}
	if c.Address != "10.128.16.10/20" {
		t.Errorf("address %s", c.Address)
	}
	var names []string
	for _, h := range c.Hosts {
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "head n01 n02 n03" {
		t.Errorf("hosts: %s", got)
	}
	if c.Hosts[0].Compute || !c.Hosts[1].Compute {
		t.Errorf("a separate head takes no jobs: %+v", c.Hosts)
	}
	if c.Hosts[1].Memory != (4096-128)<<20 || c.Hosts[0].Memory != (4096-128-256)<<20 {
		t.Errorf("memory: %+v", c.Hosts)
	}
	if c.Users[0].Name != "alice" || c.Users[0].UID != 20000 || c.Users[0].GID != 20000 {
		t.Errorf("users: %+v", c.Users)
	}
	if c.ProxyURL == "" {
		t.Error("no proxy")
	}
	if c.SSH.PrincipalSuffix != "@c-2345678923" || c.SSH.RootKey != "" {
		t.Errorf("ssh: principal %q, or root's key where users are not root", c.SSH.PrincipalSuffix)
	}
	key, err := base64.StdEncoding.DecodeString(c.Slurm.MungeKey)
	if err != nil || string(key) != string(in.Secrets.MungeKey) {
		t.Errorf("munge key does not arrive")
	}
	if !c.Slurm.Accounting || c.Slurm.DBPassword == "" || len(c.Slurm.NodeLines) != 3 {
		t.Errorf("slurm of the head: %+v", c.Slurm)
	}
}

func TestBuildCompute(t *testing.T) {
	t.Parallel()
	in := input(2, false)
	in.Node = in.Nodes[1]
	in.Cluster.Spec.Egress = muster.EgressNone
	in.Image.UserRoot = true
	m := in.Machines[in.Node.Machine]
	m.Facts.Oversubscribed = true
	in.Machines[in.Node.Machine] = m
	c, err := nodeconf.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	if c.Head || c.HeadNode != "n01" || c.Slurm.DBPassword != "" || len(c.Slurm.Files) != 0 {
		t.Errorf("what is the head's is only for the head: %+v", c)
	}
	if c.ProxyURL != "" || c.SSH.RootKey == "" || !c.UserRoot || !c.Oversubscribed {
		t.Errorf("policy: %+v", c)
	}
}

func TestBuildWithoutScheduler(t *testing.T) {
	t.Parallel()
	in := input(1, false)
	in.Cluster.Spec.Scheduler = muster.SchedulerNone
	c, err := nodeconf.Build(in)
	if err != nil || c.Slurm != nil {
		t.Errorf("%v %+v", err, c.Slurm)
	}
}

func TestBuildRefusesContradictions(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*nodeconf.Input){
		"no head":        func(in *nodeconf.Input) { in.Nodes[0].Head = false },
		"two heads":      func(in *nodeconf.Input) { in.Nodes[1].Head = true },
		"stranger":       func(in *nodeconf.Input) { in.Node.Name = "x" },
		"gone":           func(in *nodeconf.Input) { in.Nodes[0].Phase = muster.NodeGone },
		"other subnet":   func(in *nodeconf.Input) { in.Nodes[1].Address = netip.MustParseAddr("10.90.0.7") },
		"unknown user":   func(in *nodeconf.Input) { in.Cluster.Spec.Users = []string{"carol"} },
		"image no slurm": func(in *nodeconf.Input) { in.Image.Slurm = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(2, false)
			spoil(&in)
			_, err := nodeconf.Build(in)
			if muster.CodeOf(err) == "" {
				t.Error("no error")
			}
			for _, secret := range []string{"private", "secret"} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("a secret in %v", err)
				}
			}
		})
	}
}

// Whatever the machines are, the scheduler gets nodes of some size that fit.
func TestCapacity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := input(rapid.IntRange(1, 5).Draw(t, "nodes"), rapid.Bool().Draw(t, "separate"))
		for id, m := range in.Machines {
			m.Facts.Memory = rapid.Int64Range(0, 1<<42).Draw(t, "memory")
			m.Facts.Cores = rapid.IntRange(0, 512).Draw(t, "cores")
			in.Machines[id] = m
		}
		if rapid.Bool().Draw(t, "empty") {
			in.Nodes[len(in.Nodes)-1].Machine = ""
		}
		c, err := nodeconf.Build(in)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range c.Hosts {
			have := in.Machines[in.Nodes[i].Machine].Facts
			if h.Cores < 1 || h.Memory < 1<<20 {
				t.Fatalf("%+v", h)
			}
			if in.Nodes[i].Machine != "" && h.Memory > max(1<<20, have.Memory) {
				t.Fatalf("%+v is more than %+v", h, have)
			}
		}
	})
}
