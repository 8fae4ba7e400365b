package sysinfo

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// mostNICs are told.
const mostNICs = 256

// nics are the network cards that are plugged in, by the kernel's word, and by hwloc's
// where that says more.
func (s Source) nics(hwloc []muster.NearNIC) []muster.NearNIC {
	var list []muster.NearNIC
	for _, n := range s.facts().Read("", "").NICs {
		if n.Kind == "veth" || len(list) == mostNICs {
			continue // nothing is plugged in
		}
		list = append(list, muster.NearNIC{Name: n.Name, Node: n.NUMA, PCIAddress: n.PCIAddress, Speed: n.Speed})
	}
	for _, h := range hwloc {
		i := slices.IndexFunc(list, func(n muster.NearNIC) bool { return n.Name == h.Name })
		switch {
		case i < 0 && len(list) < mostNICs:
			list = append(list, h)
		case i >= 0 && h.Node != nil:
			list[i].Node = h.Node
			if strings.Contains(h.PCIAddress, ":") { // the card's, and not that of a part of it
				list[i].PCIAddress = h.PCIAddress
			}
		}
	}
	slices.SortFunc(list, func(a, b muster.NearNIC) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// network is hwloc's number for network interfaces among devices of the system.
const network = "2"

// cards collects the network interfaces below an object; near is the memory node of
// what they hang on, and pci the device.
func cards(o *object, near *int, pci string, list *[]muster.NearNIC) {
	if o.nodes != "" {
		near = onlyNode(o.nodes)
	}
	if o.pci != "" {
		pci = o.pci
	}
	if o.kind == "OSDev" && o.device == network && o.name != "" && len(*list) < mostNICs {
		*list = append(*list, muster.NearNIC{Name: o.name, Node: near, PCIAddress: pci})
	}
	for _, c := range o.objects {
		cards(c, near, pci, list)
	}
}

// onlyNode is the one memory node of a set as hwloc writes it, 0x00000001,0x00000000;
// nil: there are several, or the set cannot be read.
func onlyNode(set string) *int {
	words := strings.Split(set, ",")
	found := -1
	for i, w := range words {
		w = strings.TrimPrefix(w, "0x")
		if w == "" {
			continue
		}
		v, err := strconv.ParseUint(w, 16, 32)
		if err != nil || bits.OnesCount64(v) > 1 || v != 0 && found >= 0 {
			return nil
		}
		if v != 0 {
			found = 32*(len(words)-1-i) + bits.TrailingZeros64(v)
		}
	}
	if found < 0 {
		return nil
	}
	return &found
}
