package sysinfo

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestHwloc(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		// Two packages, each with two memory nodes behind a last-level cache of their own.
		"snc": `{"source":"hwloc","packages":[` +
			`{"id":0,"nodes":[{"id":0,"memory_bytes":1073741824,"groups":[` + snc("[0,1],[2,3]") + `]},{"id":1,"memory_bytes":1073741824,"groups":[` + snc("[4,5],[6,7]") + `]}]},` +
			`{"id":1,"nodes":[{"id":2,"memory_bytes":1073741824,"groups":[` + snc("[8,9],[10,11]") + `]},{"id":3,"memory_bytes":1073741824,"groups":[` + snc("[12,13],[14,15]") + `]}]}]}`,
		// Memory of its own kind beside the usual one; two last-level caches.
		"hbm": `{"source":"hwloc","packages":[{"id":0,"nodes":[{"id":0,"memory_bytes":1000000000,"groups":[` + hbm("[0],[1]") + `,` + hbm("[2],[3]") + `]},{"id":1,"memory_bytes":16000000000}]}]}`,
		// Version 1: memory nodes above packages.
		"old": `{"source":"hwloc","packages":[{"id":0,"nodes":[{"id":0,"memory_bytes":4294967296,"groups":[{"caches":[` +
			`{"level":3,"size_bytes":8388608,"shared":4,"count":1},{"level":1,"size_bytes":32768,"shared":2,"count":2}],"cores":[[0,2],[1,3]]}]}]}]}`,
		// Network cards at each package, and one that is near to both.
		"io": `{"source":"hwloc","packages":[{"id":0,"nodes":[{"id":0,"memory_bytes":1073741824,"groups":[{"cores":[[0],[1]]}]}]},{"id":1,"nodes":[{"id":1,"memory_bytes":1073741824,"groups":[{"cores":[[2],[3]]}]}]}],` +
			`"nics":[{"name":"eno1","node":0,"pci_address":"0000:01:00.0"},{"name":"ib0","node":1,"pci_address":"0000:81:00.0"},{"name":"eth9","pci_address":"0000:f1:00.0"}]}`,
		// A slice of a host with one of two processors, and with devices.
		"slice": `{"source":"hwloc","packages":[{"id":0,"nodes":[{"id":0,"memory_bytes":14588383232,"groups":[{"caches":[{"level":3,"size_bytes":110100480,"shared":1,"count":1},` +
			`{"level":2,"size_bytes":2097152,"shared":1,"count":1},{"level":1,"size_bytes":49152,"shared":1,"count":1}],"cores":[[0]]}]}]}]}`,
	} {
		b, err := os.ReadFile(filepath.Join("testdata", "hwloc", name+".xml"))
		if err != nil {
			t.Fatal(err)
		}
		top, err := parseHwloc(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := json.Marshal(top); err != nil || string(got) != want {
			t.Errorf("%s:\n%s\n%s", name, got, want)
		}
		// Cut off, it is refused.
		for n := 0; n < len(b)-len("</topology>\n"); n += 13 {
			if _, err := parseHwloc(b[:n]); err == nil {
				t.Fatalf("%s: %d of %d bytes are believed", name, n, len(b))
			}
		}
	}
	for why, text := range map[string]string{
		"deep":    strings.Repeat(`<object type="Group">`, 100) + strings.Repeat("</object>", 100),
		"many":    "<topology>" + strings.Repeat(`<object type="PU" os_index="1"/>`, 70_000) + "</topology>",
		"twice":   `<topology><object type="PU" os_index="1"/><object type="PU" os_index="1"/></topology>`,
		"numbers": `<topology><object type="PU" os_index="-1"/></topology>`,
		"none":    `<topology><object type="Machine"/></topology>`,
		"long":    "<topology>" + strings.Repeat(" ", mostXML) + "</topology>",
	} {
		if _, err := parseHwloc([]byte(text)); err == nil {
			t.Errorf("%s: believed", why)
		}
	}
}

