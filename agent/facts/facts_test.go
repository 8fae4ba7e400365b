package facts

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
)

// tree writes files below a fresh directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const v3Flags = "fpu cx8 cmov mmx fxsr sse2 syscall lm pni ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt xsave avx f16c lahf_lm abm bmi1 avx2 bmi2"

// host is a server of two sockets with two cores of two threads each.
func host() map[string]string {
	f := map[string]string{
		"proc/cpuinfo":                                   "processor\t: 0\nmodel name\t: Test  CPU  9000\nflags\t\t: " + v3Flags + "\n\nprocessor\t: 1\n",
		"proc/meminfo":                                   "MemTotal:  16000 kB\nMemFree: 1 kB\n",
		"proc/self/uid_map":                              "         0          0 4294967295\n",
		"sys/devices/system/cpu/online":                  "0-7\n",
		"sys/devices/system/node/node0/cpulist":          "0-1,4-5\n",
		"sys/devices/system/node/node0/meminfo":          "Node 0 MemTotal:       8000 kB\n",
		"sys/devices/system/node/node1/cpulist":          "2-3,6-7\n",
		"sys/devices/system/node/node1/meminfo":          "Node 1 MemTotal:       8000 kB\n",
		"sys/class/dmi/id/product_serial":                "None\n",
		"sys/class/dmi/id/board_serial":                  "XY123\n",
		"sys/bus/pci/devices/0000:00:01.0/modalias":      "pci:v00008086d0000bc02sc00i00\n",
		"sys/bus/pci/devices/0000:00:02.0/modalias":      "pci:v00008086d0000bc02sc00i00\n",
		"sys/class/net/lo/type":                          "772\n",
		"sys/class/net/msg0/type":                        "1\n",
		"sys/class/net/msg0/address":                     "02:00:00:00:00:01\n",
		"sys/class/net/msg0/speed":                       "10000\n",
		"sys/class/net/msg0/iflink":                      "9\n",
		"sys/class/net/msg0/ifindex":                     "2\n",
		"sys/class/net/eno1/type":                        "1\n",
		"sys/class/net/eno1/address":                     "02:00:00:00:00:02\n",
		"sys/class/net/eno1/speed":                       "-1\n",
		"sys/class/net/eno1/device/vendor":               "0x8086\n",
		"sys/class/net/br0/type":                         "1\n",
		"sys/class/net/br0/iflink":                       "5\n",
		"sys/class/net/br0/ifindex":                      "5\n",
		"sys/class/net/ib0/type":                         "32\n",
		"sys/class/net/ib0/address":                      "80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:1b:2c\n",
		"sys/class/net/ib0/device/vendor":                "0x15b3\n",
		"run/muster/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
	}
	for c := range 8 {
		at := "sys/devices/system/cpu/cpu" + string(rune('0'+c)) + "/topology/"
		f[at+"physical_package_id"] = string(rune('0' + c%4/2))
		f[at+"core_id"] = string(rune('0' + c%2))
	}
	return f
}

func all(n ...int) func() ([]int, error) { return func() ([]int, error) { return n, nil } }

func TestWholeMachine(t *testing.T) {
	t.Parallel()
	s := Source{Root: tree(t, host()), Affinity: all(0, 1, 2, 3, 4, 5, 6, 7)}
	f := s.Read("msg0", "eno1")
	if h := f.VMHost; h == nil || h.KVM || len(h.MemoryNodes) != 2 || h.MemoryNodes[1].Memory != 8000<<10 {
		t.Errorf("%+v", h)
	}
	f.VMHost = nil
	want := muster.Facts{
		Architecture: f.Architecture, Processor: "Test CPU 9000", CPULevel: 3, Sockets: 2, Cores: 4, Threads: 8,
		Memory: 16000 << 10, Serial: "XY123", Modalias: []string{"pci:v00008086d0000bc02sc00i00"}, Disk: f.Disk,
		NUMA: []muster.NUMA{{ID: 0, CPUs: []int{0, 1, 4, 5}, Memory: 8000 << 10}, {ID: 1, CPUs: []int{2, 3, 6, 7}, Memory: 8000 << 10}},
		NICs: []muster.NIC{
			{Name: "eno1", MAC: "02:00:00:00:00:02", Kind: "ethernet", Use: "management"},
			{Name: "ib0", MAC: "00:02:c9:03:00:0a:1b:2c", Kind: "infiniband"},
			{Name: "msg0", MAC: "02:00:00:00:00:01", Kind: "veth", Speed: 10_000_000_000, Use: "message"},
		},
	}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("\n%+v\n%+v", f, want)
	}
}

