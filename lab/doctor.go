package lab

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/lab/qemu"
	"github.com/muster-hpc/muster/lab/vswitch"
	"github.com/muster-hpc/muster/vm/accel"
)

// Check is one thing that a lab needs of its host.
type Check struct {
	Name    string
	OK      bool
	Needed  bool   // for the lab that was asked about
	Found   string // what is so, in a line
	Fix     string // what to do, when not OK
	Package string // Debian package that has it
}

// Doctor looks whether this host can have a lab of this make. It changes nothing.
func Doctor(ctx context.Context, c Config) []Check {
	out := []Check{
		{Name: "root", OK: os.Geteuid() == 0, Needed: true, Found: "makes namespaces and devices", Fix: "use sudo"},
		file("tun", "/dev/net/tun", "", "ports of machines", true),
		program(accel.Program, "qemu-system-x86", "runs the machines", true),
		file("network boot, BIOS", qemu.ROM(false), "ipxe-qemu", "ROM of the machines' cards", !c.UEFI),
		file("network boot, UEFI", qemu.ROM(true), "ipxe-qemu", "ROM of the machines' cards", c.UEFI),
		firmware(c.UEFI),
	}
	for _, p := range vswitch.Programs() {
		pkg := "openvswitch-switch"
		out = append(out, program(p, pkg, "the switch", true))
	}
	out = append(out, program(qemu.TPM, "swtpm", "TPMs of the machines (--tpm)", c.TPM))
	kvm := Check{Name: "kvm", Found: "the processor runs the machines itself", OK: accel.KVMWorks(ctx)}
	if !kvm.OK {
		kvm.Found, kvm.Fix = "does not work here: machines are translated, and boot slower", "run the lab where /dev/kvm works"
	}
	return append(out, kvm)
}

func program(name, pkg, why string, needed bool) Check {
	path, err := exec.LookPath(name)
	c := Check{Name: name, OK: err == nil, Needed: needed, Found: path + ": " + why, Package: pkg}
	if err != nil {
		c.Found, c.Fix = "not found: "+why, "apt-get install "+pkg
	}
	return c
}

func file(name, path, pkg, why string, needed bool) Check {
	_, err := os.Stat(path)
	c := Check{Name: name, OK: err == nil, Needed: needed, Found: path + ": " + why, Package: pkg}
	if err != nil {
		c.Found = path + " is not there: " + why
		if c.Fix = "load the kernel's module: modprobe tun"; pkg != "" {
			c.Fix = "apt-get install " + pkg
		}
	}
	return c
}

func firmware(needed bool) Check {
	code, _, err := qemu.Firmware()
	c := Check{Name: "UEFI", OK: err == nil, Needed: needed, Found: code + ": firmware of the machines (--uefi)", Package: "ovmf"}
	if err != nil {
		c.Found, c.Fix = "firmware not found (--uefi)", "apt-get install ovmf"
	}
	return c
}

// Cure is the one line that installs everything that is missing; "" when no package
// would help.
func Cure(checks []Check) string {
	var packages []string
	for _, c := range checks {
		if !c.OK && c.Package != "" && !slices.Contains(packages, c.Package) {
			packages = append(packages, c.Package)
		}
	}
	if len(packages) == 0 {
		return ""
	}
	slices.Sort(packages)
	return "apt-get install --no-install-recommends " + strings.Join(packages, " ")
}

// checkTools refuses a lab for which something is missing, and names all of it.
func checkTools(ctx context.Context, c Config) error {
	e := muster.Errorf(muster.EUnavailable, "this host cannot have such a lab")
	checks := slices.DeleteFunc(Doctor(ctx, c), func(k Check) bool { return k.OK || !k.Needed })
	for _, k := range checks {
		e.Problems = append(e.Problems, muster.Problem{Field: k.Name, Message: k.Found})
	}
	if len(e.Problems) == 0 {
		return nil
	}
	if cure := Cure(checks); cure != "" {
		return e.WithHint("run: %s", cure)
	}
	return e.WithHint("%s", checks[0].Fix)
}
