package topology

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func links(t *testing.T, texts ...string) (out []Link) {
	t.Helper()
	for _, text := range texts {
		l, err := ParseLink(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

func TestJoin(t *testing.T) {
	t.Parallel()
	a, b, c := Seat{Leaf: "A", Machines: "n[1-4]"}, Seat{Leaf: "B", Machines: "n[5-8]"}, Seat{Leaf: "C", Machines: "n9"}
	for name, k := range map[string]struct {
		seats []Seat
		links []string
		want  string // name kind in uplink delay machines, one line each
	}{
		"one switch":   {[]Seat{{Machines: "n[1-4]"}}, nil, ""},
		"one leaf":     {[]Seat{a, {Leaf: "A", Machines: "n[5-6]"}}, nil, "A leaf - 0b/s 0s n[1-6]"},
		"two leaves":   {[]Seat{a, b}, []string{"A-B=1Gb/s,delay=1ms"}, "A-B spine - 0b/s 0s -|A leaf A-B 1Gb/s 500us n[1-4]|B leaf A-B 1Gb/s 500us n[5-8]"},
		"through core": {[]Seat{a, b, c}, []string{"A-core=1Gb/s", "core-B=10Gb/s,delay=1ms", "C-core=4x1Gb/s"}, "core spine - 0b/s 0s -|A leaf core 1Gb/s 0s n[1-4]|B leaf core 10Gb/s 1ms n[5-8]|C leaf core 4 x 1Gb/s 0s n9"},
		"chassis":      {[]Seat{{Chassis: "c1", Leaf: "L", Machines: "n[1-14]"}, {Chassis: "c2", Leaf: "L", Machines: "n[15-28]"}}, []string{"c1-L=4x1Gb/s", "c2-L=4x1Gb/s"}, "L leaf - 0b/s 0s -|c1 chassis L 4 x 1Gb/s 0s n[1-14]|c2 chassis L 4 x 1Gb/s 0s n[15-28]"},
		"two data centres": {[]Seat{{Leaf: "A", DataCentre: "X", Machines: "n[1-2]"}, {Leaf: "C", DataCentre: "X", Machines: "n4"}, {Leaf: "B", DataCentre: "Y", Machines: "n3"}}, []string{"X-Y=100Mb/s,delay=4ms", "A-X=1Gb/s"},
			"X datacentre - 100Mb/s 2ms -|Y datacentre - 100Mb/s 2ms -|A leaf X 1Gb/s 0s n[1-2]|B leaf Y 0b/s 0s n3|C leaf X 0b/s 0s n4"},
		"a spine in a data centre": {[]Seat{{Leaf: "A", DataCentre: "X", Machines: "n1"}, {Leaf: "B", DataCentre: "X", Machines: "n2"}}, []string{"A-s=1Gb/s", "B-s=1Gb/s"}, "X datacentre - 0b/s 0s -|s spine X 0b/s 0s -|A leaf s 1Gb/s 0s n1|B leaf s 1Gb/s 0s n2"},
	} {
		tree, err := Join(k.seats, links(t, k.links...))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		if tree != nil {
			for _, s := range tree.Stands {
				in, machines := s.In, s.Machines
				if in == "" {
					in = "-"
				}
				if machines == "" {
					machines = "-"
				}
				got = append(got, strings.Join([]string{s.Name, string(s.Kind), in, UplinkText(s), delayText(time.Duration(s.Delay)), machines}, " "))
			}
			text, err := Write(tree.Stands, FormatMuster)
			if err != nil {
				t.Error(err)
			}
			if _, err := Read([]byte(text)); err != nil {
				t.Errorf("%s: a site could not be described like this: %v\n%s", name, err, text)
			}
		}
		if strings.Join(got, "|") != k.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.ReplaceAll(k.want, "|", "\n"))
		}
	}
}

func TestJoinProblems(t *testing.T) {
	t.Parallel()
	a, b, c := Seat{Leaf: "A", Machines: "n1"}, Seat{Leaf: "B", Machines: "n2"}, Seat{Leaf: "C", Machines: "n3"}
	x, y, z := Seat{Leaf: "A", DataCentre: "X"}, Seat{Leaf: "B", DataCentre: "Y"}, Seat{Leaf: "C", DataCentre: "Z"}
	for name, k := range map[string]struct {
		seats []Seat
		links []string
		want  []string
	}{
		"nothing joins":    {[]Seat{a, b, c}, []string{"A-B=1Gb/s"}, []string{"nothing joins A-B, C"}},
		"a line":           {[]Seat{a, b, c}, []string{"A-B=1Gb/s", "B-C=1Gb/s"}, []string{"B has a link already"}},
		"twice":            {[]Seat{a, b}, []string{"A-B=1Gb/s", "A-B=2Gb/s"}, []string{"A has a link already"}},
		"no leaves":        {[]Seat{{Machines: "n1"}}, []string{"A-B=1Gb/s"}, []string{"no machine stands behind a leaf", "no machine stands in A or in B"}},
		"some behind none": {[]Seat{a, {Machines: "n2"}}, nil, []string{"others behind none"}},
		"two spines":       {[]Seat{a, b}, []string{"A-s=1Gb/s", "B-t=1Gb/s", "s-t=1Gb/s"}, []string{"both spines", "nothing joins"}},
		"no link":          {[]Seat{x, y}, nil, []string{"nothing joins the data centres"}},
		"three":            {[]Seat{x, y, z}, []string{"X-Y=1Gb/s"}, []string{"3 data centres are too many"}},
		"across":           {[]Seat{x, y}, []string{"A-B=1Gb/s", "X-Y=1Gb/s"}, []string{"A stands in X, and B in Y"}},
		"in two":           {[]Seat{x, {Leaf: "A", DataCentre: "Y"}}, []string{"X-Y=1Gb/s"}, []string{"stands in X and in Y"}},
		"spine in two":     {[]Seat{x, y}, []string{"A-s=1Gb/s", "B-s=1Gb/s", "X-Y=1Gb/s"}, []string{"spine s stands in X and in Y"}},
		"two kinds":        {[]Seat{a, {Chassis: "A", Leaf: "B"}}, []string{"A-B=1Gb/s"}, []string{"A is a leaf and a chassis"}},
		"only a centre":    {[]Seat{{DataCentre: "X"}}, nil, []string{"behind no leaf"}},
		"spine in leaf":    {[]Seat{{Chassis: "c", Leaf: "A"}, a, b}, []string{"c-s=1Gb/s", "A-B=1Gb/s"}, []string{"cannot stand in"}},
	} {
		_, err := Join(k.seats, links(t, k.links...))
		if muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range k.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: no %q in %v", name, w, err)
			}
		}
	}
}

