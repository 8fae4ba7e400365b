package ipmi

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power/rmcp"
)

// Boot options (28.12).
const (
	optionKeepFlags = 3
	optionInfo      = 4
	optionFlags     = 5

	keepLonger   = 0x08 // do not drop the flags when no command follows within 60 s
	flagsValid   = 0x80
	flagsPersist = 0x40
	flagsUEFI    = 0x20
	fromNetwork  = 1 << 2
)

// bootOnce sets the flags for one start from the network and reads them back.
func (d *driver) bootOnce(ctx context.Context, s *session) error {
	set := func(data ...byte) error {
		_, err := s.command(ctx, rmcp.Chassis, rmcp.SetBootOptions, data...)
		return err
	}
	// Some controllers do not know these two: their flags hold for a minute,
	// and the power follows at once.
	for _, data := range [][]byte{{optionKeepFlags, keepLonger}, {optionInfo, 1, 1}} {
		if err := set(data...); err != nil && !isRefusal(err) {
			return err
		}
	}
	// The flag says UEFI or BIOS, and nothing else: a machine whose mode nobody said, and
	// that was never seen to boot, is started as a BIOS, as ever.
	flags := byte(flagsValid)
	if d.t.Address.BootMode == muster.BootModeUEFI {
		flags |= flagsUEFI
	}
	if err := set(optionFlags, flags, fromNetwork, 0, 0, 0); err != nil {
		return err
	}
	if d.quirk.blind {
		return nil
	}
	data, err := s.command(ctx, rmcp.Chassis, rmcp.GetBootOptions, optionFlags, 0, 0)
	if err != nil {
		return err
	}
	if len(data) < 4 {
		return muster.Errorf(muster.ECorrupt, "its IPMI controller's boot flags have %d bytes", len(data)).Because(muster.ReasonControllerNonsense)
	}
	shown := data[2] & (flagsValid | flagsPersist)
	if d.quirk.invalid {
		shown |= flagsValid
	}
	if shown != flagsValid || data[3]&0x3c != fromNetwork {
		return muster.Errorf(muster.EConflict, "its IPMI controller accepted a network boot but did not set it").Because(muster.ReasonPowerUnconfirmed).
			WithHint("update the controller's firmware, or put the network first in the machine's own boot order and use the quirk blind-boot")
	}
	return nil
}
