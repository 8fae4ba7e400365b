package admit

import "github.com/muster-hpc/muster"

// ReasonVolume is that the machine cannot mount a volume that is asked for.
const ReasonVolume = "volume"

// Mounts tells which machines can have which volumes. The zero value: all can
// have all.
type Mounts struct {
	// Exports are the IDs of the volumes that machines mount from a file
	// server by themselves.
	Exports map[string]bool
	// Unable are the providers whose machines cannot do that.
	Unable map[string]bool
}

// needed tells whether a request mounts something from a file server.
func (v Mounts) needed(spec muster.Spec) bool {
	for _, u := range spec.Volumes {
		if v.Exports[u.Volume] {
			return true
		}
	}
	return false
}

// checksOf makes the whole chain for a request on a site.
func checksOf(spec muster.Spec, image *muster.Image, snap Snapshot) []check {
	list := checksFor(spec, image, snap.RootElsewhere)
	if !snap.Mounts.needed(spec) {
		return list
	}
	return append(list, check{
		reason: ReasonVolume, head: true,
		pass:   func(m *muster.Machine) bool { return !snap.Mounts.Unable[m.Provider] },
		text:   "cannot mount a volume of a file server: their kernel is that of the host",
		change: "leave that volume out, copy its data into a volume of driver hostdir, or ask for machines of another provider",
	})
}
