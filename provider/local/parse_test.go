package local

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"pgregory.net/rapid"
)

func TestParseSlice(t *testing.T) {
	t.Parallel()
	good := map[string]Slice{
		"4":                               {Count: 4},
		"2,cores=3,memory=8GiB":           {Count: 2, Cores: 3, Memory: 8 << 30},
		"1,memory=512M,class=big,rack=r2": {Count: 1, Memory: 512 << 20, Class: "big", Rack: "r2"},
		"1,service,class=head":            {Count: 1, Service: true, Class: "head"},
	}
	for text, want := range good {
		if got, err := ParseSlice(text); err != nil || got != want {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "x", "99999", "1,cores=0", "1,cores=x", "1,memory=8", "1,memory=1MiB", "1,memory=-1GiB",
		"1,memory=99999999999TiB", "1,class=A b", "1,class=", "1,colour=red", "1,cores=1,cores=2", "1,service=yes", "1,"} {
		_, err := ParseSlice(text)
		if muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := ParseSlice("x,cores=0,leaf=a-b,memory=8,colour=red,memory=9")
	if list := errortest.Problems(errortest.Listed(err)); len(list) != 6 {
		t.Errorf("not everything is told at once: %q", list)
	}
}

func FuzzParseSlice(f *testing.F) {
	for _, s := range []string{"4", "1,cores=2,memory=3GiB,class=a,rack=b,service", "9999999999999999999", "1,memory=9223372036854775807T"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSlice(text)
		if err == nil && (s.Count < 1 || s.Count > maxMachines || s.Cores < 0 || s.Memory < 0 || s.Memory > 0 && s.Memory < minMemory) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

// testHost has sockets*cores processors and gib of memory.
func testHost(sockets, cores int, gib int64) *host {
	h := &host{arch: "amd64", model: "Test", level: 3, memory: gib << 30, mems: "0"}
	for s := range sockets {
		n := numaNode{id: s}
		for c := range cores {
			id := c*sockets + s // numbered across sockets, as many hosts do
			h.cpus = append(h.cpus, cpu{id: id, core: c, socket: s, node: s})
			n.cpus = append(n.cpus, id)
		}
		h.numa = append(h.numa, n)
	}
	return h
}

func TestLayOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := testHost(rapid.IntRange(1, 2).Draw(t, "sockets"), rapid.IntRange(1, 16).Draw(t, "cores"), rapid.Int64Range(2, 256).Draw(t, "gib"))
		cfg := &Config{Oversubscribe: rapid.Bool().Draw(t, "oversubscribe")}
		n := rapid.IntRange(1, 3).Draw(t, "kinds")
		count := 0
		for range n {
			s := Slice{Count: rapid.IntRange(1, 6).Draw(t, "count"), Cores: rapid.IntRange(0, 4).Draw(t, "cores"),
				Memory: rapid.SampledFrom([]int64{0, 1 << 30, 4 << 30}).Draw(t, "memory")}
			count += s.Count
			cfg.Slices = append(cfg.Slices, s)
		}
		got, err := layOut(h, cfg)
		if err != nil {
			if cfg.Oversubscribe || muster.CodeOf(err) != muster.EInvalid {
				t.Fatal(err)
			}
			return
		}
		if len(got) != count {
			t.Fatalf("%d machines for %d", len(got), count)
		}
		used, memory := map[int]int{}, int64(0)
		for _, f := range got {
			if len(f.CPUs) == 0 || f.Memory < minMemory || f.Cores < 1 || f.Class == "" || f.Rack == "" {
				t.Fatalf("%+v", f)
			}
			memory += f.Memory
			for _, c := range f.CPUs {
				used[c]++
			}
		}
		if got[0].Oversubscribed {
			if !cfg.Oversubscribe {
				t.Fatal("shares without leave")
			}
			return
		}
		for c, n := range used {
			if n > 1 {
				t.Fatalf("core %d belongs to %d machines", c, n)
			}
		}
		if memory > h.memory {
			t.Fatal("more memory than there is")
		}
	})
}

// Whatever sets there are: machines that share no part never need more cores or memory than
// there is, and lie on no core twice.
func TestLayOutSets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := testHost(rapid.IntRange(1, 2).Draw(t, "sockets"), rapid.IntRange(1, 8).Draw(t, "cores"), rapid.Int64Range(4, 64).Draw(t, "gib"))
		cfg := &Config{Reserve: 1 << 30}
		for range rapid.IntRange(1, 4).Draw(t, "kinds") {
			cfg.Slices = append(cfg.Slices, Slice{
				Count: rapid.IntRange(1, 6).Draw(t, "count"), Cores: rapid.IntRange(1, 4).Draw(t, "cores"),
				Memory: rapid.Int64Range(1, 8).Draw(t, "memory") << 29, Set: rapid.SampledFrom([]string{"", "dense", "spread"}).Draw(t, "set"),
			})
		}
		got, err := layOut(h, cfg)
		if err != nil {
			return
		}
		order := rapid.Permutation(got).Draw(t, "order")
		held, used, memory := map[string]bool{}, map[int]bool{}, int64(0)
		for _, f := range order { // allocate what does not exclude each other
			if f.Oversubscribed {
				t.Fatal("marked as oversubscribed")
			}
			if slices.ContainsFunc(f.Parts, func(p string) bool { return held[p] }) {
				continue
			}
			for _, p := range f.Parts {
				held[p] = true
			}
			for _, c := range f.CPUs {
				if used[c] {
					t.Fatalf("core %d is used twice", c)
				}
				used[c] = true
			}
			memory += f.Memory
		}
		if memory > h.memory-cfg.Reserve {
			t.Fatalf("%d bytes are in use of %d", memory, h.memory-cfg.Reserve)
		}
		for i, a := range got { // machines of one set never exclude each other
			for _, b := range got[i+1:] {
				if a.Set == b.Set && slices.ContainsFunc(a.Parts, func(p string) bool { return slices.Contains(b.Parts, p) }) {
					t.Fatalf("%+v and %+v exclude each other", a, b)
				}
			}
		}
	})
	one, err := layOut(testHost(1, 2, 8), &Config{Slices: []Slice{
		{Count: 1, Cores: 2, Memory: 4 << 30, Set: "dense"}, {Count: 2, Cores: 1, Memory: 2 << 30, Set: "spread"}}})
	if err != nil || len(one) != 3 || len(one[0].Parts) != 2 || !slices.Equal(one[0].Parts[:1], one[1].Parts) || !slices.Equal(one[0].Parts[1:], one[2].Parts) ||
		one[0].Class != "dense" || one[1].Set != "spread" {
		t.Errorf("%+v %v", one, err)
	}
	for name, list := range map[string][]Slice{
		"no size":            {{Count: 1, Set: "dense"}},
		"a class of two":     {{Count: 1, Cores: 1, Memory: 1 << 30, Set: "a", Class: "x"}, {Count: 1, Cores: 1, Memory: 1 << 30, Set: "b", Class: "x"}},
		"a class of the set": {{Count: 1, Cores: 1, Memory: 1 << 30, Set: "local"}, {Count: 1, Cores: 1, Memory: 1 << 30}},
		"too much":           {{Count: 2, Cores: 1, Memory: 1 << 30, Set: "a"}, {Count: 1, Cores: 1, Memory: 1 << 30}},
	} {
		for _, over := range []bool{false, true} {
			if _, err := layOut(testHost(1, 2, 8), &Config{Slices: list, Oversubscribe: over}); muster.CodeOf(err) != muster.EInvalid {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestLayOutRefuses(t *testing.T) {
	t.Parallel()
	h := testHost(1, 2, 4)
	for _, s := range []Slice{{Count: 3}, {Count: 1, Cores: 3}, {Count: 2, Memory: 2 << 30}} {
		_, err := layOut(h, &Config{Slices: []Slice{s}})
		e, ok := err.(*muster.Error) //nolint:errorlint // it is made here
		if !ok || !strings.Contains(e.Hint, "--oversubscribe") {
			t.Errorf("%+v: %v", s, err)
		}
		if _, err := layOut(h, &Config{Slices: []Slice{s}, Oversubscribe: true}); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	f, err := layOut(testHost(2, 4, 64), &Config{Slices: []Slice{{Count: 2}}})
	if err != nil || !slices.Equal(f[0].CPUs, []int{0, 2, 4, 6}) || f[0].Sockets != 1 || len(f[0].NUMA) != 1 {
		t.Errorf("a machine does not lie on one socket: %+v %v", f, err)
	}
}

func TestFilterCPUInfo(t *testing.T) {
	t.Parallel()
	const text = "processor\t: 0\nsiblings\t: 4\nflags\t\t: a b\n\nprocessor\t: 1\nsiblings\t: 4\nflags\t\t: a b\n\nprocessor\t: 2\ncpu cores\t: 4\n\n"
	if got := filterCPUInfo(text, []int{1, 2}); got != "processor\t: 1\nsiblings\t: 2\nflags\t\t: a b\n\nprocessor\t: 2\ncpu cores\t: 2\n\n" {
		t.Errorf("%q", got)
	}
}

func FuzzFilterCPUInfo(f *testing.F) {
	f.Add("processor\t: 0\nmodel name\t: X\n\nprocessor: 1\n")
	f.Add("\n\n\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_ = filterCPUInfo(text, []int{0, 3})
		_, _ = parseModel(text)
	})
}

func TestCPULevel(t *testing.T) {
	t.Parallel()
	v2 := "lm cmov cx8 fpu fxsr mmx syscall sse2 cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
	for flags, want := range map[string]int{"": 0, "lm cmov cx8 fpu fxsr mmx syscall sse2": 1, v2: 2,
		v2 + " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave": 3} {
		if got := cpuLevel(strings.Fields(flags)); got != want {
			t.Errorf("%q: %d", flags, got)
		}
	}
}

func TestReadHost(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := map[string]string{
		"proc/cpuinfo":                  "processor\t: 0\nmodel name\t: Some CPU\nflags\t: lm cmov cx8 fpu fxsr mmx syscall sse2\n",
		"proc/meminfo":                  "MemTotal:       2048 kB\n",
		"sys/devices/system/cpu/online": "0-1\n",
		"sys/devices/system/cpu/cpu1/topology/core_id":             "7\n",
		"sys/devices/system/cpu/cpu1/topology/physical_package_id": "1\n",
		"sys/devices/system/node/node0/cpulist":                    "0\n",
		"sys/devices/system/node/node1/cpulist":                    "1\n",
	}
	for name, text := range files {
		if err := putFile(filepath.Join(root, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := readHost(root)
	if err != nil {
		t.Fatal(err)
	}
	if h.model != "Some CPU" || h.level != 1 || h.memory != 2<<20 || h.mems != "0-1" ||
		!reflect.DeepEqual(h.cpus, []cpu{{0, 0, 0, 0}, {1, 7, 1, 1}}) {
		t.Errorf("%+v", h)
	}
	if err := os.Remove(filepath.Join(root, "proc/meminfo")); err != nil {
		t.Fatal(err)
	}
	if _, err := readHost(root); err == nil {
		t.Error("a host without memory")
	}
}

// FuzzCPUThreads: whatever QEMU answers, there is a thread for each vCPU, or an error.
func FuzzCPUThreads(f *testing.F) {
	f.Add([]byte(`[{"cpu-index":1,"thread-id":8,"props":{}},{"cpu-index":0,"thread-id":7}]`))
	f.Add([]byte(`[{"cpu-index":0,"thread-id":7},{"cpu-index":0,"thread-id":8}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseCPUThreads(b)
		if err != nil && list != nil {
			t.Errorf("%v and %v", list, err)
		}
		for _, n := range list {
			if n <= 0 {
				t.Errorf("%v", list)
			}
		}
		if places, err := parsePlaces(b); err != nil && places != nil {
			t.Errorf("%v and %v", places, err)
		}
	})
}

// Pages are counted by policy, size and memory node.
func TestNumaMaps(t *testing.T) {
	t.Parallel()
	const text = `7f0000000000 bind:1 file=/memfd:memory-backend-memfd\040(deleted) huge dirty=4 N0=1 N1=3 kernelpagesize_kB=2048
7f1000000000 bind:1 huge dirty=2 N1=2 kernelpagesize_kB=2048
7f2000000000 default anon=7 dirty=7 N0=7 kernelpagesize_kB=4
7f3000000000 default
`
	got, err := parseNumaMaps(strings.NewReader(text))
	huge := got[numaArea{"bind:1", 2 << 20}]
	if err != nil || huge[0] != 1 || huge[1] != 5 || got[numaArea{"default", 4096}][0] != 7 || len(got) != 3 {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzNumaMaps(f *testing.F) {
	f.Add("7f0000000000 bind:1 huge N0=1 N1=3 kernelpagesize_kB=2048\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseNumaMaps(strings.NewReader(text))
		if err != nil {
			return
		}
		for a, nodes := range got {
			for node, n := range nodes {
				if node < 0 || n < 0 || a.page < 0 {
					t.Errorf("%+v: %v", a, nodes)
				}
			}
		}
	})
}

// Memory that may be merged is seen.
func TestMergeable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"Size: 4 kB\nVmFlags: rd wr mr mw me ac sd \n": 0, "VmFlags: rd wr mg ac \nVmFlags: mg\nVmFlags: rd\n": 2} {
		if n, err := mergeable(strings.NewReader(text)); err != nil || n != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}

// A part of a topology has the threads of that part, whole cores or not; a host that says nothing of caches has one group a node.
func TestWithin(t *testing.T) {
	t.Parallel()
	top := &muster.Topology{Source: "sysfs", Packages: []muster.Package{
		{ID: 0, Nodes: []muster.MemoryNode{{ID: 0, Memory: 1 << 30, Groups: []muster.CoreGroup{{Cores: [][]int{{0, 4}, {1, 5}}}}}}},
		{ID: 1, Nodes: []muster.MemoryNode{{ID: 1, Memory: 1 << 30, Groups: []muster.CoreGroup{{Cores: [][]int{{2, 6}, {3, 7}}}}}, {ID: 2, Memory: 1 << 30}}},
	}}
	h := &host{cpus: []cpu{{0, 0, 0, 0}, {4, 0, 0, 0}, {1, 1, 0, 0}, {5, 1, 0, 0}, {2, 0, 1, 1}, {6, 0, 1, 1}, {3, 1, 1, 1}, {7, 1, 1, 1}}}
	for _, part := range []struct {
		cpus []int
		want string
	}{{[]int{1, 5}, "[0 0 [1 5]]"}, {[]int{0, 2, 6}, "[0 0 [0] 1 1 [2 6]]"}} {
		for name, got := range map[string]muster.Topology{"of caches": h.within(top, part.cpus), "flat": h.within(nil, part.cpus)} {
			var list []any
			for _, p := range got.Packages {
				for _, n := range p.Nodes {
					list = append(list, p.ID, n.ID)
					for _, g := range n.Groups {
						for _, c := range g.Cores {
							list = append(list, c)
						}
					}
				}
			}
			if text := fmt.Sprint(list); text != part.want {
				t.Errorf("%s, %v: %s, not %s", name, part.cpus, text, part.want)
			}
		}
	}
}
