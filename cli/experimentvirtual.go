package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// writeVirtualCost says what virtual machines cost each program, beside published figures.
func writeVirtualCost(w io.Writer, r muster.ExperimentResult) {
	if len(r.Virtual) == 0 {
		return
	}
	fmt.Fprintln(w, "\nVirtual machines, times as fast as the machine itself:")
	t := newTable("PROGRAM", "UNTUNED", "TUNED", "PUBLISHED")
	emulated := false
	for _, v := range r.Virtual {
		name := v.Program
		for _, f := range slices.Sorted(maps.Keys(v.Factors)) {
			name += " " + f + "=" + v.Factors[f]
		}
		emulated = emulated || v.Emulated
		t.row(strings.TrimSpace(name), ratioText(v.UntunedSpeed), ratioText(v.TunedSpeed), v.Published)
	}
	t.write(w)
	if emulated {
		fmt.Fprintln(w, "\nNothing is certified: these hosts have no KVM, so QEMU emulated the processors, and the ratios are those of the emulator. See what a host lacks: muster doctor --vm")
	}
}
