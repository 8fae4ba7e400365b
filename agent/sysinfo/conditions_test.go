package sysinfo

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// recorded unpacks a tree of testdata, with changes; "" removes a file.
func recorded(t *testing.T, name string, changes map[string]string) string {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, f := range a.Files {
		if _, changed := changes[f.Name]; !changed {
			put(t, root, f.Name, string(f.Data))
		}
	}
	for name, text := range changes {
		if text != "" {
			put(t, root, name, text)
		}
	}
	return root
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func source(root string, cpus ...int) Source {
	return Source{Root: root, Affinity: func() ([]int, error) { return cpus, nil }, Qdiscs: func() ([]byte, error) { return nil, nil }}
}

func eight() []int { return []int{0, 1, 2, 3, 4, 5, 6, 7} }

func TestReadServer(t *testing.T) {
	t.Parallel()
	got := source(recorded(t, "server", nil), eight()...).Read()
	want := muster.TestEnvironment{
		Processor: "Intel(R) Xeon(R) Gold 6326 CPU @ 2.90GHz", Sockets: 2, Cores: 4, Threads: 8, Memory: 65536000 << 10,
		NUMA: []muster.NUMA{
			{ID: 0, CPUs: []int{0, 1, 4, 5}, Memory: 32768000 << 10},
			{ID: 1, CPUs: []int{2, 3, 6, 7}, Memory: 32768000 << 10},
		},
		Cache: 48 << 20,
		Clock: &muster.ProcessorClock{
			Governor: "performance,powersave", Driver: "intel_pstate", Min: 800_000_000, Max: 3_500_000_000, Base: 2_900_000_000, Boost: new(false),
		},
		Pages: &muster.HugePages{Transparent: "always", Size: 1 << 30, Reserved: 16}, Virtualization: "none",
		Flags: strings.Fields("abm avx avx2 avx512_vnni avx512bw avx512cd avx512dq avx512f avx512vl bmi2 constant_tsc erms f16c fma fsrm " +
			"nonstop_tsc pdpe1gb sse2 sse4_1 sse4_2 ssse3"),
		Kernel: "6.12.38+deb13-amd64", Microcode: "0xd0003a5", MTU: []string{"eth0 9000"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v\n%+v", got, want)
	}
}

func TestReadGuest(t *testing.T) {
	t.Parallel()
	got := source(recorded(t, "guest", nil), 0, 1).Read()
	if got.Virtualization != "kvm" || got.Hypervisor != "" || got.Host != nil || got.Cache != 105<<20 || got.Sockets != 1 || got.Cores != 2 ||
		got.Clock == nil || *got.Clock != (muster.ProcessorClock{Base: 2_000_000_000}) || got.Pages.Transparent != "madvise" || got.Pages.Size != 2<<20 ||
		got.Kernel == "" {
		t.Errorf("%+v %+v %+v", got, got.Clock, got.Pages)
	}
}

// A slice says what is its own, and what its host's.
func TestReadSlice(t *testing.T) {
	t.Parallel()
	root := recorded(t, "guest", map[string]string{"proc/self/uid_map": "0 100000 65536\n", "sys/fs/cgroup/memory.max": "1048576\n"})
	got := source(root, 1).Read()
	if got.Virtualization != "container" || got.Hypervisor != "kvm" || got.Cores != 1 || got.Threads != 1 || got.Memory != 1<<20 ||
		!reflect.DeepEqual(got.Host, []string{"cache", "clock", "huge_pages", "hypervisor", "kernel", "microcode"}) {
		t.Errorf("%+v", got)
	}
	// Without a limit that can be read the memory is the host's, and not told.
	got = source(recorded(t, "guest", map[string]string{"proc/self/uid_map": "0 100000 65536\n"}), 1).Read()
	if got.Memory != 0 || len(got.NUMA) != 1 || got.NUMA[0].Memory != 0 {
		t.Errorf("%+v", got)
	}
}

// What was left of a container's image does not make one.
func TestContainer(t *testing.T) {
	t.Parallel()
	const kthreadd = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 9 0 0 20 0 1 0 10 0 0"
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{".dockerenv": "x"}, "container"},
		{map[string]string{".dockerenv": "x", "proc/2/stat": kthreadd}, "kvm"},
		{map[string]string{"proc/1/environ": "A=b\x00container=podman\x00"}, "container"},
		{map[string]string{"run/systemd/container": "muster", "proc/2/stat": kthreadd}, "container"},
	} {
		if got := source(recorded(t, "guest", c.files), 0).Read(); got.Virtualization != c.want || (got.Hypervisor == "kvm") != (c.want == "container") {
			t.Errorf("%v: %q under %q", c.files, got.Virtualization, got.Hypervisor)
		}
	}
}

