package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
)

// maxKernelArgs is how many a request may have.
const maxKernelArgs = 16

// kernelArgForms are the arguments of the kernel that a request may add, with what may
// follow the equals sign; nil: nothing may. They are about speed: none names a device, a
// program, a console, a module or an address, none changes which code the kernel trusts,
// and none is of Muster. Protection from other tenants' data is never weakened, since
// machines are erased between them by the same kernels.
func kernelArgForms() map[string]*regexp.Regexp {
	word := func(list string) *regexp.Regexp { return regexp.MustCompile("^(" + list + ")$") }
	number := regexp.MustCompile(`^[0-9]{1,9}$`)
	cpus := regexp.MustCompile(`^((domain|nohz|managed_irq),)*[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?){0,63}$`)
	pages := regexp.MustCompile(`^(2M|1G)$`)
	return map[string]*regexp.Regexp{
		"nosmt":                     nil,
		"numa":                      word("off"),
		"numa_balancing":            word("enable|disable"),
		"transparent_hugepage":      word("always|madvise|never"),
		"hugepages":                 number,
		"hugepagesz":                pages,
		"default_hugepagesz":        pages,
		"isolcpus":                  cpus,
		"nohz_full":                 cpus,
		"rcu_nocbs":                 cpus,
		"nohz":                      word("on|off"),
		"skew_tick":                 word("0|1"),
		"idle":                      word("poll|halt|nomwait"),
		"processor.max_cstate":      number,
		"intel_idle.max_cstate":     number,
		"intel_pstate":              word("disable|passive|active"),
		"amd_pstate":                word("disable|passive|active|guided"),
		"cpufreq.default_governor":  word("performance|powersave|schedutil|ondemand|conservative|userspace"),
		"preempt":                   word("none|voluntary|full|lazy"),
		"workqueue.power_efficient": word("0|1"),
		"noautogroup":               nil,
	}
}

// checkKernelArg judges one argument of the kernel.
func checkKernelArg(s string) *fault {
	name, value, has := strings.Cut(s, "=")
	forms := kernelArgForms()
	form, known := forms[name]
	names := make([]string, 0, len(forms))
	for n := range forms {
		names = append(names, n)
	}
	slices.Sort(names)
	switch {
	case s == "" || strings.TrimSpace(s) != s || strings.ContainsAny(s, " \t\n\r\"'\\"):
		return faultf("write one argument to an entry: [numa_balancing=disable, nosmt]", "%q is not one argument of a kernel", short(s))
	case name == "root" || name == "init" || name == "rdinit" || name == "initrd" || strings.HasPrefix(name, "muster") || strings.HasPrefix(name, "rd.") || strings.HasPrefix(name, "systemd."):
		return faultf("leave it out", "%q belongs to Muster, which starts the node by it", short(name)).because(muster.ReasonContradiction)
	case name == "nr_cpus" || name == "maxcpus" || name == "mem":
		return faultf("write shape.cores and shape.memory_per_core: they choose cores of one socket, and are read back", "%q is what a shape is for", short(name)).because(muster.ReasonContradiction)
	case !known:
		if near := suggest.Of(name, names); near != "" {
			return faultf("did you mean "+near+"?", "%q cannot be added to the kernel's command line", short(name))
		}
		return faultf("these can: "+strings.Join(names, ", "), "%q cannot be added to the kernel's command line", short(name))
	case form == nil && has:
		return faultf("write "+name, "%q takes no value", short(name))
	case form != nil && !form.MatchString(value):
		return faultf(fmt.Sprintf("a value has the form %s", form), "%q is not a value of %s", short(value), name)
	}
	return nil
}

// kernelArgsTwice finds arguments whose name stands twice with different values.
// hugepagesz and hugepages come in pairs and may.
func (v *validator) kernelArgsTwice(list []string) {
	first := map[string]string{}
	for i, s := range list[:min(len(list), maxKernelArgs)] {
		name, _, _ := strings.Cut(s, "=")
		before, twice := first[name]
		if twice && before != s && name != "hugepages" && name != "hugepagesz" {
			v.add(muster.ReasonGivenTwice, fmt.Sprintf("shape.kernel_args[%d]", i), "keep one", "%s is given twice: %s and %s", short(name), short(before), short(s))
		}
		first[name] = s
	}
}
