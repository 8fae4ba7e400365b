package nfs

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNumbers: an export keeps its number, also when it is not wanted for a while, and no two have the same.
func TestNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := state{Last: uint16(rapid.IntRange(0, 1<<16-1).Draw(t, "last"))}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			var set []Export
			for i := range 8 {
				if rapid.Bool().Draw(t, "there") {
					set = append(set, Export{Name: fmt.Sprint("e", i), Path: "/x"})
				}
			}
			next, err := s.want(set)
			if err != nil {
				t.Fatal(err)
			}
			used := map[uint16]bool{}
			for _, e := range set {
				n := next.Numbers[e.Name]
				old, had := s.Numbers[e.Name]
				if n == 0 || used[n] || had && n != old {
					t.Fatalf("%s has %d and had %d", e.Name, n, old)
				}
				for other, m := range s.Numbers {
					if m == n && other != e.Name {
						t.Fatalf("%s has the number that %s had before", e.Name, other)
					}
				}
				used[n] = true
			}
			for name, n := range s.Numbers { // a machine that is saved has it in its memory
				if next.Numbers[name] != n {
					t.Fatalf("%s had %d and has %d", name, n, next.Numbers[name])
				}
			}
			s = next
		}
	})
}

// Of too many that are gone, numbers come again, the oldest first, and never those of what is wanted.
func TestNumbersComeAgain(t *testing.T) {
	t.Parallel()
	s := state{Numbers: map[string]uint16{}}
	for i := range maxNumbers {
		s.Last++
		s.Numbers[fmt.Sprint("e", i)] = s.Last
	}
	s.Last = 1<<16 - 1
	next, err := s.want([]Export{{Name: "e0", Path: "/x"}, {Name: "new", Path: "/x"}})
	if err != nil || len(next.Numbers) != maxNumbers || next.Numbers["e0"] != 1 || next.Numbers["new"] != 2 {
		t.Errorf("%d numbers, e0 has %d and new has %d: %v", len(next.Numbers), next.Numbers["e0"], next.Numbers["new"], err)
	}
	if _, ok := next.Numbers["e1"]; ok {
		t.Error("two have the same number")
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"document":"exports/1","content":{"exports":[{"name":"v-2345678901-home","path":"/a","clients":[{"address":"10.0.0.1"}]}],"numbers":{"v-2345678901-home":1},"last":1}}`))
	f.Add([]byte(`{"document":"exports/1","content":{"exports":[{"name":"x","path":"/a\"; }"}],"numbers":{"x":1}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseState(b)
		if err != nil {
			return
		}
		text := exportsText(s.Exports, s.Numbers)
		if strings.Count(text, "EXPORT {") != len(s.Exports) || strings.Count(text, "\"") != 4*len(s.Exports) {
			t.Errorf("%q becomes\n%s", b, text)
		}
	})
}

func FuzzLog(f *testing.F) {
	f.Add("x : fsal_cfg_commit :CONFIG :CRIT :Could not create export for (/v3) to (/a)\nx : reread_exports :CONFIG :EVENT :Reread exports complete\n")
	f.Add("Reread exports complete")
	f.Fuzz(func(t *testing.T, text string) {
		if _, _, ok := judge(text, rereadLine); ok && !strings.Contains(text, "\n") {
			t.Error("half a line says that it is done")
		}
	})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	failed, broken, ok := judge("a :CRIT :Could not create export for (/v3) to (/a)\nb :EVENT :Reread exports complete\n", rereadLine)
	if len(failed) != 1 || failed[0] != "v3" || broken || !ok {
		t.Error(failed, broken, ok)
	}
	if _, _, ok := judge("b :EVENT :Reread exports complete", rereadLine); ok {
		t.Error("half a line says that it is done")
	}
}

func TestMount(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: Config{Address: netip.MustParseAddr("10.0.0.1"), Port: 2050}}
	for readOnly, access := range map[bool]string{true: "ro", false: "rw"} {
		m := s.Mount("v-x-home", "/home", readOnly)
		if m.Source != "10.0.0.1:/v-x-home" || m.Target != "/home" || m.Type != "nfs4" || m.Options != access+",nosuid,nodev,hard,proto=tcp,port=2050,vers=4.1,sec=sys,_netdev" {
			t.Errorf("%+v", m)
		}
	}
}

// TestOf: what clusters share is one export, with the machines of each.
func TestOf(t *testing.T) {
	t.Parallel()
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	got := Of([]Use{
		{Name: "v-2-data", Path: "/2", ReadOnly: true, Machines: []netip.Addr{b, a}},
		{Name: "v-1-home", Path: "/1", Machines: []netip.Addr{a}},
		{Name: "v-2-data", Path: "/2", Machines: []netip.Addr{a}},
		{Name: "v-2-data", Path: "/2", ReadOnly: true, Machines: []netip.Addr{a}},
	})
	want := []Export{{"v-1-home", "/1", []Client{{a, false}}}, {"v-2-data", "/2", []Client{{a, false}, {b, true}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestBlocks: networks hold the addresses that they were made of and no others, and
// neighbours are one.
func TestBlocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := map[netip.Addr]bool{}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 600), 0, 80).Draw(t, "addresses") {
			from := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
			for range rapid.SampledFrom([]int{1, 1, 2, 16, 40}).Draw(t, "run") {
				set[from] = true
				from = from.Next()
			}
		}
		list := slices.SortedFunc(maps.Keys(set), netip.Addr.Compare)
		got := map[netip.Addr]bool{}
		out := blocks(list)
		for _, p := range out {
			if p != p.Masked() {
				t.Fatalf("%s is no network", p)
			}
			for a := p.Addr(); p.Contains(a); a = a.Next() {
				if !set[a] || got[a] {
					t.Fatalf("%s is not asked for, or twice in %v", a, out)
				}
				got[a] = true
			}
		}
		if len(got) != len(set) {
			t.Fatalf("%d of %d addresses in %v", len(got), len(set), out)
		}
	})
	var run []netip.Addr
	for a := netip.MustParseAddr("10.0.0.0"); len(run) < 2000; a = a.Next() {
		run = append(run, a)
	}
	if n := len(blocks(run)); n != 6 {
		t.Errorf("2,000 in a row are %d networks", n)
	}
}