func TestHypervisor(t *testing.T) {
	t.Parallel()
	const guest, whole = "flags : sse2 hypervisor\n", "flags : sse2\n"
	const clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource"
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"proc/cpuinfo": whole, "sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, ""},
		{map[string]string{"proc/cpuinfo": guest, "sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, "amazon"},
		{map[string]string{"proc/cpuinfo": guest, clocks: "tsc kvm-clock\n", "sys/class/dmi/id/sys_vendor": "QEMU\n"}, "kvm"},
		{map[string]string{"proc/cpuinfo": guest, clocks: "tsc hpet\n", "sys/class/dmi/id/sys_vendor": "QEMU\n"}, "qemu"},
		{map[string]string{"proc/cpuinfo": guest, "sys/hypervisor/type": "xen\n"}, "xen"},
		{map[string]string{"proc/cpuinfo": guest, "sys/hypervisor/type": "xen\n", "proc/xen/capabilities": "control_d\n"}, "vm-other"},
		{map[string]string{"proc/cpuinfo": guest}, "vm-other"},
		{map[string]string{"proc/cpuinfo": "Features : asimd sve\n"}, ""},
		{map[string]string{"proc/cpuinfo": "Features : asimd\n", "proc/device-tree/hypervisor/compatible": "linux,kvm\x00"}, "kvm"},
		{map[string]string{"proc/cpuinfo": "Features : asimd\n", "proc/device-tree/hypervisor/compatible": "who,knows\x00"}, "vm-other"},
		{map[string]string{"proc/cpuinfo": "Features : asimd\n", "sys/class/dmi/id/sys_vendor": "Amazon EC2\n", "sys/class/dmi/id/product_name": "c7g.metal\n"}, ""},
		{map[string]string{"proc/cpuinfo": "Features : asimd\n", "sys/class/dmi/id/product_name": "KVM Virtual Machine\n"}, "kvm"},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			put(t, root, name, text)
		}
		s := source(root, 0)
		if got := s.hypervisor(parseProcessors(s.file("proc/cpuinfo"))); got != c.want {
			t.Errorf("%v: %q, not %q", c.files, got, c.want)
		}
	}
}

func TestCounters(t *testing.T) {
	t.Parallel()
	got := source(recorded(t, "server", nil), eight()...).Counters("systemd")
	want := wire.Counters{Uptime: 1000.5, Counts: wire.Counts{
		Cores: 8, User: 96, System: 24, Interrupt: 8, Idle: 3208, Steal: 0.56, Own: 128, Throttled: 1.5, Throttles: 5,
		Pressure: wire.Pressure{CPU: 2.5, Memory: 1.5, MemoryAll: 0.5}, Switches: 9000, IRQs: 5000, SoftIRQs: 7000, Hot: 24, Clock: 3_050_000_000,
		Load: 2.5, Segments: 5000, Resent: 12, Processes: []wire.ProcessTime{{PID: 77, Name: "a (b) c", Started: 500, Seconds: 100, Memory: 300 * int64(os.Getpagesize())}},
		Links: []wire.LinkCounts{{Name: "eth0", Received: 1000, Sent: 2000, Dropped: 6, Errors: 4, Speed: 25_000_000_000, Duplex: "full", MTU: 9000}},
	}}
	if math.Abs(got.Steal-0.56) < 1e-9 {
		got.Steal = 0.56
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v\n%+v", got, want)
	}
}

