package factsdiff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Difference is one thing that is not as it was, in words.
type Difference struct {
	What string // memory, disk, nic, accelerator, processor, firmware, machine, tpm
	Text string // "a DIMM of 16 GiB is gone from slot A1"
	// Worse: the machine lost something. A change that is neither better nor worse
	// is not worse.
	Worse bool
}

// Compare reports in what the hardware of a machine differs from what it was. What
// is not known on one side is not compared; order, names that a boot gives, links
// and what switches say do not count.
func Compare(was, is muster.Facts) []Difference {
	c := &comparison{}
	c.text("machine", "the vendor", was.Vendor, is.Vendor)
	c.text("machine", "the product", was.Product, is.Product)
	c.text("machine", "the serial number", was.Serial, is.Serial)
	c.text("machine", "the UUID", was.UUID, is.UUID)
	c.text("firmware", "the firmware's version", was.Firmware, is.Firmware)
	c.text("processor", "the processor", was.Processor, is.Processor)
	c.count("processor", "socket", was.Sockets, is.Sockets)
	c.count("processor", "core", was.Cores, is.Cores)
	c.count("processor", "hardware thread", was.Threads, is.Threads)
	c.count("processor", "memory node", len(was.NUMA), len(is.NUMA))
	before := len(c.out)
	c.dimms(was.DIMMs, is.DIMMs)
	// Firmware takes a little for itself, each time another.
	if len(c.out) == before && was.Memory > 0 && is.Memory > 0 && far(was.Memory, is.Memory) {
		c.add("memory", is.Memory < was.Memory, "the memory was %s and is %s", bytesText(was.Memory), bytesText(is.Memory))
	}
	c.disks(was.Disks, is.Disks)
	c.nics(was.NICs, is.NICs)
	c.accelerators(was.Accelerators, is.Accelerators)
	if was.TPM && !is.TPM {
		c.add("tpm", true, "the TPM is gone")
	}
	if !was.TPM && is.TPM && known(was) {
		c.add("tpm", false, "there is a TPM now")
	}
	return c.out
}

// known reports whether facts were read of the whole machine.
func known(f muster.Facts) bool {
	return f.Vendor != "" || f.UUID != "" || len(f.DIMMs) > 0 || len(f.Disks) > 0
}

// far reports whether two sizes of memory differ by more than firmware does: a
// fiftieth.
func far(a, b int64) bool { return max(a, b)-min(a, b) > max(a, b)/50 }

type comparison struct{ out []Difference }

func (c *comparison) add(what string, worse bool, format string, args ...any) {
	c.out = append(c.out, Difference{What: what, Text: fmt.Sprintf(format, args...), Worse: worse})
}

func (c *comparison) text(what, name, was, is string) {
	if was != "" && is != "" && was != is {
		c.add(what, false, "%s was %q and is %q", name, was, is)
	}
}

func (c *comparison) count(what, name string, was, is int) {
	if was == 0 || is == 0 || was == is {
		return
	}
	if is < was {
		c.add(what, true, "%s gone: %d of %d are left", plural(was-is, name), is, was)
		return
	}
	c.add(what, false, "%s more: %d instead of %d", plural(is-was, name), is, was)
}

func plural(n int, name string) string {
	if n == 1 {
		return "1 " + name + " is"
	}
	return plaintext.Count(n, name) + " are"
}

// dimms compares what is in each slot.
func (c *comparison) dimms(was, is []muster.DIMM) {
	if len(was) == 0 || len(is) == 0 {
		return
	}
	// Some firmware gives several slots one name: what is in them is counted.
	own := func(slot string) bool {
		n := func(l []muster.DIMM) (n int) {
			for _, d := range l {
				if d.Slot == slot {
					n++
				}
			}
			return n
		}
		return slot != "" && n(was) <= 1 && n(is) <= 1
	}
	gone, come := apart(was, is, func(d muster.DIMM) string {
		if own(d.Slot) {
			return d.Slot
		}
		return fmt.Sprint(d.Slot, " ", d.Size)
	})
	for _, d := range gone {
		c.add("memory", true, "a DIMM of %s is gone%s", bytesText(d.Size), from(d.Slot))
	}
	for _, d := range come {
		c.add("memory", false, "a DIMM of %s is new%s", bytesText(d.Size), in(d.Slot))
	}
	for _, a := range was {
		i := slices.IndexFunc(is, func(b muster.DIMM) bool { return own(a.Slot) && b.Slot == a.Slot })
		if i < 0 {
			continue
		}
		b := is[i]
		switch {
		case a.Size != b.Size:
			c.add("memory", b.Size < a.Size, "the DIMM%s had %s and has %s", in(a.Slot), bytesText(a.Size), bytesText(b.Size))
		case a.Serial != "" && b.Serial != "" && a.Serial != b.Serial:
			c.add("memory", false, "the DIMM%s was exchanged: its serial number was %s and is %s", in(a.Slot), a.Serial, b.Serial)
		case a.Speed > 0 && b.Speed > 0 && a.Speed != b.Speed:
			c.add("memory", b.Speed < a.Speed, "the DIMM%s ran at %d MT/s and runs at %d", in(a.Slot), a.Speed, b.Speed)
		}
	}
}

