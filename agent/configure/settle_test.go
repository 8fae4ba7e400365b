package configure

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster/wire"
)

// members makes a configuration of the head with these hosts.
func members(hosts ...wire.Host) *wire.NodeConfig {
	cfg := config()
	cfg.Hosts, cfg.Slurm.NodeLines, cfg.Slurm.Accounting = nil, nil, false
	for i, h := range hosts {
		h.Compute, h.Address = true, fmt.Sprintf("10.128.0.%d", 10+i)
		cfg.Hosts = append(cfg.Hosts, h)
		cfg.Slurm.NodeLines = append(cfg.Slurm.NodeLines, wire.NodeLine{Name: h.Name, Args: []string{"NodeName=" + h.Name, "State=FUTURE"}})
	}
	return cfg
}

func commands(cfg *wire.NodeConfig, m *slurmModel) string {
	text, _ := m.answer("sinfo")
	var out []string
	for _, args := range plan(cfg, parseSinfo(text), false, nil, nil) {
		out = append(out, strings.Join(args, " "))
	}
	return strings.Join(out, "; ")
}

func TestPlan(t *testing.T) {
	t.Parallel()
	n := func(name string) wire.Host { return wire.Host{Name: name} }
	for name, c := range map[string]struct {
		hosts []wire.Host
		set   func(m *slurmModel)
		want  string
	}{
		"nothing to do": {hosts: []wire.Host{n("n01"), n("n02")}},
		"all are new":   {hosts: []wire.Host{n("n01"), n("n02"), n("n03")}, want: "create NodeName=n03 State=FUTURE"},
		"leaving":       {hosts: []wire.Host{n("n01"), {Name: "n02", Drain: true}}, want: "update NodeName=n02 State=DRAIN Reason=muster: leaving"},
		"lost":          {hosts: []wire.Host{n("n01"), {Name: "n02", Down: true}}, want: "update NodeName=n02 State=DRAIN Reason=muster: machine lost; update NodeName=n02 State=DOWN Reason=muster: machine lost"},
		"reserved":      {hosts: []wire.Host{n("n01"), {Name: "n02", Reserve: true}}, want: "update NodeName=n02 State=DRAIN Reason=muster: its speed is measured"},
		"stays reserved": {hosts: []wire.Host{n("n01"), {Name: "n02", Reserve: true}},
			set: func(m *slurmModel) {
				_, _ = m.answer("scontrol update NodeName=n02 State=DRAIN Reason=" + reasonReserve)
			}},
		"measured": {hosts: []wire.Host{n("n01"), n("n02")}, want: "update NodeName=n02 State=UNDRAIN",
			set: func(m *slurmModel) {
				_, _ = m.answer("scontrol update NodeName=n02 State=DRAIN Reason=" + reasonReserve)
			}},
		"reserved and drained by somebody": {hosts: []wire.Host{n("n01"), {Name: "n02", Reserve: true}},
			set: func(m *slurmModel) { _, _ = m.answer("scontrol update NodeName=n02 State=DRAIN Reason=bad memory") }},
		"reserved, and it does not leave any more": {hosts: []wire.Host{n("n01"), {Name: "n02", Reserve: true}},
			set: func(m *slurmModel) { _, _ = m.answer("scontrol update NodeName=n02 State=DRAIN Reason=" + reasonGoes) }},
		"gone":           {hosts: []wire.Host{n("n01")}, want: "update NodeName=n02 State=DRAIN Reason=muster: left the cluster; update NodeName=n02 State=DOWN Reason=muster: left the cluster; update NodeName=n02 State=FUTURE"},
		"gone with jobs": {hosts: []wire.Host{n("n01")}, set: func(m *slurmModel) { m.nodes["n02"].base = "allocated" }, want: "update NodeName=n02 State=DRAIN Reason=muster: left the cluster; update NodeName=n02 State=DOWN Reason=muster: left the cluster"},
		"leaving is undone": {hosts: []wire.Host{n("n01"), n("n02")}, want: "update NodeName=n02 State=UNDRAIN",
			set: func(m *slurmModel) { _, _ = m.answer("scontrol update NodeName=n02 State=DRAIN Reason=" + reasonGoes) }},
		"drained by somebody": {hosts: []wire.Host{n("n01"), {Name: "n02", Drain: true}},
			set: func(m *slurmModel) { _, _ = m.answer("scontrol update NodeName=n02 State=DRAIN Reason=bad memory") }},
		"somebody's stays": {hosts: []wire.Host{n("n01"), n("n02")},
			set: func(m *slurmModel) { _, _ = m.answer("scontrol update NodeName=n02 State=DRAIN Reason=bad memory") }},
		"found again": {hosts: []wire.Host{n("n01"), n("n02")}, want: "update NodeName=n02 State=RESUME",
			set: func(m *slurmModel) {
				_, _ = m.answer("scontrol update NodeName=n02 State=DRAIN Reason=" + reasonLost)
				_, _ = m.answer("scontrol update NodeName=n02 State=DOWN Reason=" + reasonLost)
			}},
		"answers although lost": {hosts: []wire.Host{n("n01"), {Name: "n02", Down: true}},
			set: func(m *slurmModel) { _, _ = m.answer("scontrol update NodeName=n02 State=DRAIN Reason=" + reasonLost) }},
		"has a job although lost": {hosts: []wire.Host{n("n01"), {Name: "n02", Down: true}}, want: "update NodeName=n02 State=DOWN Reason=muster: machine lost",
			set: func(m *slurmModel) {
				_, _ = m.answer("scontrol update NodeName=n02 State=DRAIN Reason=" + reasonLost)
				m.nodes["n02"].base = "mixed"
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newSlurm("n01", "n02")
			if c.set != nil {
				c.set(m)
			}
			if got := commands(members(c.hosts...), m); got != c.want {
				t.Errorf("%q instead of %q", got, c.want)
			}
		})
	}
}

