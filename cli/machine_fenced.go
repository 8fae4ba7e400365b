package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func (a *app) machineFenced() *cobra.Command {
	yes := false
	c := &cobra.Command{
		Use: "confirm-off MACHINE... --yes", Short: "Confirm that machines are off (manual fencing)", Args: someMachines,
		Long: `Confirms that machines have no power, or that all their cables are unplugged. Muster
asks for it (condition manual-fence-required) when neither a BMC nor switch ports can
prove that a machine is off. Another machine then takes over its name, addresses and
keys: if this one is still running, its cluster may lose data. Make sure that it is the
right machine. The confirmation is logged with your name.

It is valid until the machine is powered on again, and rejected for a machine that still
sends anything.

Give names or sets of names. Either all machines are confirmed or none. Administrators
only.`,
		Example:           "  muster machine confirm-off r1-n01 --yes",
		ValidArgsFunction: a.completeRegistered,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			if !yes {
				return muster.Errorf(muster.EInvalid, "another machine will take the place of %s: it must be without power, or have no cable", strings.Join(args, ", ")).Because(muster.ReasonNotConfirmed).
					WithHint("add --yes if that is so")
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.ChangeRegistered(c.Context(), strings.Join(args, ","), wire.RegisteredFenced)
			if err != nil {
				return err
			}
			return a.printRegistered(list)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "confirm: they have no power, or all their cables are unplugged")
	return c
}
