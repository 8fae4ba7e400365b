package factsdiff

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/muster-hpc/muster"
)

// Limits of what a machine can say of itself. Real ones are far below.
const (
	mostParts = 1024 // of one kind
	mostText  = 128  // runes
)

// Bounded are facts as far as a machine can be believed, whose hello is from outside:
// lists are cut, texts are short and can be printed, and what only a site can say
// (class, rack, use) is left out.
func Bounded(f muster.Facts) muster.Facts {
	f.Class, f.Rack, f.Service, f.Oversubscribed, f.CPUs = "", "", false, false, nil
	f.Leaf, f.Chassis = "", ""
	for _, s := range []*string{&f.Architecture, &f.Processor, &f.Serial, &f.Vendor, &f.Product, &f.UUID, &f.Firmware} {
		*s = text(*s)
	}
	if f.BootMode != muster.BootModeBIOS && f.BootMode != muster.BootModeUEFI {
		f.BootMode = ""
	}
	f.CPULevel = min(max(f.CPULevel, 0), 9)
	for _, n := range []*int{&f.Sockets, &f.Cores, &f.Threads} {
		*n = min(max(*n, 0), 1<<20)
	}
	f.Memory, f.Disk = max(f.Memory, 0), max(f.Disk, 0)
	f.NUMA, f.DIMMs, f.Caches = cut(f.NUMA), cut(f.DIMMs), cut(f.Caches)
	f.Disks, f.NICs, f.Accelerators, f.Modalias = cut(f.Disks), cut(f.NICs), cut(f.Accelerators), cut(f.Modalias)
	for i := range f.NUMA {
		f.NUMA[i].CPUs = cut(f.NUMA[i].CPUs)
	}
	for i := range f.DIMMs {
		d := &f.DIMMs[i]
		d.Slot, d.Kind, d.Vendor, d.Part, d.Serial = text(d.Slot), text(d.Kind), text(d.Vendor), text(d.Part), text(d.Serial)
	}
	for i := range f.Caches {
		f.Caches[i].Kind = text(f.Caches[i].Kind)
	}
	for i := range f.Disks {
		d := &f.Disks[i]
		d.Name, d.Kind, d.Model, d.Serial = text(d.Name), text(d.Kind), text(d.Model), text(d.Serial)
	}
	for i := range f.Accelerators {
		d := &f.Accelerators[i]
		d.Kind, d.Model, d.Name = text(d.Kind), text(d.Model), ""
	}
	for i := range f.Modalias {
		f.Modalias[i] = text(f.Modalias[i])
	}
	for i := range f.NICs {
		f.NICs[i] = boundedNIC(f.NICs[i])
	}
	f.VMHost = boundedVMHost(f.VMHost)
	return f
}

func boundedNIC(n muster.NIC) muster.NIC {
	for _, s := range []*string{&n.Name, &n.MAC, &n.Kind, &n.Driver, &n.Link, &n.PCIAddress} {
		*s = text(*s)
	}
	n.Use, n.Speed = "", max(n.Speed, 0)
	if n.Neighbour != nil {
		b := *n.Neighbour
		b.System, b.Chassis, b.Port, b.Text = text(b.System), text(b.Chassis), text(b.Port), text(b.Text)
		n.Neighbour = &b
	}
	return n
}

// cut copies a list, so that it can be changed, and leaves out what is too much.
func cut[T any](list []T) []T { return slices.Clone(list[:min(len(list), mostParts)]) }

// text is s on one line, without what a terminal would act upon.
func text(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s))
	if r := []rune(s); len(r) > mostText {
		s = string(r[:mostText])
	}
	return s
}

// Kept are the facts of a boot with what was known before and is not seen in every
// boot: who is at the other end of a cable is told only now and then, and a link that
// is down has no speed.
func Kept(was, is muster.Facts) muster.Facts {
	is.NICs = slices.Clone(is.NICs)
	for i, n := range is.NICs {
		j := slices.IndexFunc(was.NICs, func(o muster.NIC) bool { return n.MAC != "" && o.MAC == n.MAC })
		if j < 0 {
			continue
		}
		if n.Neighbour == nil {
			is.NICs[i].Neighbour = was.NICs[j].Neighbour
		}
		if n.Speed == 0 {
			is.NICs[i].Speed = was.NICs[j].Speed
		}
	}
	return is
}

// Same reports whether two boots found the same. Names that a boot gives, links, and the
// little memory that firmware takes do not count; what switches say does.
func Same(a, b muster.Facts) bool {
	if far(a.Memory, b.Memory) {
		return false
	}
	return reflect.DeepEqual(lasting(a), lasting(b))
}

// lasting leaves out what differs from boot to boot.
func lasting(f muster.Facts) muster.Facts {
	f.Memory = 0
	f.NUMA, f.NICs, f.Disks = slices.Clone(f.NUMA), slices.Clone(f.NICs), slices.Clone(f.Disks)
	f.VMHost = lastingVMHost(f.VMHost)
	for i := range f.NUMA {
		f.NUMA[i].Memory = 0
	}
	for i := range f.NICs {
		f.NICs[i].Name, f.NICs[i].Link = "", ""
	}
	for i := range f.Disks {
		f.Disks[i].Name = ""
	}
	slices.SortFunc(f.NICs, func(x, y muster.NIC) int { return strings.Compare(x.MAC, y.MAC) })
	slices.SortStableFunc(f.Disks, func(x, y muster.Disk) int { return strings.Compare(x.Serial+x.Model, y.Serial+y.Model) })
	f.NUMA, f.NICs, f.Disks = some(f.NUMA), some(f.NICs), some(f.Disks)
	f.DIMMs, f.Caches, f.Accelerators, f.Modalias = some(f.DIMMs), some(f.Caches), some(f.Accelerators), some(f.Modalias)
	return f
}

// some is a list, or nil: an empty one is stored as none.
func some[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// Words says what differs, one line for each kind of part:
// "memory: 512 GiB before, 448 GiB now: a DIMM of 64 GiB is gone from slot A3".
func Words(was, is muster.Facts, list []Difference) []string {
	var out []string
	at := map[string]int{}
	slots := &comparison{} // where slots tell of modules, nothing tells of the whole memory
	slots.dimms(was.DIMMs, is.DIMMs)
	for _, d := range list {
		i, ok := at[d.What]
		if !ok {
			at[d.What] = len(out)
			line := d.What + ": "
			if d.What == "memory" && was.Memory > 0 && is.Memory > 0 && far(was.Memory, is.Memory) && len(slots.out) > 0 {
				line += bytesText(was.Memory) + " before, " + bytesText(is.Memory) + " now: "
			}
			out = append(out, line+d.Text)
			continue
		}
		out[i] += "; " + d.Text
	}
	for i, line := range out { // a machine full of strange parts
		if r := []rune(line); len(r) > mostLine {
			out[i] = string(r[:mostLine]) + "..."
		}
	}
	return out
}

// mostLine bounds a line of Words, in runes.
const mostLine = 500

// Missing reports whether a machine has less to compute with than it had. A TPM that is
// gone is told, and takes nothing from those who compute.
func Missing(list []Difference) bool {
	return slices.ContainsFunc(list, func(d Difference) bool { return d.Worse && d.What != "tpm" })
}
