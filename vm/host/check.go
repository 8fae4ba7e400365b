package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Finding is one thing that was looked at.
type Finding struct {
	Name string
	OK   bool
	// Needed: without it no virtual machine runs on the processor. Others are needed by
	// some: a virtual function, huge pages.
	Needed  bool
	Text    string // what was found
	Fix     string // the exact way to set it
	Package string // of Debian, that brings it
}

// Check looks at everything that virtual machines need of the host.
func (s Source) Check(ctx context.Context) []Finding {
	p, u, devices := s.processor(), s.iommu(), s.devices()
	c := &check{Source: s}
	c.virtualization(p)
	c.qemu(ctx)
	c.volumes()
	c.kvm(ctx, p)
	c.iommu(p, u)
	c.remapping(p, u)
	c.groups(u, devices)
	c.vfio()
	c.functions(devices)
	c.hugePages(p)
	c.memlock()
	c.merging()
	c.transparent()
	return c.found
}

type check struct {
	Source
	runs  bool // QEMU, by which KVM is tried
	found []Finding
}

func (c *check) good(name, format string, args ...any) {
	c.found = append(c.found, Finding{Name: name, OK: true, Text: fmt.Sprintf(format, args...)})
}

func (c *check) bad(name, text, fix string) {
	c.found = append(c.found, Finding{Name: name, Text: text, Fix: fix})
}

func (c *check) fatal(name, text, fix string) {
	c.found = append(c.found, Finding{Name: name, Needed: true, Text: text, Fix: fix})
}

func (c *check) virtualization(p processor) {
	const name = "virtualization"
	name2 := map[string]string{"kvm_intel": "Intel VT-x (Intel Virtualization Technology)", "kvm_amd": "SVM Mode (AMD-V)"}[p.module()]
	switch flag := p.virtualization(); {
	case flag != "":
		c.good(name, "the processor has %s", flag)
	case p.module() == "":
		if c.exists("dev/kvm") {
			c.good(name, "the kernel does not show what the processor has; it offers KVM")
			return
		}
		c.fatal(name, "neither the processor nor its kernel shows anything for virtual machines", "use a host whose processor has vmx or svm")
	case p.has("hypervisor"):
		c.fatal(name, "this host is a virtual machine itself, and its own host gives it no virtualization",
			"on its own host: load kvm_intel or kvm_amd with nested=1, and give this machine the processor of the host (QEMU: -cpu host)")
	default:
		c.fatal(name, "the processor shows neither vmx nor svm: it is off in the firmware, unless the processor is too old", "in firmware setup: enable "+name2+"; then switch the host off and on")
	}
}

func (c *check) kvm(ctx context.Context, p processor) {
	const name = "kvm"
	module := p.module()
	tried := c.runs && c.Executes != nil
	loaded := module != "" && c.exists("sys/module/"+module)
	switch {
	case !c.exists("dev/kvm") && module == "":
		c.fatal(name, "/dev/kvm is not there", "use a kernel with KVM for this processor")
		return
	case !c.exists("dev/kvm") && !loaded:
		fix := "modprobe " + module + ", and at each boot: echo " + module + " > /etc/modules-load.d/kvm.conf"
		if p.virtualization() != "" {
			fix += ". If it answers 'Operation not supported': virtualization is locked off in firmware setup"
		}
		c.fatal(name, "/dev/kvm is not there: the module "+module+" is not loaded", fix)
		return
	case !c.exists("dev/kvm"):
		c.fatal(name, "the module "+module+" is loaded, and /dev/kvm is not there", "modprobe -r "+module+" && modprobe "+module+", and read 'dmesg | grep -i kvm'")
		return
	case p.virtualization() == "" && module != "":
		c.fatal(name, "/dev/kvm is there, and the processor has nothing to execute machines with",
			"see the check virtualization. Without KVM, QEMU emulates virtual machines: slowly, and nothing that is measured on them is certified")
		return
	case tried && !c.Executes(ctx):
		c.fatal(name, "/dev/kvm is there, and a machine that was tried did not compute within five seconds", "read 'dmesg | grep -i kvm'; a virtual machine as host needs nested=1 on its own host")
		return
	}
	if tried {
		c.good(name, "/dev/kvm executes machines: one was tried")
	} else {
		c.good(name, "/dev/kvm is there")
	}
	for _, param := range []string{"ept", "npt"} {
		if v := c.text("sys/module/" + module + "/parameters/" + param); v == "N" || v == "0" {
			c.bad("nested-paging", module+" runs without nested page tables, so each change of a page table stops the machine",
				"echo 'options "+module+" "+param+"=1' > /etc/modprobe.d/kvm.conf, and load "+module+" again")
		}
	}
	if v := c.text("sys/module/" + module + "/parameters/nested"); v == "Y" || v == "1" {
		c.good("nested", "%s offers nested virtualization; virtual machines of tenants are started without it", module)
	}
}

