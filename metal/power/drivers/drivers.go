// Package drivers lists the power drivers that come with Muster.
package drivers

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/ipmi"
	"github.com/muster-hpc/muster/metal/power/redfish"
	"github.com/muster-hpc/muster/metal/power/script"
	"github.com/muster-hpc/muster/metal/power/wol"
)

// All are the drivers, by kind.
func All() power.Drivers {
	return power.Drivers{
		muster.PowerWOL:     wol.Maker(),
		muster.PowerIPMI:    ipmi.Maker(),
		muster.PowerRedfish: redfish.Maker(),
		muster.PowerScript:  script.Maker(),
	}
}