func in(slot string) string {
	if slot == "" {
		return ""
	}
	return " in slot " + slot
}

func from(slot string) string {
	if slot == "" {
		return ""
	}
	return " from slot " + slot
}

// disks compares by serial number; by model and size where there is none.
func (c *comparison) disks(was, is []muster.Disk) {
	gone, come := apart(was, is, func(d muster.Disk) string {
		if d.Serial != "" {
			return "serial " + d.Serial
		}
		return fmt.Sprint(d.Kind, " ", d.Model, " ", d.Size)
	})
	for _, d := range gone {
		c.add("disk", true, "the disk %s is gone", diskText(d))
	}
	for _, d := range come {
		c.add("disk", false, "the disk %s is new", diskText(d))
	}
	for _, a := range was {
		i := slices.IndexFunc(is, func(b muster.Disk) bool { return a.Serial != "" && b.Serial == a.Serial })
		if i >= 0 && is[i].Size != a.Size {
			c.add("disk", is[i].Size < a.Size, "the disk %s has %s now", diskText(a), bytesText(is[i].Size))
		}
		if i >= 0 && is[i].ReadOnly != a.ReadOnly {
			c.add("disk", is[i].ReadOnly, "the disk %s is %s now", diskText(a), map[bool]string{true: "write-protected", false: "not write-protected any more"}[is[i].ReadOnly])
		}
	}
}

func diskText(d muster.Disk) string {
	s := strings.TrimSpace(d.Model+" of ") + " " + bytesText(d.Size)
	if d.Model == "" {
		s = d.Kind + " of " + bytesText(d.Size)
	}
	if d.Serial != "" {
		s += " (serial number " + d.Serial + ")"
	}
	return s
}

// nics compares by MAC.
func (c *comparison) nics(was, is []muster.NIC) {
	gone, come := apart(was, is, func(n muster.NIC) string { return cmp.Or(n.MAC, n.Name) })
	for _, n := range gone {
		c.add("nic", true, "the network card %s is gone%s", cmp.Or(n.MAC, n.Name), at(n.PCIAddress))
	}
	for _, n := range come {
		c.add("nic", false, "the network card %s is new%s", cmp.Or(n.MAC, n.Name), at(n.PCIAddress))
	}
	for _, a := range was {
		i := slices.IndexFunc(is, func(b muster.NIC) bool { return a.MAC != "" && b.MAC == a.MAC })
		if i >= 0 && a.Speed > 0 && is[i].Speed > 0 && a.Speed != is[i].Speed {
			c.add("nic", is[i].Speed < a.Speed, "the network card %s ran at %s and runs at %s", a.MAC, speedText(a.Speed), speedText(is[i].Speed))
		}
	}
}

func at(place string) string {
	if place == "" {
		return ""
	}
	return " at " + place
}

// accelerators compares by kind and model.
func (c *comparison) accelerators(was, is []muster.Device) {
	count := map[[2]string][2]int{}
	var order [][2]string
	for side, list := range [][]muster.Device{was, is} {
		for _, d := range list {
			k := [2]string{d.Kind, d.Model}
			n, ok := count[k]
			if !ok {
				order = append(order, k)
			}
			n[side] += max(1, d.Count)
			count[k] = n
		}
	}
	for _, k := range order {
		if n := count[k]; n[0] != n[1] {
			c.add("accelerator", n[1] < n[0], "%s %s: there were %d and are %d", k[0], k[1], n[0], n[1])
		}
	}
}

// apart lists what is only on one side. Things with the same key are counted.
func apart[T any](was, is []T, key func(T) string) (gone, come []T) {
	left := map[string]int{}
	for _, x := range is {
		left[key(x)]++
	}
	for _, x := range was {
		if left[key(x)]--; left[key(x)] < 0 {
			gone = append(gone, x)
		}
	}
	clear(left)
	for _, x := range was {
		left[key(x)]++
	}
	for _, x := range is {
		if left[key(x)]--; left[key(x)] < 0 {
			come = append(come, x)
		}
	}
	return gone, come
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<40:
		return trimmed(float64(n)/(1<<40), "TiB")
	case n >= 1<<30:
		return trimmed(float64(n)/(1<<30), "GiB")
	}
	return trimmed(float64(n)/(1<<20), "MiB")
}

func speedText(n int64) string {
	if n >= 1e9 {
		return trimmed(float64(n)/1e9, "Gb/s")
	}
	return trimmed(float64(n)/1e6, "Mb/s")
}

func trimmed(v float64, unit string) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit
}
