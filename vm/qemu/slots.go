package qemu

import (
	"fmt"
	"strconv"
)

// Slots are the places of a machine for passed-through devices, at its memory nodes where it has several.
type Slots struct {
	Nodes   int         // memory nodes of the machine
	bridges map[int]int // of memory nodes
	ports   int
}

// Port is a new slot, as arguments and by the name of its bus; node is the memory node that it is near to, nil: none.
func (s *Slots) Port(node *int) (args []string, bus string) {
	bus = "pcie.0"
	if node != nil && s.Nodes > 1 {
		i, ok := s.bridges[*node]
		if !ok {
			if s.bridges == nil {
				s.bridges = map[int]int{}
			}
			i = len(s.bridges)
			s.bridges[*node] = i
			args = append(args, "-device", fmt.Sprintf("pxb-pcie,id=pxb%d,bus=pcie.0,bus_nr=%d,numa_node=%d", i, 64+i*(192/s.Nodes), *node))
		}
		bus = "pxb" + strconv.Itoa(i)
	}
	s.ports++
	id := "port" + strconv.Itoa(s.ports)
	return append(args, "-device", fmt.Sprintf("pcie-root-port,id=%s,bus=%s,chassis=%d,slot=%d", id, bus, s.ports, s.ports)), id
}
