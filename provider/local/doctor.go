package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-hpc/muster/internal/seccomp"
	"github.com/muster-hpc/muster/provider/local/network"
	"golang.org/x/sys/unix"
)

// Check is one thing that local machines need of their host.
type Check struct {
	Name    string
	OK      bool
	Warning bool   // it works without, but less well
	Found   string // what is so, in a line
	Fix     string // what to do about it, when not OK
	Package string // Debian package that helps, if one does
}

// Doctor looks whether this host can run local machines. It changes nothing.
func Doctor(ctx context.Context) []Check {
	out := []Check{checkRoot()}
	if os.Getuid() != 0 {
		return out
	}
	return append(out, checkKernel(), checkUserNamespaces(), checkFileSystems(), checkLoop(), checkGroups("/proc/self/mountinfo"),
		checkNft(), checkEnter(), checkNetwork(ctx), checkMemory(), checkLimits(), checkForwarding(),
		checkFilter(), checkCharged("/"), checkShared("/"))
}

func checkRoot() Check {
	c := Check{Name: "root", OK: os.Getuid() == 0, Found: "running as root"}
	if !c.OK {
		c.Found, c.Fix = "not running as root: nothing more can be seen", "run it with sudo"
	}
	return c
}

// What kernels can: overlay on mapped layers came with 5.19 (and cgroup.kill
// with 5.14), mapped squashfs with 6.2.
func checkKernel() Check {
	c := Check{Name: "kernel"}
	release := kernelRelease()
	major, minor := parseRelease(release)
	newer := func(a, b int) bool { return major > a || major == a && minor >= b }
	c.Found = "Linux " + release
	switch {
	case newer(6, 2):
		c.OK = true
	case newer(5, 19):
		c.Warning = true
		c.Found += ": images have to be unpacked before their first use"
		c.Fix = "use a kernel from 6.2 on"
	default:
		c.Fix = "use a kernel from 6.2 on: this one cannot map the owners of an image"
	}
	return c
}

func parseRelease(s string) (major, minor int) {
	if n, err := fmt.Sscanf(s, "%d.%d", &major, &minor); err != nil || n < 2 {
		return 0, 0
	}
	return major, minor
}

func checkUserNamespaces() Check {
	b, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	n := strings.TrimSpace(string(b))
	c := Check{Name: "user namespaces", OK: err == nil && n != "0", Found: "up to " + n + " at once"}
	if !c.OK {
		c.Found, c.Fix = "not allowed on this host", "run: sysctl -w user.max_user_namespaces=10000"
	}
	return c
}

// checkFileSystems looks for drivers, built in or as modules on disk.
func checkFileSystems() Check {
	c := Check{Name: "file systems", Found: "overlay and squashfs"}
	b, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		c.Found = err.Error()
		return c
	}
	var missing []string
	for _, fs := range []string{"overlay", "squashfs", "tmpfs"} {
		if !strings.Contains(string(b), "\t"+fs+"\n") && !moduleOnDisk(fs) {
			missing = append(missing, fs)
		}
	}
	c.OK = len(missing) == 0
	if !c.OK {
		c.Found, c.Fix = "no driver for "+strings.Join(missing, ", "), "use a kernel that has it, or install its modules (Ubuntu: linux-modules-extra)"
	}
	return c
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

func moduleOnDisk(fs string) bool {
	found, err := filepath.Glob(filepath.Join("/lib/modules", kernelRelease(), "kernel/fs", fs+"*", fs+".ko*"))
	return err == nil && len(found) > 0
}

func checkLoop() Check {
	f, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	c := Check{Name: "loop devices", OK: err == nil, Found: "images can be attached"}
	if err != nil {
		c.Found, c.Fix = err.Error(), "run: modprobe loop"
		return c
	}
	_ = f.Close()
	return c
}

func checkGroups(mountinfo string) Check {
	c := Check{Name: "control groups"}
	b, err := os.ReadFile(mountinfo)
	if err != nil {
		c.Found = err.Error()
		return c
	}
	g, err := findGroups(b, "muster-check")
	if err != nil {
		c.Found, c.Fix = err.Error(), "run: mount -t cgroup2 none /sys/fs/cgroup/unified"
		return c
	}
	if g.old() {
		c.Found = "old hierarchies with the unified one beside them"
		for _, need := range v1Controllers()[:3] {
			if g.v1[need] == "" {
				c.Found, c.Fix = "no "+need+" hierarchy", "start the kernel with systemd.unified_cgroup_hierarchy=1"
				return c
			}
		}
		c.OK = true
		return c
	}
	c.Found = "one unified hierarchy"
	if systemdHost() {
		c.Found += ", machines in a scope of systemd"
		if _, err := exec.LookPath("systemd-run"); err != nil {
			c.Found, c.Fix, c.Package = "systemd is init, and systemd-run is missing", "install systemd", "systemd"
			return c
		}
	}
	have, err := os.ReadFile(filepath.Join(filepath.Dir(g.unified), "cgroup.controllers"))
	if err != nil {
		c.Found = err.Error()
		return c
	}
	c.OK = true
	for _, need := range strings.Fields(v2Controllers) {
		if !strings.Contains(" "+strings.TrimSpace(string(have))+" ", " "+need[1:]+" ") {
			c.OK, c.Found = false, "no controller "+need[1:]
			c.Fix = "start the kernel with cgroup_enable=" + need[1:]
		}
	}
	return c
}

