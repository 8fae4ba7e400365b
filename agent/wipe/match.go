package wipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Named is a disk of an order, and which of the machine's it is.
type Named struct {
	Order wire.CleanDisk
	// Disk is the machine's; nil: none is, and Why tells people so.
	Disk *muster.Disk
	Why  string
	// Absent: no disk looks like it. One may come yet.
	Absent bool
}

// Title is what people call the disk.
func (n Named) Title() string {
	if n.Disk != nil {
		return Title(*n.Disk)
	}
	return "disk " + strings.TrimSpace(n.Order.Model+" "+n.Order.Serial)
}

// Title is what people call a disk: its serial number, and its name in this boot.
func Title(d muster.Disk) string {
	return fmt.Sprintf("disk %s (%s)", cmp.Or(d.Serial, d.Model, "without a serial number"), d.Name)
}

// Match finds the disks of an order among those that there are. Each disk is found
// once at most. Where more disks look like one that is named than are named, none of
// them is taken: one that is not named must not be touched.
func Match(order []wire.CleanDisk, have []muster.Disk) []Named {
	out := make([]Named, len(order))
	taken := make([]bool, len(have))
	done := make([]bool, len(order))
	// Those with a serial number first, and with a model: they are told apart best.
	turns := make([]int, len(order))
	for i := range turns {
		turns[i] = i
	}
	slices.SortStableFunc(turns, func(a, b int) int { return cmp.Compare(precise(order[b]), precise(order[a])) })
	for _, i := range turns {
		if done[i] {
			continue
		}
		var alike, found []int
		for j, o := range order {
			if o == order[i] {
				alike = append(alike, j)
				done[j] = true
			}
		}
		for k, d := range have {
			if !taken[k] && is(order[i], d) {
				found = append(found, k)
			}
		}
		for n, j := range alike {
			out[j].Order = order[j]
			switch {
			case len(found) > len(alike):
				out[j].Why = fmt.Sprintf("%d disks look like this one (%s): none of them was touched", len(found), names(have, found))
			case n >= len(found):
				out[j].Why, out[j].Absent = missing(order[j], have)
			default:
				taken[found[n]] = true
				out[j].Disk = &have[found[n]]
			}
		}
	}
	return out
}

func precise(o wire.CleanDisk) int {
	n := 0
	if o.Serial != "" {
		n += 2
	}
	if o.Model != "" {
		n++
	}
	return n
}

// is reports whether a disk is all that an order says of it. What the order leaves
// out may be anything, but something must be said beside the size.
func is(o wire.CleanDisk, d muster.Disk) bool {
	return precise(o) > 0 && o.Size == d.Size && (o.Serial == "" || o.Serial == d.Serial) && (o.Model == "" || o.Model == d.Model)
}

// missing reports why a named disk is not found, and whether nothing is like it.
func missing(o wire.CleanDisk, have []muster.Disk) (why string, absent bool) {
	for _, d := range have {
		if o.Serial == "" || d.Serial != o.Serial {
			continue
		}
		if d.Size != o.Size {
			return fmt.Sprintf("%s has %d bytes, the order says %d: not touched", d.Name, d.Size, o.Size), false
		}
		if o.Model != "" && d.Model != o.Model {
			return fmt.Sprintf("%s is a %q, the order says %q: not touched", d.Name, d.Model, o.Model), false
		}
	}
	return fmt.Sprintf("this machine has no such disk of %d bytes", o.Size), true
}

func names(have []muster.Disk, which []int) string {
	var out []string
	for _, k := range which {
		out = append(out, have[k].Name)
	}
	return strings.Join(out, ", ")
}
