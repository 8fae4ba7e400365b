package topology

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// example is the site of docs/users/topology.md, with machines of which some are in use.
func example(t *testing.T) []wire.TopologyStand {
	t.Helper()
	page, err := os.ReadFile("../../docs/users/topology.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page has no example")
	}
	tree, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var machines []muster.Machine
	var free []muster.MachineID
	for i := range 40 {
		m := muster.Machine{ID: muster.MachineID(fmt.Sprintf("n%02d", i+1))}
		machines = append(machines, m)
		if i%3 > 0 {
			free = append(free, m.ID)
		}
	}
	k := New(&tree, machines)
	counts := k.Counts(free)
	var out []wire.TopologyStand
	for _, p := range k.List() {
		out = append(out, wire.TopologyStand{Stand: p.Stand, Depth: max(0, p.Depth-1), Registered: p.Derived, Below: p.Below, Free: counts[p.Name]})
	}
	return out
}

// The picture of the page is what is drawn; MUSTER_UPDATE=1 draws it anew.
func TestPicture(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := Draw(&b, example(t)); err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/users/pictures/topology.svg"
	if os.Getenv("MUSTER_UPDATE") != "" {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s is another one, %v: MUSTER_UPDATE=1 writes it", path, err)
	}
}

// A drawing is well-formed whatever names are, no box lies on another, and each stand has
// its line to the one that it is in.
func TestDraw(t *testing.T) {
	t.Parallel()
	list := example(t)
	list[0].Name = `<script>&"'`
	var b bytes.Buffer
	if err := Draw(&b, list); err != nil {
		t.Fatal(err)
	}
	d, boxes, lines := xml.NewDecoder(&b), map[string]bool{}, 0
	for {
		tok, err := d.Token()
		if tok == nil {
			if err.Error() != "EOF" {
				t.Fatal(err)
			}
			break
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "script":
			t.Error("a name became markup")
		case "path":
			lines++
		case "rect":
			at := ""
			for _, a := range e.Attr {
				if a.Name.Local == "x" || a.Name.Local == "y" {
					at += a.Value + " "
				}
			}
			if boxes[at] {
				t.Errorf("two boxes at %s", at)
			}
			boxes[at] = true
		}
	}
	roots := 0
	for _, s := range list {
		if s.Depth == 0 {
			roots++
		}
	}
	if len(boxes) != len(list) || lines != len(list)-roots {
		t.Errorf("%d boxes and %d lines for %d stands, %d of them in no other", len(boxes), lines, len(list), roots)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, d := range []struct {
		depth int
		name  string
	}{{0, "a"}, {1, "b"}, {2, "c"}, {2, "d"}, {1, "e"}, {2, "f"}, {0, "g"}} {
		b.WriteString(fmt.Sprint(d.depth, d.name, " "))
	}
	var list []wire.TopologyStand
	for _, w := range strings.Fields(b.String()) {
		list = append(list, wire.TopologyStand{Stand: muster.Stand{Name: w[1:]}, Depth: int(w[0] - '0')})
	}
	var got []string
	for _, l := range Lines(list) {
		got = append(got, l.Branch+l.Stand.Name)
	}
	want := []string{"a", "├─ b", "│  ├─ c", "│  └─ d", "└─ e", "   └─ f", "g"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("\n%s", strings.Join(got, "\n"))
	}
}