func (c *check) qemu(ctx context.Context) {
	const name = "qemu"
	if c.QEMU == nil {
		return
	}
	version, err := c.QEMU(ctx)
	if err != nil {
		c.found = append(c.found, Finding{Name: name, Needed: true, Text: "qemu-system-x86_64 does not run: " + err.Error(), Fix: "apt-get install qemu-system-x86", Package: "qemu-system-x86"})
		return
	}
	if major, minor, ok := qemuVersion(version); ok && (major < 7 || major == 7 && minor < 2) {
		c.found = append(c.found, Finding{Name: name, Needed: true, Text: fmt.Sprintf("QEMU %d.%d is too old", major, minor), Fix: "install QEMU 7.2 or newer", Package: "qemu-system-x86"})
		return
	}
	c.runs = true
	c.good(name, "%s", version)
}

func (c *check) volumes() {
	const name = "volumes"
	if c.Volumes == nil {
		return
	}
	if err := c.Volumes(); err != nil {
		c.found = append(c.found, Finding{Name: name, Needed: true, Text: "nothing here serves volumes to virtual machines: " + err.Error(), Fix: "apt-get install nfs-ganesha nfs-ganesha-vfs", Package: "nfs-ganesha-vfs"})
		return
	}
	c.good(name, "nfs-ganesha serves them to virtual machines")
}

// qemuVersion reads "QEMU emulator version 7.2.22 (Debian ...)".
func qemuVersion(text string) (major, minor int, ok bool) {
	_, after, found := strings.Cut(text, "version ")
	if !found {
		return 0, 0, false
	}
	w := strings.SplitN(after, ".", 3)
	if len(w) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(w[0])
	if err != nil {
		return 0, 0, false
	}
	digits := w[1][:len(w[1])-len(strings.TrimLeft(w[1], "0123456789"))]
	minor, err = strconv.Atoi(digits)
	return major, minor, err == nil
}

// intel reports whether the kernel's arguments for the IOMMU are those of Intel's.
func (c *check) intel(p processor) bool {
	return c.exists(acpiTables+"DMAR") || !c.exists(acpiTables+"IVRS") && p.module() == "kvm_intel"
}

func (c *check) iommu(p processor, u iommu) {
	const name = "iommu"
	setup := "AMD IOMMU"
	if c.intel(p) {
		setup = "Intel VT-d (Intel VT for Directed I/O)"
	}
	switch {
	case u.on:
		c.good(name, "on: %s, domains of type %s", strings.Join(c.names("sys/class/iommu"), " "), cmp.Or(u.kind, "unknown"))
	case !u.firmware && p.has("hypervisor"):
		c.bad(name, "this host is a virtual machine itself, and its own host gives it none", "on its own host: give it one (QEMU: -machine q35,kernel-irqchip=split -device intel-iommu,intremap=on)")
	case !u.firmware:
		c.bad(name, "the firmware describes none: virtual functions and passed-through devices need one", "in firmware setup: enable "+setup)
	default:
		if off := c.argument("intel_iommu=off", "amd_iommu=off", "iommu=off"); off != "" {
			c.bad(name, "the firmware describes one, and the kernel's command line has "+off, "take the kernel argument "+off+" away")
			return
		}
		arguments := "iommu=pt"
		if c.intel(p) {
			arguments = "intel_iommu=on iommu=pt"
		}
		c.bad(name, "the firmware describes one, and the kernel does not use it", "add the kernel arguments: "+arguments)
	}
}

