package daemon

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power/drivers"
	"github.com/muster-hpc/muster/metal/switches/ports"
)

// unusable returns what of a registration cannot be used on this server: what would fail at
// the first command, perhaps at night.
func unusable(r muster.Registration) []muster.Problem {
	return append(drivers.All().Unusable(r.Power), ports.DriversOf().Unusable(r.NICs)...)
}