// On a slice only its own group counts as the machine's, and only its own
// processors are looked at.
func TestCountersOfASlice(t *testing.T) {
	t.Parallel()
	got := source(recorded(t, "server", map[string]string{
		"proc/self/uid_map":          "0 100000 65536\n",
		"sys/fs/cgroup/cpu.stat":     "usage_usec 2500000\nuser_usec 1\n",
		"sys/fs/cgroup/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=700000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=600000\n",
	}), 3).Counters()
	if !got.Slice || got.Cores != 1 || got.Own != 2.5 || got.User != 12 || got.Pressure != (wire.Pressure{CPU: 0.7, CPUAll: 0.6}) {
		t.Errorf("%+v", got)
	}
	// Old hierarchies: times in nanoseconds.
	got = source(recorded(t, "guest", map[string]string{
		"proc/self/uid_map":                         "0 100000 65536\n",
		"run/muster/cgroup/cpuacct/cpuacct.usage":   "3500000000\n",
		"run/muster/cgroup/cpu/cpu.stat":            "nr_periods 50\nnr_throttled 50\nthrottled_time 3481976809\n",
		"run/muster/cgroup/cpu/deeper/cpu.stat":     "nr_periods 1\nnr_throttled 1\nthrottled_time 1000000000\n",
		"run/muster/cgroup/cpu/deeper/other/memory": "",
	}), 0).Counters()
	if got.Own != 3.5 || got.Throttles != 51 || math.Abs(got.Throttled-4.481976809) > 1e-9 || got.SwapIn == 0 || got.SwapOut == 0 {
		t.Errorf("%+v", got)
	}
}

func TestNothingToRead(t *testing.T) {
	t.Parallel()
	s := source(t.TempDir())
	if c := s.Read(); c.Virtualization != "none" || c.Clock != nil || c.Pages != nil || c.Cache != 0 {
		t.Errorf("%+v", c)
	}
	if c := s.Counters(); !reflect.DeepEqual(c, wire.Counters{}) {
		t.Errorf("%+v", c)
	}
}

// The computer of the test has something to tell, and it is little to send.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	c := Source{}.Read()
	if c.Processor == "" || c.Threads < 1 || c.Kernel == "" || c.Virtualization == "" {
		t.Errorf("%+v", c)
	}
	before := Source{}.Counters()
	m := Source{}.Counters().Since(before)
	b, err := json.Marshal([]any{c, before})
	if err != nil || len(b) > 16<<10 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if before.Uptime <= 0 || before.Cores != c.Threads || before.User <= 0 || len(before.Processes) == 0 || m.Seconds < 0 {
		t.Errorf("%+v", before)
	}
	t.Logf("%s", b)
}

func FuzzParsers(f *testing.F) {
	f.Add("processor : 0\nmodel name : Xeon @ 2.90GHz\nflags : sse2 avx512f constant_tsc\nbogomips : 4000.00\n")
	f.Add("cpu0 1 2 3 4 5 6 7 8 9 10\nintr 5 5\nctxt 4\n")
	f.Add("some avg10=0 total=12\nfull avg10=0 total=9\n")
	f.Add("Tcp: a OutSegs RetransSegs\nTcp: 1 2 3\n")
	f.Add("77 (a (b) c) R 1 77 77 0 -1 4194560 1 1 1 1 9000 1000 0 0 20 0 1 0 50000 1")
	f.Add(" eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n105M")
	f.Fuzz(func(t *testing.T, s string) {
		p := parseProcessors(s)
		if len(p.flags) > len(telling()) || p.timer < 0 || nominal(p) < 0 {
			t.Fatal(p)
		}
		c := parseStat(s, []int{0})
		some, all := parsePressure(s)
		segments, resent := parseTCP(s)
		if c.User < 0 || c.Idle < 0 || c.Steal < 0 || c.IRQs < 0 || some < 0 || all < 0 || segments < 0 || resent < 0 || parseSize(s) < 0 {
			t.Fatalf("%+v %v %v", c, some, all)
		}
		if p, ok := parseProcess(s); ok && (p.Seconds < 0 || p.Started < 0) {
			t.Fatal(p)
		}
		if l := parseDevices(s); len(l) > wire.MaxLinks {
			t.Fatal(len(l))
		}
		bracketed(s)
	})
}
