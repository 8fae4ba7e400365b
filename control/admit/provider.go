package admit

import (
	"fmt"

	"github.com/muster-hpc/muster"
)

// ReasonEgress is that the machine cannot have the way out that is asked for.
const ReasonEgress = "egress"

// checksOf makes the whole chain for a request on a site.
func checksOf(spec muster.Spec, image *muster.Image, snap Snapshot) []check {
	list := checksFor(spec, image, snap.Providers)
	for _, d := range snap.Drivers.asked(spec) {
		text, change := unable(d)
		list = append(list, check{
			reason: ReasonVolume, head: true,
			pass: func(m *muster.Machine) bool { return snap.Providers.Of(m.Provider).CanMount(d) },
			text: text, change: change,
		})
	}
	if e := spec.Egress; e != "" && e != muster.EgressNone {
		list = append(list, check{
			reason: ReasonEgress, head: true,
			pass:   func(m *muster.Machine) bool { return snap.Providers.Of(m.Provider).CanUse(e) },
			text:   fmt.Sprintf("cannot have outgoing traffic by %s", e),
			change: "ask for egress proxy or none, or for machines of another provider",
		})
	}
	return list
}