func checkNft() Check {
	path, err := exec.LookPath("nft")
	c := Check{Name: "nftables", OK: err == nil, Found: path}
	if err != nil {
		c.Found, c.Fix, c.Package = "nft is not installed", "apt-get install nftables", "nftables"
	}
	return c
}

func checkEnter() Check {
	path, err := exec.LookPath("nsenter")
	c := Check{Name: "nsenter", OK: err == nil, Found: path}
	if err != nil {
		c.Found, c.Warning = "nsenter is not installed: nodes have no shell on their console", true
		c.Fix, c.Package = "apt-get install util-linux", "util-linux"
	}
	return c
}

func checkNetwork(ctx context.Context) Check {
	err := network.Probe(ctx)
	c := Check{Name: "network", OK: err == nil, Found: "namespaces, links, bridges and rules work"}
	if err != nil {
		c.Found, c.Fix = err.Error(), "install nftables and load the modules veth, bridge and nf_tables"
	}
	return c
}

func checkMemory() Check {
	c := Check{Name: "memory"}
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		c.Found = err.Error()
		return c
	}
	free, err := parseMemory(string(b), "MemAvailable:")
	if err != nil {
		c.Found = err.Error()
		return c
	}
	c.Found = sizeText(free) + " free"
	c.OK = free >= 1<<30
	if !c.OK {
		c.Warning, c.Fix = true, "give this host more memory, or start machines with little: --local 1,memory=512MiB"
	}
	return c
}

// checkLimits looks whether machines can be given more than the server has.
func checkLimits() Check {
	c := Check{Name: "limits", OK: true, Found: "locked memory can be unlimited"}
	const sysResource = 24
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		c.OK, c.Warning, c.Found = false, true, err.Error()
		return c
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		var caps uint64
		if n, err := fmt.Sscanf(line, "CapEff: %x", &caps); err == nil && n == 1 && caps>>sysResource&1 == 0 {
			var lim unix.Rlimit
			if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim) == nil && lim.Max != unix.RLIM_INFINITY {
				c.OK, c.Warning = false, true
				c.Found = fmt.Sprintf("machines cannot lock more memory than %s: this process lacks CAP_SYS_RESOURCE", sizeText(int64(min(lim.Max, 1<<62))))
				c.Fix = "start the server with CAP_SYS_RESOURCE or with `ulimit -l unlimited`"
			}
		}
	}
	return c
}

func checkForwarding() Check {
	c := Check{Name: "outgoing traffic", OK: true, Found: "by proxy or nat"}
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	if err != nil || strings.TrimSpace(string(b)) == "0" {
		c.OK, c.Warning, c.Found = false, true, "by proxy only: this host does not forward packets"
		c.Fix = "for clusters with egress nat run: sysctl -w net.ipv4.ip_forward=1"
	}
	return c
}

// checkFilter looks whether calls of the kernel can be closed to machines.
func checkFilter() Check {
	c := Check{Name: "system calls", OK: true, Found: "can be filtered"}
	if err := seccomp.Supported(); err != nil {
		c.OK, c.Found, c.Fix = false, err.Error(), "use a kernel with CONFIG_SECCOMP_FILTER"
	}
	return c
}

// checkCharged looks whether memory that the kernel keeps for a machine counts as that
// machine's. Where it does not, one tenant can take the memory of all.
func checkCharged(root string) Check {
	c := Check{Name: "kernel memory", OK: true, Found: "counts as the machine's for whom it is kept"}
	b, err := os.ReadFile(filepath.Join(root, "proc/cmdline"))
	if err != nil {
		c.OK, c.Warning, c.Found = false, true, err.Error()
		return c
	}
	for word := range strings.FieldsSeq(string(b)) {
		options, ok := strings.CutPrefix(word, "cgroup.memory=")
		if ok && slices.Contains(strings.Split(options, ","), "nokmem") {
			c.OK, c.Found = false, "is charged to nobody: the kernel was started with "+word
			c.Fix = "take nokmem off the kernel's command line"
		}
	}
	if huge, err := os.ReadFile(filepath.Join(root, "proc/sys/vm/nr_hugepages")); c.OK && err == nil && strings.TrimSpace(string(huge)) != "0" {
		c.OK, c.Warning, c.Found = false, true, "this host keeps "+strings.TrimSpace(string(huge))+" huge pages, which the first machine to ask for them gets"
		c.Fix = "run: sysctl -w vm.nr_hugepages=0"
	}
	return c
}

// checkShared looks at the limits that all machines of a host share. The server raises
// them when it starts, where it may.
func checkShared(root string) Check {
	c := Check{Name: "shared limits", OK: true, Found: "large enough for a machine"}
	var low []string
	for _, l := range shortLimits(root, 1) {
		if unix.Access(filepath.Join(root, "proc/sys", l.file), unix.W_OK) != nil {
			low = append(low, fmt.Sprintf("%s=%d", l.name(), l.want))
		}
	}
	if len(low) > 0 {
		c.OK, c.Warning, c.Found = false, true, "too low, and the server cannot raise them"
		c.Fix = "run on the host: sysctl -w " + strings.Join(low, " ")
	} else if n := len(shortLimits(root, 1)); n > 0 {
		c.Found = fmt.Sprintf("%d of them are raised when the server starts", n)
	}
	return c
}
