package page_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate/page"
)

func drawnMachine() muster.TestEnvironment {
	group := func(cores ...[]int) []muster.CoreGroup {
		return []muster.CoreGroup{{Caches: []muster.Cache{{Level: 3, Size: 32 << 20, Shared: 4, Count: 1}}, Cores: cores}}
	}
	return muster.TestEnvironment{Processor: "AMD EPYC 9354", Sockets: 2, Cores: 4, Threads: 8, Memory: 64 << 30, Topology: &muster.Topology{
		Source: "hwloc", Packages: []muster.Package{
			{ID: 0, Nodes: []muster.MemoryNode{{ID: 0, Memory: 32 << 30, Groups: group([]int{0, 4}, []int{1, 5})}}},
			{ID: 1, Nodes: []muster.MemoryNode{{ID: 1, Memory: 32 << 30, Groups: group([]int{2, 6}, []int{3, 7})}}},
		},
		NICs: []muster.NearNIC{{Name: "eno1", Node: new(0), PCIAddress: "0000:01:00.0", Speed: 25e9}, {Name: "ib0", Node: new(1), Speed: 200e9}, {Name: "eth9"}},
	}}
}

// wellFormed reports what is wrong with a text as XML; script is in it, or not.
func wellFormed(b []byte) (elements map[string]int, err error) {
	elements = map[string]int{}
	in := xml.NewDecoder(bytes.NewReader(b))
	for {
		tok, err := in.Token()
		if errors.Is(err, io.EOF) {
			return elements, nil
		}
		if err != nil {
			return elements, err
		}
		if e, ok := tok.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
}

func TestWriteMachine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := page.WriteMachine(&out, "r1-n01", drawnMachine()); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	elements, err := wellFormed(out.Bytes())
	if err != nil || elements["rect"] < 14 || elements["text"] < 14 {
		t.Errorf("%v: %v\n%s", err, elements, text)
	}
	for _, want := range []string{">eno1 · 25 Gbit/s · 0000:01:00.0<", ">ib0 · 200 Gbit/s<", ">eth9<", "part nic", "3 network cards", ">0 4<"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if err := page.WriteMachine(&out, "x", muster.TestEnvironment{}); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("nothing was drawn: %v", err)
	}
}

func FuzzWriteMachine(f *testing.F) {
	f.Add("eno1", "0000:01:00.0", "AMD EPYC", 1)
	f.Add("</text><script>alert(1)</script>", "\x1b[2J\u202e", "]]>&<!--", 0)
	f.Fuzz(func(t *testing.T, name, pci, processor string, node int) {
		c := drawnMachine()
		c.Processor = processor
		c.Topology.NICs = append(c.Topology.NICs, muster.NearNIC{Name: name, PCIAddress: pci, Node: &node})
		var out bytes.Buffer
		if err := page.WriteMachine(&out, name, c); err != nil {
			t.Fatal(err)
		}
		elements, err := wellFormed(out.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, out.Bytes())
		}
		for name := range elements {
			switch name {
			case "svg", "style", "rect", "text":
			default:
				t.Fatalf("there is a %s in\n%s", name, out.Bytes())
			}
		}
	})
}