func TestSlice(t *testing.T) {
	t.Parallel()
	files := host()
	files["proc/self/uid_map"] = "0 100000 65536\n"
	files["run/muster/cgroup/memory/memory.limit_in_bytes"] = "1048576\n"
	files["sys/devices/system/cpu/online"] = "2,6\n"
	s := Source{Root: tree(t, files), Affinity: all(2, 6)}
	f := s.Read("", "")
	if f.Sockets != 1 || f.Cores != 1 || f.Threads != 2 || f.Memory != 1<<20 || f.Serial != "" || f.Modalias != nil || f.VMHost != nil ||
		!reflect.DeepEqual(f.CPUs, []int{2, 6}) || len(f.NUMA) != 1 || f.NUMA[0].ID != 1 || f.NUMA[0].Memory != 1<<20 {
		t.Errorf("%+v", f)
	}
}

func TestNothingToRead(t *testing.T) {
	t.Parallel()
	s := Source{Root: t.TempDir(), Affinity: all(), Interfaces: func() ([]net.Interface, error) {
		return []net.Interface{{Name: "lo", Flags: net.FlagLoopback}, {Name: "mgmt0", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}}, nil
	}}
	f := s.Read("", "")
	if f.Memory != 0 || f.Threads != 0 || len(f.NICs) != 1 || f.NICs[0].Use != "management" || f.NICs[0].MAC != "02:00:00:00:00:09" {
		t.Errorf("%+v", f)
	}
}

// The computer of the test has at least something to tell.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	f := Source{}.Read("", "")
	t.Logf("%+v", f)
	if f.Threads < 1 || f.Memory < 1<<20 || f.Processor == "" || f.Architecture == "" {
		t.Errorf("%+v", f)
	}
	for _, st := range (Source{}).BootStages() {
		if st.At.After(time.Now()) || time.Since(st.At) > 20*365*24*time.Hour {
			t.Errorf("%+v", st)
		}
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	v3 := strings.Fields(v3Flags)
	for want, flags := range map[int][]string{
		0: {"fpu"},
		1: v3[:8],
		3: v3,
		4: append(append([]string{}, v3...), "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
	} {
		if got := level(flags); got != want {
			t.Errorf("%v: %d, not %d", flags, got, want)
		}
	}
}

func TestListProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for _, c := range parseList(rapid.StringMatching(`[0-9,\- ]{0,40}`).Draw(t, "list")) {
			if c < 0 || c >= maxCPU {
				t.Fatal(c)
			}
		}
	})
	if got := parseList("0-2,5\n"); !reflect.DeepEqual(got, []int{0, 1, 2, 5}) {
		t.Error(got)
	}
}

func FuzzParsers(f *testing.F) {
	f.Add([]byte("processor : 0\nflags : lm\nphysical id : 1\ncore id : 2\n"))
	f.Add([]byte("Node 0 MemTotal: 12 kB\n0-5,7"))
	f.Add([]byte("1 (a) b) S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 99 1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseCPUInfo(b)
		for _, v := range parseMeminfo(b) {
			if v < 0 {
				t.Fatal(v)
			}
		}
		parseList(string(b))
		if d, ok := startTicks(b); ok && d < 0 {
			t.Fatal(d)
		}
	})
}
