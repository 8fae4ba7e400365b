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
		Use: "fenced MACHINE... --yes", Short: "Say that you have cut machines off, as Muster asked for", Args: someMachines,
		Long: `Says that you have cut machines off: they have no power, or all their cables are out.
Muster asks for that when nothing proves that a machine is off, neither a management
controller nor its switch ports; muster machine show tells. Another machine then takes
its place, with its name, its addresses and its keys: should this one still run, its
cluster may lose data. Look twice whether it is the right one. Who said so is kept.

What you say holds until the machine is switched on again. It is not believed of a
machine that is still heard.

Machines are named one by one or as a set. All of them are taken, or none. Only
administrators may.`,
		Example:           "  muster machine fenced r1-n01 --yes",
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
	c.Flags().BoolVar(&yes, "yes", false, "it is so: they have no power, or all their cables are out")
	return c
}
