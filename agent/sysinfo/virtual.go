package sysinfo

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster/agent/facts"
)

// container reports whether the machine shares its kernel.
func (s Source) container() bool {
	if facts.Slice(s.Root) {
		return true
	}
	// Who sees the kernel's own threads is in no container, whatever lies about.
	if p, ok := parseProcess(s.file("proc/2/stat")); ok && p.Name == "kthreadd" {
		return false
	}
	return s.exists(".dockerenv") || s.exists("run/.containerenv") ||
		slices.ContainsFunc(strings.Split(s.file("proc/1/environ"), "\x00"), func(v string) bool { return strings.HasPrefix(v, "container=") })
}

// someHypervisor is one of which nothing tells more.
const someHypervisor = "vm-other"

// hypervisor is what the kernel runs under; "" if under none. The words are those
// of systemd-detect-virt.
func (s Source) hypervisor(info processors) string {
	x86 := slices.Contains(info.flags, "sse2")
	if x86 && !info.hypervisor {
		// Makers of clouds put their names into the firmware of whole computers, too.
		return ""
	}
	if s.text("sys/hypervisor/type") == "xen" && !strings.Contains(s.file("proc/xen/capabilities"), "control_d") {
		return "xen"
	}
	// A guest's own clocks are the surest sign.
	clocks := strings.Fields(s.text("sys/devices/system/clocksource/clocksource0/available_clocksource"))
	for _, c := range []struct{ clock, is string }{{"kvm-clock", "kvm"}, {"hyperv_clocksource_tsc_page", "microsoft"}, {"xen", "xen"}} {
		if slices.Contains(clocks, c.clock) {
			return c.is
		}
	}
	if v := s.file("proc/device-tree/hypervisor/compatible"); v != "" {
		switch {
		case strings.Contains(v, "kvm"):
			return "kvm"
		case strings.Contains(v, "xen"):
			return "xen"
		case strings.Contains(v, "vmware"):
			return "vmware"
		}
		return someHypervisor
	}
	if is := s.firmware(); is != "" {
		return is
	}
	if x86 {
		return someHypervisor
	}
	return ""
}

// firmware asks who made the computer.
func (s Source) firmware() string {
	for _, field := range []string{"product_name", "sys_vendor", "board_vendor", "bios_vendor"} {
		v := s.text("sys/class/dmi/id/" + field)
		for _, k := range []struct{ begins, is string }{
			{"KVM", "kvm"}, {"KubeVirt", "kvm"}, {"OpenStack", "kvm"}, {"Amazon EC2", "amazon"}, {"QEMU", "qemu"}, {"Standard PC", "qemu"}, {"Muster", "qemu"},
			{"VMware", "vmware"}, {"VMW", "vmware"}, {"VirtualBox", "oracle"}, {"innotek GmbH", "oracle"}, {"Xen", "xen"}, {"Bochs", "bochs"},
			{"Parallels", "parallels"}, {"BHYVE", "bhyve"}, {"Hyper-V", "microsoft"}, {"Virtual Machine", "microsoft"},
			{"Apple Virtualization", "apple"}, {"Google Compute Engine", "google"},
		} {
			if strings.HasPrefix(v, k.begins) {
				// Whole computers of Amazon are called like that, too.
				if k.is == "amazon" && strings.HasSuffix(s.text("sys/class/dmi/id/product_name"), ".metal") {
					return ""
				}
				return k.is
			}
		}
	}
	return ""
}
