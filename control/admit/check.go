package admit

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// Reasons why a machine is not taken, in the order in which they are tried: a
// machine that fails several counts under the first. These names are part of
// the JSON contract.
const (
	ReasonRetired           = "retired"
	ReasonProvider          = "provider"
	ReasonArchitecture      = "architecture"
	ReasonClass             = "class"
	ReasonRack              = "rack"
	ReasonService           = "service"
	ReasonNotAllowed        = "not-allowed"
	ReasonProcessor         = "processor"
	ReasonCores             = "cores"
	ReasonMemory            = "memory"
	ReasonDisk              = "disk"
	ReasonNICs              = "nics"
	ReasonNICKind           = "nic-kind"
	ReasonNICSpeed          = "nic-speed"
	ReasonAccelerators      = "accelerators"
	ReasonShapeCores        = "shape-cores"
	ReasonShapeMemory       = "shape-memory"
	ReasonShapeKernel       = "shape-kernel"
	ReasonLinkRate          = "link-rate"
	ReasonHibernate         = "hibernate"
	ReasonHibernateDevices  = "hibernate-devices"
	ReasonHibernateLocked   = "hibernate-locked"
	ReasonHibernateDisk     = "hibernate-disk"
	ReasonImageArchitecture = "image-architecture"
	ReasonImageCPULevel     = "image-cpu-level"
	ReasonImageMemory       = "image-memory"
	ReasonImageDevices      = "image-devices"
	ReasonImageModules      = "image-modules"
	ReasonImageKernel       = "image-kernel"
	// Of hosts of virtual machines; see package vm/plan.
	ReasonNoKVM     = muster.LackKVM
	ReasonNoIOMMU   = muster.LackIOMMU
	ReasonNoVF      = muster.LackVF
	ReasonVFGroup   = muster.LackVFGroup
	ReasonHugePages = muster.LackHugePages
	ReasonVMSave    = muster.LackSave
	// Of more nodes for a cluster that is kept within something.
	ReasonOutside = "outside"
	// From here on they pass with time.
	ReasonMaintenance  = "maintenance"
	ReasonQuarantined  = "quarantined"
	ReasonTesting      = "testing"
	ReasonBusy         = "busy"
	ReasonPartsInUse   = "parts-in-use"
	ReasonCleaning     = "cleaning"
	ReasonNotAnswering = "not-answering"
	ReasonReserved     = "reserved"
	ReasonFailedHere   = "failed-here"
)

// Reasons lists every reason in the order in which they are tried.
func Reasons() []string {
	return []string{
		ReasonRetired, ReasonProvider, ReasonArchitecture, ReasonClass, ReasonRack, ReasonService, ReasonNotAllowed,
		ReasonProcessor, ReasonCores, ReasonMemory, ReasonDisk, ReasonNICs, ReasonNICKind,
		ReasonNICSpeed, ReasonAccelerators, ReasonShapeCores, ReasonShapeMemory, ReasonShapeKernel, ReasonLinkRate,
		ReasonHibernate, ReasonHibernateDevices, ReasonHibernateLocked, ReasonHibernateDisk, ReasonImageArchitecture, ReasonImageCPULevel,
		ReasonImageMemory, ReasonImageDevices, ReasonImageModules, ReasonImageKernel,
		ReasonNoKVM, ReasonNoIOMMU, ReasonNoVF, ReasonVFGroup, ReasonHugePages, ReasonVMSave, ReasonVolume, ReasonEgress, ReasonUserID, ReasonOutside,
		ReasonMaintenance, ReasonQuarantined, ReasonTesting, ReasonBusy, ReasonPartsInUse, ReasonCleaning, ReasonNotAnswering, ReasonReserved, ReasonFailedHere,
	}
}

// check is one thing that a machine must satisfy, whatever its state. Only
// what is really asked becomes a check.
type check struct {
	reason string
	pass   func(*muster.Machine) bool
	// head: the machine of a separate head must satisfy it too.
	head bool
	// One of these explains the check and finds what to ask for instead.
	amount *amount // a quantity
	label  *label  // a name
	text   string  // anything else: what is the matter with the machines, and a label's names after it
	change string  // and what to do about it
}

// amount is a quantity asked, and the fact it is compared with.
type amount struct {
	want muster.Quantity
	fact func(*muster.Machine) int64
	unit unit
}

// label is a pattern asked, and the names it is compared with.
type label struct {
	want  string
	facts func(*muster.Machine) []string
}

// checksFor makes the chain for a request.
func checksFor(spec muster.Spec, image *muster.Image, providers muster.Providers) []check {
	b := &builder{wish: spec.Machine, vm: spec.VM}
	b.add(check{
		reason: ReasonRetired, head: true,
		pass:   func(m *muster.Machine) bool { return m.Phase != muster.MachineRetired },
		text:   "taken out of service for good",
		change: "an administrator can add machines",
	})
	b.wishes(providers)
	b.allowed(spec.Allowed)
	b.amounts()
	b.shape(spec, providers)
	if image != nil {
		b.image(spec, image, providers)
	}
	b.hibernates(spec, providers)
	b.virtual(spec.OnPause)
	return b.list
}

type builder struct {
	wish muster.Constraints
	vm   *muster.VMOptions // nil: no virtual machines are asked for
	list []check
	glob globs
	// lacking is what hosts lack for virtual machines.
	lacking map[lacker]map[string]bool
}

func (b *builder) add(c check) { b.list = append(b.list, c) }