func TestParseLink(t *testing.T) {
	t.Parallel()
	if l, err := ParseLink("A-core.1=4x1Gb/s,delay=1ms"); err != nil || l.A != "A" || l.B != "core.1" || l.Rate != 4e9 || l.Cables != 4 || l.Delay != time.Millisecond {
		t.Errorf("%+v %v", l, err)
	}
	for _, text := range []string{"", "A", "A-B", "A-B=", "A-B=0", "A-B=1000Gb/s", "A-B=5000x1Gb/s", "A-A=1Gb/s", "A-B-C=1Gb/s", "-B=1Gb/s", "A-B=1Gb/s,delay=2s", "A-B=1Gb/s,delay", "A-B=1Gb/s,delay=-1ms", "A-B=1Gb/s,loss=1", "A-B=1Gb/s,delay=1ms,delay=1ms"} {
		if l, err := ParseLink(text); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%q: %+v %v", text, l, err)
		}
	}
}

func FuzzParseLink(f *testing.F) {
	for _, text := range []string{"A-B=1Gb/s,delay=1ms", "A-core=4x1Gb/s", "A-B=0", "--=,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLink(text)
		if err != nil {
			if muster.CodeOf(err) != muster.EInvalid {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseLink(l.String())
		if err != nil || again.Rate != l.Rate || again.Delay != l.Delay || again.A != l.A || again.B != l.B {
			t.Errorf("%q is written %q: %+v %v", text, l, again, err)
		}
	})
}

// The chassis of the report on a university's cloud: 14 machines share 4 cables of 1 Gb/s. One switch is between
// machines inside, three are between machines of two chassis, and what all of one share is a fraction of their own
// link of 1 Gb/s.
func TestChassisOfTheReport(t *testing.T) {
	t.Parallel()
	tree, err := Join([]Seat{{Chassis: "c1", Leaf: "L", Machines: "n[01-14]"}, {Chassis: "c2", Leaf: "L", Machines: "n[15-28]"}}, links(t, "c1-L=4x1Gb/s", "c2-L=4x1Gb/s"))
	if err != nil {
		t.Fatal(err)
	}
	var machines []muster.Machine
	var ids []muster.MachineID
	for i := range 28 {
		ids = append(ids, muster.MachineID(fmt.Sprintf("n%02d", i+1)))
		machines = append(machines, muster.Machine{ID: ids[i]})
	}
	k := New(tree, machines)
	if in, between := k.Switches("n01", "n14"), k.Switches("n14", "n15"); in != 1 || between != 3 {
		t.Errorf("%d switches inside, %d between", in, between)
	}
	all := k.Distance(ids, 0)
	if all.Switches != 3 || len(all.Uplinks) != 2 || all.Uplinks[0].Share != 4_000_000_000/14 || all.Uplinks[0].Nodes != 14 {
		t.Errorf("%+v", all)
	}
	// 14 nodes are best off in one chassis, and 16 share its cables by 14 and 2.
	if got := k.Distance(k.Pack(k.Sorted(ids), 14, 1), 0); got.Switches != 1 || len(got.Uplinks) > 0 {
		t.Errorf("14: %+v", got)
	}
	if got := k.Distance(k.Pack(k.Sorted(ids), 16, 1), 0); got.Switches != 3 || got.Uplinks[0].Nodes != 14 || got.Uplinks[1].Nodes != 2 || got.Uplinks[1].Share != 2e9 {
		t.Errorf("16: %+v", got)
	}
}

// The picture of the laptop is what is drawn of its flags; MUSTER_UPDATE=1 draws it anew.
func TestLeavesPicture(t *testing.T) {
	t.Parallel()
	tree, err := Join([]Seat{{Leaf: "A", Machines: "local-[01-03]"}, {Leaf: "B", Machines: "local-[04-06]"}}, links(t, "A-B=200Mb/s"))
	if err != nil {
		t.Fatal(err)
	}
	var machines []muster.Machine
	for i := range 6 {
		machines = append(machines, muster.Machine{ID: muster.MachineID(fmt.Sprintf("local-%02d", i+1))})
	}
	var stands []wire.TopologyStand
	for _, p := range New(tree, machines).List() {
		stands = append(stands, wire.TopologyStand{Stand: p.Stand, Depth: max(0, p.Depth-1), Below: p.Below, Free: p.Below})
	}
	var b bytes.Buffer
	if err := Draw(&b, stands); err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/users/pictures/leaves.svg"
	if os.Getenv("MUSTER_UPDATE") != "" {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s is another one, %v: MUSTER_UPDATE=1 writes it", path, err)
	}
}
