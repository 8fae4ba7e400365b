package facts

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/hibernate"
	vmhost "github.com/muster-hpc/muster/vm/host"
)

// Source is where facts are read. The zero value is this computer.
type Source struct {
	Root string // of the tree with proc and sys; "" is /
	// Affinity returns the processors the agent may run on; nil asks the kernel.
	Affinity func() ([]int, error)
	// Interfaces lists the network interfaces where there is no /sys; nil asks
	// the kernel.
	Interfaces func() ([]net.Interface, error)
}

// Read reads everything. message and management are the names of the
// interfaces for these uses. What is not there to be read stays zero.
func (s Source) Read(message, management string) muster.Facts {
	f := muster.Facts{Architecture: runtime.GOARCH}
	f.CPUs = s.cpus()
	info := parseCPUInfo(s.file("proc/cpuinfo"))
	f.Processor, f.CPULevel = info.model, info.level
	f.Sockets, f.Cores, f.Threads = s.topology(f.CPUs, info)
	f.Memory = Memory(s.Root)
	f.NUMA = s.numa(f.CPUs, f.Memory)
	f.NICs = s.nics(message, management)
	f.Disk = disk(s.path("/"))
	if !Slice(s.Root) {
		f.CPUs = nil // it has them all
		f.Serial = s.serial()
		f.Modalias = s.modalias()
		s.firmware(&f)
		f.Caches = s.caches(s.cpus())
		f.Disks, f.Accelerators, f.TPM = s.Disks(), s.accelerators(), s.tpm()
		f.Lockdown = hibernate.Kernel{Root: s.Root}.Lockdown()
		f.VMHost = vmhost.Source{FS: os.DirFS(s.path("/"))}.Facts()
	}
	return f
}

// Slice reports whether the machine below root shares its kernel with others.
func Slice(root string) bool {
	b, err := os.ReadFile(filepath.Join(root, "/", "proc/self/uid_map"))
	if err == nil && len(bytes.TrimSpace(b)) > 0 {
		if w := strings.Fields(string(b)); len(w) != 3 || w[0] != "0" || w[1] != "0" || w[2] != "4294967295" {
			return true
		}
	}
	_, err = os.Stat(filepath.Join(root, "/", "run/systemd/container"))
	return err == nil
}

func (s Source) path(name string) string { return filepath.Join("/", s.Root, name) }

// file reads a small file; one that cannot be read is empty.
func (s Source) file(name string) []byte {
	f, err := os.Open(s.path(name))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, 8<<20))
	if err != nil {
		return nil
	}
	return b
}

func (s Source) text(name string) string { return strings.TrimSpace(string(s.file(name))) }

func (s Source) number(name string) int64 {
	n, err := strconv.ParseInt(s.text(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Processors are those that this machine may run on, by number.
func (s Source) Processors() []int { return s.cpus() }

// cpus are the processors that this machine may run on and that are online.
func (s Source) cpus() []int {
	get := s.Affinity
	if get == nil {
		get = affinity
	}
	may, err := get()
	online := parseList(s.text("sys/devices/system/cpu/online"))
	if err != nil || len(may) == 0 {
		return online
	}
	if len(online) == 0 {
		return may
	}
	both := slices.DeleteFunc(slices.Clone(may), func(c int) bool { return !slices.Contains(online, c) })
	if len(both) == 0 {
		return may // the two disagree: what the kernel enforces counts
	}
	return both
}

func affinity() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var out []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out, nil
}

// topology counts sockets, physical cores and threads among cpus.
func (s Source) topology(cpus []int, info cpuInfo) (sockets, cores, threads int) {
	packages, ids := map[string]bool{}, map[string]bool{}
	for _, c := range cpus {
		at := "sys/devices/system/cpu/cpu" + strconv.Itoa(c) + "/topology/"
		pkg, core := s.text(at+"physical_package_id"), s.text(at+"core_id")
		if pkg == "" || core == "" {
			if pkg, core = info.pkg[c], info.core[c]; core == "" {
				pkg, core = "0", "cpu"+strconv.Itoa(c)
			}
		}
		packages[pkg] = true
		ids[pkg+"/"+core] = true
	}
	return len(packages), len(ids), len(cpus)
}

// numa lists the memory nodes whose processors the machine has, or the only
// one. A slice of a host is given no more memory than its limit.
func (s Source) numa(cpus []int, memory int64) []muster.NUMA {
	dirs, err := filepath.Glob(s.path("sys/devices/system/node/node[0-9]*"))
	if err != nil {
		return nil
	}
	var out []muster.NUMA
	for _, d := range dirs {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(d), "node"))
		if err != nil {
			continue
		}
		rel := "sys/devices/system/node/node" + strconv.Itoa(id)
		mine := slices.DeleteFunc(parseList(s.text(rel+"/cpulist")), func(c int) bool { return !slices.Contains(cpus, c) })
		if len(mine) == 0 && len(dirs) > 1 {
			continue
		}
		size := parseMeminfo(s.file(rel + "/meminfo"))["MemTotal"]
		if memory > 0 {
			size = min(size, memory)
		}
		out = append(out, muster.NUMA{ID: id, CPUs: mine, Memory: size})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// serial is the machine's serial number from SMBIOS.
func (s Source) serial() string {
	for _, name := range []string{"product_serial", "board_serial", "chassis_serial"} {
		v := s.text("sys/class/dmi/id/" + name)
		switch strings.ToLower(v) {
		case "", "none", "0", "not specified", "default string", "to be filled by o.e.m.", "system serial number":
			continue
		}
		if len(v) <= 128 {
			return v
		}
	}
	return ""
}

// modalias lists the devices that images have drivers for, each once: disks and networks,
// which a node cannot do without, and accelerators, which an image may ask for. Bridges,
// consoles and the like work, or are not missed, without one.
func (s Source) modalias() []string {
	var out []string
	for _, bus := range []string{"pci", "virtio"} {
		files, err := filepath.Glob(s.path("sys/bus/" + bus + "/devices/*/modalias"))
		if err != nil {
			continue
		}
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && len(b) < 512 && listed(strings.TrimSpace(string(b))) {
				out = append(out, strings.TrimSpace(string(b)))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// listed reports whether modalias lists a device, by the class that it says it has:
// bcXXscYY of a PCI modalias.
func listed(modalias string) bool {
	switch {
	case !strings.HasPrefix(modalias, "pci:"):
		return true
	case strings.HasPrefix(modalias, "pci:v00001AF4"): // what hangs behind it is on the bus virtio
		return false
	}
	if strings.HasPrefix(modalias, "pci:v000010DE") && strings.Contains(modalias, "bc03sc00") {
		return true // see accelerators
	}
	for _, class := range []string{"bc01", "bc02", "bc03sc02", "bc03sc80", "bc0Bsc40", "bc12"} {
		if strings.Contains(modalias, class) {
			return true
		}
	}
	return false
}

// disk is the size of the file system at path.
func disk(path string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return 0
	}
	return int64(st.Blocks) * st.Bsize
}