// Nodes of one size are declared by one message, in their order.
func TestPlanDeclaresTogether(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Slurm.NodeLines = nil
	for i, cpus := range []int{2, 2, 4, 2} {
		cfg.Slurm.NodeLines = append(cfg.Slurm.NodeLines, wire.NodeLine{Name: fmt.Sprintf("n%02d", i+1), Args: []string{
			fmt.Sprintf("NodeName=n%02d", i+1), fmt.Sprintf("NodeAddr=10.128.0.1%d", i), fmt.Sprintf("CPUs=%d", cpus), "State=FUTURE",
		}})
	}
	want := "create NodeName=n01,n02 NodeAddr=10.128.0.10,10.128.0.11 CPUs=2 State=FUTURE; create NodeName=n03 NodeAddr=10.128.0.12 CPUs=4 State=FUTURE; create NodeName=n04 NodeAddr=10.128.0.13 CPUs=2 State=FUTURE"
	if got := commands(cfg, newSlurm()); got != want {
		t.Errorf("%q", got)
	}
	// A successor of another size is another node to Slurm.
	m := newSlurm("n01")
	*m.nodes["n01"] = slurmNode{base: "future", cpus: 4, memory: 900, addr: "10.128.0.10"}
	cfg.Slurm.NodeLines = cfg.Slurm.NodeLines[:1]
	if got := commands(cfg, m); got != "delete NodeName=n01" {
		t.Errorf("%q", got)
	}
}

