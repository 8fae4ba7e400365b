package admit

import (
	"slices"

	"github.com/muster-hpc/muster"
)

// ReasonVolume is that the machine cannot mount a volume that is asked for.
const ReasonVolume = "volume"

// Drivers are those of volumes, by the volumes' IDs.
type Drivers map[string]muster.VolumeDriver

// unable reports in which words a request is refused machines that cannot have a volume.
func unable(d muster.VolumeDriver) (text, change string) {
	switch d {
	case muster.DriverNFS:
		return "cannot mount a volume of a file server: their kernel is that of the host",
			"leave that volume out, copy its data into a volume of driver hostpath, or ask for machines of another provider"
	case muster.DriverHostPath:
		return "cannot mount a volume of driver hostpath: it is a directory of the server, for machines of the server's own host",
			"leave that volume out, copy its data into a volume of driver managed-nfs, or ask for machines of another provider"
	}
	return "cannot mount a volume of driver " + string(d), "leave that volume out, or ask for machines of another provider"
}

// asked lists the drivers of the volumes that a request names, each once, in order.
func (v Drivers) asked(spec muster.Spec) []muster.VolumeDriver {
	var list []muster.VolumeDriver
	add := func(id string) {
		if d := v[id]; d != "" && !slices.Contains(list, d) {
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
