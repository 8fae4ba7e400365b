package topology

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
)

const good = `
stands:
  - name: dc1
    kind: datacentre
  - {name: hall, kind: room, in: dc1}
  - {name: core, kind: spine, in: hall}
  - name: leaf1
    kind: leaf
    in: core
    uplink: 2 x 40Gb/s
    link: 10Gb/s
    machines: [n001, "n[003-012]"]
  - {name: leaf2, kind: leaf, in: core, uplink: 40Gb/s}
  - {name: enc1, kind: chassis, in: leaf2, uplink: 4 x 1Gb/s, link: 1Gb/s, machines: "n[101-114]"}
`

func TestRead(t *testing.T) {
	t.Parallel()
	tree, err := Read([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := []muster.Stand{
		{Name: "dc1", Kind: muster.StandDataCentre},
		{Name: "hall", Kind: muster.StandRoom, In: "dc1"},
		{Name: "core", Kind: muster.StandSpine, In: "hall"},
		{Name: "leaf1", Kind: muster.StandLeaf, In: "core", Uplink: 80e9, Cables: 2, Link: 10e9, Machines: "n[001,003-012]"},
		{Name: "leaf2", Kind: muster.StandLeaf, In: "core", Uplink: 40e9},
		{Name: "enc1", Kind: muster.StandChassis, In: "leaf2", Uplink: 4e9, Cables: 4, Link: 1e9, Machines: "n[101-114]"},
	}
	if !reflect.DeepEqual(tree.Stands, want) {
		t.Errorf("%+v", tree.Stands)
	}
	text, err := Write(tree.Stands, FormatMuster)
	again, err2 := Read([]byte(text))
	if err != nil || err2 != nil || !reflect.DeepEqual(again, tree) {
		t.Errorf("%v %v\n%s", err, err2, text)
	}
}

// Everything that is wrong is told at once, with its line and a cure.
func TestReadProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string // "field line", in any order
	}{
		"everything at once": {`stands:
  - {name: a, kind: spine, in: b}
  - {name: b, kind: spine, in: a}
  - {name: l1, kind: leaf, in: nowhere, uplink: 0, machines: "n[1-4]"}
  - {name: l2, kind: leaf, uplink: 1000Gb/s, link: 10, machines: "n[4-6]"}
  - {name: l1, kind: leaf, in: a}
  - {name: c1, kind: datacentre, in: l2, machines: x}
  - {name: c 2, kind: blade, colour: red, uplink: 0 x 1Gb/s}
  - {kind: leaf, machines: "n[3-"}
`, []string{
			"stands[0].in line 2", "stands[2].in line 4", "stands[2].uplink line 4", "stands[3].uplink line 5", "stands[3].link line 5", "stands[3].machines line 5",
			"stands[4].name line 6", "stands[5].in line 7", "stands[5].machines line 7", "stands[6].name line 8", "stands[6].kind line 8", "stands[6].colour line 8", "stands[6].uplink line 8",
			"stands[7].name line 9", "stands[7].machines line 9",
		}},
		"200,000 machines": {"stands:\n  - {name: l, kind: leaf, machines: \"n[000001-200000]\"}\n", []string{"stands[0].machines line 2"}},
		"slow":             {"stands:\n  - {name: l, kind: leaf, link: 999Kb/s}\n", []string{"stands[0].link line 2"}},
		"in itself":        {"stands:\n  - {name: l, kind: spine, in: l}\n", []string{"stands[0].in line 2"}},
		"too deep":         {"stands:\n" + chain(maxDepth+1), []string{fmt.Sprintf("stands[%d].in line %d", maxDepth, maxDepth+2)}},
		"nothing":          {"", []string{"file "}},
		"no list":          {"stands: 3\n", []string{"stands line 1"}},
		"no YAML":          {"stands: [", []string{"file "}},
		"two documents":    {"stands: []\n---\nstands: []\n", []string{"file "}},
		"not UTF-8":        {"stands: \xff", []string{"file "}},
		"topology.conf": {`# a comment
SwitchName=s1 Nodes=n[1-4] Nodes=n5
SwitchName=s2 Nodes=n[4-6] Switches=s1
SwitchName=top Switches=s[1-3] \
  LinkSpeed=100 Colour=red
SwitchName=dangling
Switches=s1
SwitchName=s1 Nodes=n7
`, []string{"Nodes line 2", "SwitchName=s2.nodes line 3", "SwitchName=s2.machines line 3", "SwitchName=top.switches line 4", "SwitchName=top.switches line 4", "colour line 4", "SwitchName=dangling line 6", "SwitchName line 7", "SwitchName=s1.name line 8"}},
		"blocks":             {"BlockName=b1 Nodes=n[1-4]\nBlockSizes=4\n", []string{"BlockName line 1", "BlockSizes line 2"}},
		"a cycle of Slurm's": {"SwitchName=a Switches=b\nSwitchName=b Switches=a\n", []string{"SwitchName=a.in line 1"}},
		"topology.yaml": {`- topology: t
  tree:
    switches:
      - {switch: a, children: "b,d"}
      - {switch: b, nodes: "n[1-3]"}
      - {switch: c, nodes: "n3", children: b}
      - {nodes: n9}
- topology: u
  tree: {}
- topology: v
  block: {}
`, []string{"[0].tree.switches[0].switches line 4", "[0].tree.switches[2].switches line 6", "[0].tree.switches[2].nodes line 6", "[0].tree.switches[2].machines line 6", "[0].tree.switches[3].switch line 7", "[1].tree line 9"}},
		"no tree": {"- topology: t\n  flat: true\n", []string{"tree line 1"}},
	} {
		_, err := Read([]byte(c.text))
		e, ok := err.(*muster.Error) //nolint:errorlint // it says so
		if !ok || e.Code != muster.EInvalid {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, p := range e.Problems {
			line, _, _ := strings.Cut(p.Place, ",")
			got = append(got, p.Field+" "+line)
			if p.Hint == "" || p.Message == "" || p.Reason == "" {
				t.Errorf("%s: %+v has no cure", name, p)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
	for n, want := range map[int]muster.Reason{11_000: muster.ReasonTooMany, 200_000: muster.ReasonTooLarge} {
		var many strings.Builder
		many.WriteString("stands:\n")
		for i := range n {
			fmt.Fprintf(&many, "- {name: s%d, kind: leaf}\n", i)
		}
		_, err := Read([]byte(many.String()))
		if e, ok := err.(*muster.Error); !ok || len(e.Problems) != 1 || e.Problems[0].Reason != want { //nolint:errorlint // it says so
			t.Errorf("%d stands: %v", n, err)
		}
	}
}

// What Slurm's formats can say survives them.
func TestSlurmRoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		tree, _ := randomTree(r)
		var stands []muster.Stand
		for _, p := range tree.List() {
			stands = append(stands, p.Stand)
		}
		for _, format := range []string{FormatConf, FormatYAML} {
			text, err := Write(stands, format)
			if err != nil {
				t.Fatal(err)
			}
			first, err := Read([]byte(text))
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
			again, _ := Write(first.Stands, format)
			second, err := Read([]byte(again))
			if err != nil || !reflect.DeepEqual(sortStands(first.Stands), sortStands(second.Stands)) {
				t.Fatalf("seed %d: %v\n%s\n%s", seed, err, text, again)
			}
			// Machines are as near to each other as before.
			list := New(&first, machinesOf(tree))
			ids := make([]muster.MachineID, 0, len(tree.at))
			for id := range tree.at {
				ids = append(ids, id)
			}
			for _, a := range ids {
				for _, b := range ids {
					if (tree.At(a) == tree.At(b)) != (list.At(a) == list.At(b)) {
						t.Fatalf("seed %d: %s and %s are not where they were:\n%s", seed, a, b, text)
					}
				}
			}
		}
	}
}

func machinesOf(k *Tree) []muster.Machine {
	var out []muster.Machine
	for id := range k.at {
		out = append(out, muster.Machine{ID: id})
	}
	return out
}

func sortStands(list []muster.Stand) []muster.Stand {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b muster.Stand) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("SwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Switches=s1 \\\n LinkSpeed=1\n"))
	f.Add([]byte("- topology: t\n  tree:\n    switches:\n      - {switch: a, children: b}\n      - {switch: b, nodes: \"n[1-3]\"}\n"))
	f.Add([]byte("stands:\n  - &a {name: a, kind: spine, in: a}\n  - *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := Read(data)
		if err != nil {
			if e, ok := err.(*muster.Error); !ok || len(e.Problems) == 0 || len(tree.Stands) > 0 { //nolint:errorlint // it says so
				t.Fatalf("%v with %d stands", err, len(tree.Stands))
			}
			return
		}
		for _, format := range Formats() {
			text, err := Write(tree.Stands, format)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Read([]byte(text))
			switch {
			case format == FormatMuster && (err != nil || !reflect.DeepEqual(tree, again)):
				t.Fatalf("%v\n%q\nbecame\n%s", err, data, text)
			case err != nil && slices.ContainsFunc(tree.Stands, func(s muster.Stand) bool { return s.Machines != "" }):
				t.Fatalf("%v in\n%s", err, text)
			}
		}
		var list []muster.Machine
		for _, s := range tree.Stands {
			set, err := nodeset.Parse(s.Machines)
			if err != nil || set.Count() > maxMachines {
				t.Fatalf("%v: %d machines", err, set.Count())
			}
			for name := range set.All() {
				list = append(list, muster.Machine{ID: muster.MachineID(name)})
			}
		}
		if k := New(&tree, list); len(list) > 0 && k.Stands[0].Below != len(list) {
			t.Fatalf("%d of %d machines stand anywhere", k.Stands[0].Below, len(list))
		}
	})
}

// chain are spines, each in the one before.
func chain(n int) string {
	out := "  - {name: s1, kind: spine}\n"
	for i := 2; i <= n; i++ {
		out += fmt.Sprintf("  - {name: s%d, kind: spine, in: s%d}\n", i, i-1)
	}
	return out
}

func TestReadTakesDeepTrees(t *testing.T) {
	t.Parallel()
	if _, err := Read([]byte("stands:\n" + chain(maxDepth))); err != nil {
		t.Error(err)
	}
}