// Whatever the scheduler thinks and whatever is wanted next: it comes to be
// so, repeated plans end, and nobody else's decisions are undone.
func TestPlanSettles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newSlurm()
		for round := range rapid.IntRange(1, 6).Draw(t, "rounds") {
			var hosts []wire.Host
			for i := range rapid.IntRange(1, 6).Draw(t, "hosts") {
				h := wire.Host{Name: fmt.Sprintf("n%02d", i+1)}
				switch rapid.IntRange(0, 4).Draw(t, "flag") {
				case 0:
					h.Down = true
				case 1:
					h.Drain = true
				case 2:
					h.Hold = true
				case 3:
					h.Reserve = true
				}
				hosts = append(hosts, h)
			}
			cfg := members(hosts...)
			for name, n := range m.nodes {
				if usable(n.word()) && rapid.Bool().Draw(t, "job") {
					n.base, m.jobs[name] = "allocated", true
				}
			}
			k := 0
			for ; k < 6; k++ {
				text, _ := m.answer("sinfo")
				todo := plan(cfg, parseSinfo(text), false, nil, nil)
				if len(todo) == 0 {
					break
				}
				for _, args := range todo {
					_, _ = m.answer("scontrol " + strings.Join(args, " "))
				}
			}
			if k == 6 {
				t.Fatalf("round %d never settles: %s", round, commands(cfg, m))
			}
			for _, h := range hosts {
				if !h.Hold && !h.Down && m.nodes[h.Name].base != "allocated" {
					m.register(h.Name)
				}
			}
			for name, n := range m.nodes {
				i := slices.IndexFunc(hosts, func(h wire.Host) bool { return h.Name == name })
				switch {
				case i < 0:
					if !n.future() {
						t.Fatalf("%s left and is %+v", name, n)
					}
				case hosts[i].Down && (m.jobs[name] || !n.future() && usable(n.word())):
					t.Fatalf("%s is lost and %+v", name, n)
				case hosts[i].Drain && !hosts[i].Down && usable(n.word()) && round > 0 && !n.has("drain") && commands(cfg, m) == "":
					t.Fatalf("%s leaves and takes jobs: %+v", name, n)
				case hosts[i].Reserve && !hosts[i].Down && usable(n.word()) && round > 0 && !n.has("drain") && commands(cfg, m) == "":
					t.Fatalf("%s is reserved and takes jobs: %+v", name, n)
				case !hosts[i].Down && !hosts[i].Drain && !hosts[i].Hold && !hosts[i].Reserve && !usable(n.word()):
					t.Fatalf("%s takes no jobs: %+v", name, n)
				}
			}
			for name := range m.jobs {
				if m.nodes[name].base == "allocated" && rapid.Bool().Draw(t, "end") {
					delete(m.jobs, name)
					m.nodes[name].base = "idle"
				}
			}
		}
	})
}

// A whole cluster grows, loses a machine and shrinks while its head watches.
func TestHeadFollowsTheCluster(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	m := newSlurm()
	run.answer = m.answer
	r := newReport(t)
	apply := func(generation int64, hosts ...wire.Host) {
		t.Helper()
		cfg := members(hosts...)
		cfg.Generation = generation
		if err := c.Apply(t.Context(), copied(cfg), r); err != nil {
			t.Fatal(err)
		}
	}
	n1, n2, n3 := wire.Host{Name: "n01"}, wire.Host{Name: "n02"}, wire.Host{Name: "n03"}
	apply(1, n1, n2)
	m.register("n01")
	m.register("n02")
	eventually(t, "both idle", func() bool { return r.state().Nodes["n02"] == "idle" })
	held := n3
	held.Hold = true
	apply(2, n1, n2, held)
	eventually(t, "n03 declared", func() bool { return run.count("scontrol create NodeName=n03") == 1 })
	apply(3, n1, n2, n3)
	m.register("n03")
	eventually(t, "n03 idle", func() bool { return r.state().Nodes["n03"] == "idle" })

	lost := n2
	lost.Hold, lost.Down = true, true
	apply(4, n1, lost, n3)
	eventually(t, "n02 down", func() bool { return r.state().Nodes["n02"] == "drained" })
	apply(5, n1, n2, n3)
	eventually(t, "n02 may come back", func() bool { return m.word("n02") == "idle*" })
	m.register("n02")
	eventually(t, "n02 idle", func() bool { return r.state().Nodes["n02"] == "idle" })

	leaving := n3
	leaving.Drain = true
	apply(6, n1, n2, leaving)
	eventually(t, "n03 drained", func() bool { return r.state().Nodes["n03"] == "drained" })
	apply(7, n1, n2)
	eventually(t, "n03 gone", func() bool { _, ok := r.state().Nodes["n03"]; return !ok && len(r.state().Nodes) == 2 })
	apply(8, n1, n2, n3)
	m.register("n03")
	eventually(t, "n03 back", func() bool { return r.state().Nodes["n03"] == "idle" })
	if n := run.count("scontrol reconfigure"); n > 0 {
		t.Errorf("reconfigured %d times", n)
	}
	if run.count("scontrol create") != 2 || run.count("systemctl restart") != 0 || slices.Contains(run.lines(), "systemctl stop --no-block slurmd.service") {
		t.Errorf("%q", run.lines())
	}
}

