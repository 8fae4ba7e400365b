package host

import (
	"slices"
	"strings"
)

// processor is what the kernel shows of the first processor.
type processor struct {
	vendor string
	model  string
	flags  []string
}

func (s Source) processor() processor { return parseProcessor(string(s.bytes("proc/cpuinfo"))) }

func parseProcessor(cpuinfo string) processor {
	var p processor
	for line := range strings.Lines(cpuinfo) {
		k, v, ok := strings.Cut(line, ":")
		switch k, v = strings.TrimSpace(k), strings.TrimSpace(v); {
		case !ok && k == "" && p.vendor+p.model != "":
			return p // of the first
		case k == "vendor_id":
			p.vendor = v
		case k == "model name":
			p.model = v
		case k == "flags":
			p.flags = strings.Fields(v)
		}
	}
	return p
}

func (p processor) has(flag string) bool { return slices.Contains(p.flags, flag) }

// virtualization is the flag of what runs virtual machines: vmx, svm, "".
func (p processor) virtualization() string {
	for _, flag := range []string{"vmx", "svm"} {
		if p.has(flag) {
			return flag
		}
	}
	return ""
}

// module is KVM's for this processor: kvm_intel, kvm_amd; "" where there is none for it.
func (p processor) module() string {
	switch {
	case p.vendor == "GenuineIntel" || p.vendor == "CentaurHauls" || strings.TrimSpace(p.vendor) == "Shanghai" || p.has("vmx"):
		return "kvm_intel"
	case p.vendor == "AuthenticAMD" || p.vendor == "HygonGenuine" || p.has("svm"):
		return "kvm_amd"
	}
	return ""
}
