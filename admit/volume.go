package admit

import (
	"slices"

	"github.com/muster-hpc/muster"
)

// ReasonVolume is that the machine cannot mount a volume that is asked for.
const ReasonVolume = "volume"

// Mounts tells which machines can have which volumes. The zero value: all can
// have all.
type Mounts struct {
	// Drivers are those of the volumes that requests name, by the volumes' IDs.
	Drivers map[string]muster.VolumeDriver
	// Unable are, by provider, the drivers whose volumes its machines cannot have.
	Unable map[string][]muster.VolumeDriver
}

// unable tells in which words a request is refused machines that cannot have a volume.
func unable(d muster.VolumeDriver) (text, change string) {
	switch d {
	case muster.DriverNFS:
		return "cannot mount a volume of a file server: their kernel is that of the host",
			"leave that volume out, copy its data into a volume of driver hostdir, or ask for machines of another provider"
	case muster.DriverHostDir:
		return "cannot mount a volume of driver hostdir: it is a directory of the server, for machines of the server's own host",
			"leave that volume out, copy its data into a volume of driver served, or ask for machines of another provider"
	}
	return "cannot mount a volume of driver " + string(d), "leave that volume out, or ask for machines of another provider"
}

// asked lists the drivers of the volumes that a request names, each once, in order.
func (v Mounts) asked(spec muster.Spec) []muster.VolumeDriver {
	var list []muster.VolumeDriver
	add := func(id string) {
		if d := v.Drivers[id]; d != "" && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	add(spec.Home)
	for _, u := range spec.Volumes {
		add(u.Volume)
	}
	slices.Sort(list)
	return list
}

// checksOf makes the whole chain for a request on a site.
func checksOf(spec muster.Spec, image *muster.Image, snap Snapshot) []check {
	list := checksFor(spec, image, snap.RootElsewhere)
	for _, d := range snap.Mounts.asked(spec) {
		text, change := unable(d)
		list = append(list, check{
			reason: ReasonVolume, head: true,
			pass: func(m *muster.Machine) bool { return !slices.Contains(snap.Mounts.Unable[m.Provider], d) },
			text: text, change: change,
		})
	}
	return list
}
