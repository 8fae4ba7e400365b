package admit

import (
	"fmt"

	"github.com/muster-hpc/muster"
)

// ReasonUserID is that the number of somebody who is to log in does not exist on the machine.
const ReasonUserID = "user-id"

// ReasonEgress is that the machine cannot have the way out that is asked for.
const ReasonEgress = "egress"

// checksOf makes the whole chain for a request on a site.
func checksOf(spec muster.Spec, image *muster.Image, snap Snapshot) []check {
	list := checksFor(spec, image, snap.Providers)
	for _, d := range snap.Drivers.asked(spec) {
		text, change := unable(d)
		list = append(list, check{
			reason: ReasonVolume, head: true,
			pass: func(m *muster.Machine) bool { return snap.Providers.For(m.Provider, spec.VM).CanMount(d) },
			text: text, change: change,
		})
	}
	if e := spec.Egress; e != "" && e != muster.EgressNone {
		list = append(list, check{
			reason: ReasonEgress, head: true,
			pass:   func(m *muster.Machine) bool { return snap.Providers.For(m.Provider, spec.VM).CanUse(e) },
			text:   fmt.Sprintf("cannot have outgoing traffic by %s", e),
			change: "ask for egress proxy or none, or for machines of another provider",
		})
	}
	if name, uid := snap.highest(spec.Users); uid > 0 {
		list = append(list, check{
			reason: ReasonUserID, head: true,
			pass:   func(m *muster.Machine) bool { return snap.Providers.For(m.Provider, spec.VM).HasUID(uid) },
			text:   fmt.Sprintf("have no user ID %d, which is that of %s", uid, name),
			change: "ask for machines of another provider, or leave out who has so high a number",
		})
	}
	return list
}

// highest is who has the highest of the numbers that do not exist everywhere.
func (s Snapshot) highest(users []string) (name string, uid int) {
	for _, u := range users {
		if s.HighUIDs[u] > uid {
			name, uid = u, s.HighUIDs[u]
		}
	}
	return name, uid
}
