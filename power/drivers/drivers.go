// Package drivers lists the power drivers that come with Muster.
package drivers

import (
	"github.com/muster-hpc/muster/power"
	"github.com/muster-hpc/muster/power/ipmi"
	"github.com/muster-hpc/muster/power/redfish"
	"github.com/muster-hpc/muster/power/script"
	"github.com/muster-hpc/muster/power/wol"
)

// All are the drivers, by kind.
func All() power.Drivers {
	return power.Drivers{
		power.KindWOL:     wol.Maker(),
		power.KindIPMI:    ipmi.Maker(),
		power.KindRedfish: redfish.Maker(),
		power.KindScript:  script.Maker(),
	}
}