// named adds a check of one name, if anything is asked.
func (b *builder) named(reason, want string, head bool, fact func(*muster.Machine) string) {
	if want == "" {
		return
	}
	b.add(check{
		reason: reason, head: head,
		pass:  func(m *muster.Machine) bool { return b.glob.name(want, fact(m)) },
		label: &label{want: want, facts: func(m *muster.Machine) []string { return []string{fact(m)} }},
	})
}

func (b *builder) wishes(providers muster.Providers) {
	w := b.wish
	if b.vm != nil {
		b.add(check{
			reason: ReasonProvider, head: true,
			pass:   func(m *muster.Machine) bool { return providers.Of(m.Provider).VM != nil },
			text:   "cannot be booted as virtual machines: only slices of a host with QEMU can",
			change: "leave out provider: vm",
		})
	} else {
		b.named(ReasonProvider, w.Provider, true, func(m *muster.Machine) string { return m.Provider })
	}
	b.named(ReasonArchitecture, w.Architecture, true, func(m *muster.Machine) string { return m.Facts.Architecture })
	b.named(ReasonClass, w.Class, false, func(m *muster.Machine) string { return m.Facts.Class })
	b.named(ReasonRack, w.Rack, false, func(m *muster.Machine) string { return m.Facts.Rack })
	if w.Class == "" || strings.Trim(w.Class, "*") == "" {
		b.add(check{
			reason: ReasonService,
			pass:   func(m *muster.Machine) bool { return !m.Facts.Service },
			label: &label{facts: func(m *muster.Machine) []string {
				return []string{m.Facts.Class}
			}},
			text: "kept for heads unless their class is named",
		})
	}
	if w.Processor != "" {
		b.add(check{
			reason: ReasonProcessor,
			pass:   func(m *muster.Machine) bool { return b.glob.model(w.Processor, m.Facts.Processor) },
			label:  &label{want: w.Processor, facts: func(m *muster.Machine) []string { return []string{m.Facts.Processor} }},
		})
	}
}

// allowed leaves out what the project of a request may not have.
func (b *builder) allowed(a *muster.Allowed) {
	if a == nil {
		return
	}
	matches := func(list []string, name string) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(p string) bool { return b.glob.name(p, name) })
	}
	b.add(check{
		reason: ReasonNotAllowed,
		pass: func(m *muster.Machine) bool {
			return matches(a.Classes, m.Facts.Class) && (matches(a.Providers, m.Provider) || b.vm != nil && matches(a.Providers, muster.ProviderVM))
		},
		text:   "of a class or a provider that the project may not have",
		change: "an administrator can allow more: `muster project show` says what is allowed",
	})
}

// counted adds a check of one quantity, if anything is asked.
func (b *builder) counted(reason string, want muster.Quantity, u unit, fact func(*muster.Machine) int64) {
	if want.IsZero() {
		return
	}
	b.add(check{
		reason: reason,
		pass:   func(m *muster.Machine) bool { return want.Met(fact(m)) },
		amount: &amount{want: want, fact: fact, unit: u},
	})
}

func (b *builder) amounts() {
	w := b.wish
	b.counted(ReasonCores, w.Cores, plain, func(m *muster.Machine) int64 { return int64(m.Facts.Cores) })
	b.counted(ReasonMemory, w.Memory, inBytes, func(m *muster.Machine) int64 { return memoryFor(m, b.vm) })
	b.counted(ReasonDisk, w.Disk, inBytes, func(m *muster.Machine) int64 {
		if b.vm != nil { // none of its host's is its own
			return 0
		}
		return m.Facts.Disk
	})
	b.counted(ReasonNICs, w.NICs, plain, func(m *muster.Machine) int64 { return int64(len(b.nics(m, ""))) })
	if w.NICKind != "" {
		b.add(check{
			reason: ReasonNICKind,
			pass:   func(m *muster.Machine) bool { return len(b.nics(m, w.NICKind)) > 0 },
			label: &label{want: w.NICKind, facts: func(m *muster.Machine) []string {
				var kinds []string
				for _, n := range b.nics(m, "") {
					kinds = append(kinds, n.Kind)
				}
				return kinds
			}},
		})
	}
	b.counted(ReasonNICSpeed, w.NICSpeed, inBits, func(m *muster.Machine) int64 {
		var most int64
		for _, n := range b.nics(m, w.NICKind) {
			most = max(most, n.Speed)
		}
		return most
	})
	accelerators := w.Accelerators
	if accelerators.IsZero() && w.Accelerator != "" {
		accelerators = muster.Quantity{Op: muster.AtLeast, Value: 1}
	}
	b.counted(ReasonAccelerators, accelerators, plain, func(m *muster.Machine) int64 {
		var n int64
		for _, d := range m.Facts.Accelerators {
			if w.Accelerator == "" || b.glob.accelerator(w.Accelerator, d.Model) {
				n += int64(d.Count)
			}
		}
		return n
	})
}

// nics are the machine's message NICs of a kind. They are not copied while all
// of them count, which is the rule.
func (b *builder) nics(m *muster.Machine, kind string) []muster.NIC {
	keep := func(n muster.NIC) bool {
		return n.Use != "management" && (kind == "" || b.glob.name(kind, n.Kind))
	}
	for i, n := range m.Facts.NICs {
		if keep(n) {
			continue
		}
		out := append([]muster.NIC(nil), m.Facts.NICs[:i]...)
		for _, n := range m.Facts.NICs[i+1:] {
			if keep(n) {
				out = append(out, n)
			}
		}
		return out
	}
	return m.Facts.NICs
}