func (c *check) remapping(p processor, u iommu) {
	const name = "interrupt-remapping"
	if v := c.text("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts"); v == "Y" || v == "1" {
		c.bad("unsafe-interrupts", "vfio_iommu_type1 gives devices away whose interrupts nothing checks: a virtual machine could send any interrupt to the host",
			"take allow_unsafe_interrupts=1 out of /etc/modprobe.d and of the kernel's command line, and restart the host")
	}
	if !u.firmware {
		return // said with the IOMMU
	}
	switch off := c.argument("nointremap", "intremap=off"); {
	case u.remapping:
		c.good(name, "on: interrupts of devices pass the IOMMU")
	case off != "":
		c.bad(name, "the kernel's command line has "+off, "take the kernel argument "+off+" away")
	case !u.firmwareRemapping:
		c.bad(name, "the firmware's table of the IOMMU does not offer it", "in firmware setup: enable interrupt remapping (beside VT-d), or update the firmware")
	case !u.on:
		c.bad(name, "off, as the IOMMU is", "see the check iommu")
	case u.optOut:
		c.bad(name, "off, and the firmware asks the kernel to leave x2APIC out", "in firmware setup: enable x2APIC (do not opt out)")
	case p.module() == "":
		c.bad(name, "no interrupt is shown that passes the IOMMU", "read 'dmesg | grep -i remap'")
	default:
		c.bad(name, "the firmware offers it, and no interrupt of this kernel passes the IOMMU", "use a kernel with CONFIG_IRQ_REMAP, and read 'dmesg | grep -i remap'")
	}
}

func (c *check) groups(u iommu, devices []muster.PCIDevice) {
	const name = "iommu-groups"
	if !u.on {
		return
	}
	all := map[int]bool{}
	for _, d := range devices {
		if d.Group != nil {
			all[*d.Group] = true
		}
	}
	sharing := shared(devices)
	n := 0
	for _, g := range slices.Sorted(maps.Keys(sharing)) {
		members := sharing[g]
		// Functions of one card go together; so may what nobody wants to give away.
		if oneCard(members) || !slices.ContainsFunc(members, func(d muster.PCIDevice) bool { return d.Kind != muster.PCIOther }) {
			continue
		}
		n++
		var who []string
		for _, d := range members {
			who = append(who, deviceText(d))
		}
		c.bad(name, fmt.Sprintf("group %d holds %s: they go to one virtual machine together, or to none", g, strings.Join(who, ", ")),
			"plug them into slots of other root ports, or in firmware setup: enable ACS (Access Control Services)")
	}
	if n == 0 {
		c.good(name, "%s; no card shares one with another", plaintext.Count(len(all), "group"))
	}
}

// oneCard reports whether devices are functions of one card.
func oneCard(list []muster.PCIDevice) bool {
	return !slices.ContainsFunc(list, func(d muster.PCIDevice) bool { return slot(d.Address) != slot(list[0].Address) })
}

// slot is an address without the function.
func slot(address string) string {
	at, _, _ := strings.Cut(address, ".")
	return at
}

func deviceText(d muster.PCIDevice) string {
	text := d.Address
	if d.Name != "" {
		text = d.Name + " " + text
	}
	if d.Driver != "" {
		text += " (" + d.Driver + ")"
	}
	return text
}

func (c *check) vfio() {
	if c.exists("sys/module/vfio_pci") && c.exists("sys/module/vfio_iommu_type1") {
		c.good("vfio", "vfio-pci is loaded")
		return
	}
	c.bad("vfio", "vfio-pci is not loaded: devices are given to virtual machines through it", "modprobe vfio-pci, and at each boot: echo vfio-pci > /etc/modules-load.d/vfio.conf")
}
