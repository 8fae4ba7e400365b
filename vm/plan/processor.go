package plan

import (
	"strings"

	"github.com/muster-hpc/muster/vm/accel"
)

// processor decides what the virtual machine's processors show.
func (m *maker) processor() {
	p, virtualization := &m.plan, ""
	if m.host.VM != nil {
		virtualization = m.host.VM.Virtualization
	}
	add := func(features ...string) { p.CPUFeatures = append(p.CPUFeatures, features...) }
	switch named := m.opt.CPU != "" && modelName.MatchString(m.opt.CPU); {
	case named:
		p.CPUModel = m.opt.CPU
	case p.Emulated:
		model, features, _ := strings.Cut(accel.Processor(false), ",")
		p.CPUModel = model
		add(strings.Split(features, ",")...)
	default:
		p.CPUModel = "host"
		if m.opt.Save {
			add("migratable=on")
		} else {
			add("migratable=off")
		}
		if m.tuned() {
			add("host-cache-info=on")
		}
	}
	if m.opt.Save {
		add("invtsc=off")
	}
	switch {
	case p.Emulated:
		if m.opt.CPU != "" {
			add("svm=off") // QEMU emulates AMD's
		}
		return
	case virtualization != "":
		add(virtualization + "=off")
	}
	add("x2apic=on")
	if virtualization == "svm" && m.tuned() {
		add("topoext=on")
	}
}
