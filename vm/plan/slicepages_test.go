package plan_test

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/plan"
)

// The plan of a slice says how many huge pages its host has not set aside yet.
func TestPagesThatAHostLacks(t *testing.T) {
	t.Parallel()
	h := server(t)
	for _, test := range []struct {
		slice bool
		free  int64
		want  bool
	}{{true, 0, true}, {true, 1 << 40, false}, {false, 0, false}} {
		vm := *h.VM
		vm.MemoryNodes = nil
		for _, n := range h.VM.MemoryNodes {
			n.Pages = []muster.PagePool{{Size: 2 << 20, Free: test.free}}
			vm.MemoryNodes = append(vm.MemoryNodes, n)
		}
		one := h
		one.VM, one.Slice, one.OwnBoot, one.Memory = &vm, test.slice, !test.slice, 32*gib
		said := false
		for _, s := range plan.Make(one, muster.VMOptions{}).Settings {
			said = said || strings.HasPrefix(s.Name, "huge-pages:") && strings.Contains(s.Value, "its host has 0 free now, and sets aside")
		}
		if said != test.want {
			t.Errorf("%+v: it says so: %v", test, said)
		}
	}
}