func snc(cores string) string {
	return `{"caches":[{"level":3,"size_bytes":16777216,"shared":4,"count":1},{"level":2,"size_bytes":4194304,"shared":2,"count":2},{"level":1,"size_bytes":32768,"shared":2,"count":2}],"cores":[` + cores + `]}`
}

func hbm(cores string) string {
	return `{"caches":[{"level":3,"size_bytes":16777216,"shared":2,"count":1},{"level":2,"size_bytes":4194304,"shared":1,"count":2}],"cores":[` + cores + `]}`
}

// Without hwloc the kernel tells, and the same.
func TestTopologyOfTheKernel(t *testing.T) {
	t.Parallel()
	const caches = `"caches":[{"level":3,"size_bytes":25165824,"shared":4,"count":1},{"level":2,"size_bytes":1310720,"shared":2,"count":2},{"level":1,"size_bytes":49152,"shared":2,"count":2}]`
	const want = `{"source":"sysfs","packages":[` +
		`{"id":0,"nodes":[{"id":0,"memory_bytes":33554432000,"groups":[{` + caches + `,"cores":[[0,4],[1,5]]}]}]},` +
		`{"id":1,"nodes":[{"id":1,"memory_bytes":33554432000,"groups":[{` + caches + `,"cores":[[2,6],[3,7]]}]}]}]}`
	s := source(recorded(t, "server", map[string]string{}), eight()...)
	for name, ask := range map[string]func(context.Context) ([]byte, error){
		"none":  nil,
		"fails": func(context.Context) ([]byte, error) { return nil, errors.New("no lstopo") },
		"lies":  func(context.Context) ([]byte, error) { return []byte("<topology/>"), nil },
	} {
		s.Hwloc = ask
		if got, _ := json.Marshal(s.Topology(t.Context())); string(got) != want {
			t.Errorf("%s:\n%s\n%s", name, got, want)
		}
	}
	// A slice has a part of its host's memory, and no word on how much.
	s = source(recorded(t, "server", map[string]string{"proc/self/uid_map": "0 100000 65536\n"}), 1, 2)
	if top := s.Topology(t.Context()); top == nil || top.Packages[0].Nodes[0].Memory != 0 || len(top.Threads()) != 2 {
		t.Errorf("%+v", top)
	}
	if top := source(t.TempDir()).Topology(t.Context()); top != nil {
		t.Errorf("%+v", top)
	}
}

// On this computer the two agree.
func TestTopologyOfThisMachine(t *testing.T) {
	t.Parallel()
	s := Source{Hwloc: func(context.Context) ([]byte, error) { return nil, errors.New("not asked") }}
	kernel := s.Topology(t.Context())
	if kernel == nil || kernel.Check() != nil || kernel.Source != "sysfs" || len(kernel.Threads()) != s.Read().Threads {
		t.Fatalf("%+v", kernel)
	}
	if _, err := exec.LookPath("lstopo-no-graphics"); err != nil {
		t.Skip("no lstopo-no-graphics here: the images have it")
	}
	s.Hwloc = nil
	hwloc := s.Topology(t.Context())
	if hwloc == nil || hwloc.Source != "hwloc" {
		t.Fatalf("%+v", hwloc)
	}
	a, b := kernel.Threads(), hwloc.Threads()
	slices.Sort(a)
	slices.Sort(b)
	if !slices.Equal(a, b) || kernel.Cores() != hwloc.Cores() {
		t.Errorf("\n%+v\n%+v", kernel, hwloc)
	}
}

func FuzzHwloc(f *testing.F) {
	files, _ := filepath.Glob("testdata/hwloc/*.xml")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		top, err := parseHwloc(b)
		if err != nil {
			return
		}
		if err := top.Check(); err != nil || len(top.Threads()) == 0 {
			t.Fatalf("%+v, %v", top, err)
		}
	})
}