// A scheduler that knows where nodes stand reads its tree again after each node that is
// new to it: else no job starts there. A partition that is closed stays so.
func TestTreeIsReadAfterCreate(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	m := newSlurm()
	run.answer = m.answer
	r := newReport(t)
	apply := func(generation int64, topology string, ending bool, hosts ...wire.Host) {
		t.Helper()
		cfg := members(hosts...)
		cfg.Generation, cfg.Slurm.Tree, cfg.Slurm.Ending = generation, true, ending
		cfg.Slurm.Files = append(cfg.Slurm.Files, wire.File{Path: "/etc/slurm/topology.conf", Mode: 0o644, Content: topology})
		if err := c.Apply(t.Context(), copied(cfg), r); err != nil {
			t.Fatal(err)
		}
	}
	last := func(prefix string) int {
		at := -1
		for i, l := range run.lines() {
			if strings.HasPrefix(l, prefix) {
				at = i
			}
		}
		return at
	}
	n1, n2 := wire.Host{Name: "n01"}, wire.Host{Name: "n02"}
	apply(1, "SwitchName=a Nodes=n01\n", false, n1)
	if last("scontrol create") < 0 || last("scontrol reconfigure") < last("scontrol create") {
		t.Errorf("%q", run.lines())
	}
	m.register("n01")
	apply(2, "SwitchName=a Nodes=n[01-02]\n", false, n1, n2)
	eventually(t, "the tree is read after n02", func() bool {
		at := last("scontrol create NodeName=n02")
		return at >= 0 && last("scontrol reconfigure") > at
	})
	m.register("n02")
	apply(3, "SwitchName=a Nodes=n[01-02]\nSwitchName=b Switches=a\n", true, n1, n2)
	eventually(t, "the partition is closed again", func() bool {
		return last("scontrol update PartitionName=main State=INACTIVE") > last("scontrol reconfigure")
	})
}

// A held node does everything but start slurmd, and does not need its head.
func TestHeldNode(t *testing.T) {
	t.Parallel()
	c, run, root := node(t)
	if err := os.MkdirAll(filepath.Join(root, "home"), 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := members(wire.Host{Name: "n01"}, wire.Host{Name: "n02", Hold: true})
	cfg.Node, cfg.Head = "n02", false
	cfg.Slurm.Files, cfg.Slurm.NodeLines = nil, nil
	c.o.Timeout = time.Hour // of who waits for a head
	began := time.Now()
	r := newReport(t)
	if err := c.Apply(t.Context(), copied(cfg), r); err != nil {
		t.Fatal(err)
	}
	if run.count("systemctl start --no-block slurmd") != 0 || !r.check("sshd").OK || !r.check("munge").OK || time.Since(began) > time.Minute {
		t.Errorf("%q", run.lines())
	}
	cfg.Hosts[1].Hold = false
	if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err != nil {
		t.Fatal(err)
	}
	if run.count("systemctl start --no-block slurmd") != 1 {
		t.Errorf("%q", run.lines())
	}
	cfg.Hosts[1].Hold = true
	if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err != nil {
		t.Fatal(err)
	}
	if run.count("systemctl stop --no-block slurmd") != 1 {
		t.Errorf("%q", run.lines())
	}
}

// A new head with the old state: what ran on the lost one is given up before
// its own slurmd registers.
func TestHeadIsReplaced(t *testing.T) {
	t.Parallel()
	c, run, _ := node(t)
	if _, err := c.files.write(slurmState+"/clustername", "cfd|77", 0o644, ""); err != nil {
		t.Fatal(err)
	}
	m := newSlurm("n01", "n02")
	m.nodes["n01"].base, m.jobs["n01"] = "allocated", true
	run.answer = func(line string) (string, error) {
		if line == "systemctl start --no-block slurmd.service" {
			if m.word("n01") != "drained" {
				t.Errorf("slurmd starts while its node is %s", m.word("n01"))
			}
			m.register("n01")
		}
		return m.answer(line)
	}
	r := newReport(t)
	if err := c.Apply(t.Context(), members(wire.Host{Name: "n01"}, wire.Host{Name: "n02"}), r); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its own node is back", func() bool { return r.state().Nodes["n01"] == "idle" })
	if run.count("scontrol reconfigure") == 0 || run.count("scontrol create") != 0 {
		t.Errorf("%q", run.lines())
	}
	if text, _ := c.files.read(slurmState + "/clustername"); text != "cfd|77" && text != "cfd|2013" {
		t.Errorf("seeded again: %q", text)
	}
}
