package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) doors() *cobra.Command {
	return &cobra.Command{
		Use: "doors CLUSTER DOOR,...|all|none", Short: "Say by which doors of the SSH gateway users may come to a cluster", Args: exactly("CLUSTER", "DOORS"),
		Long: `Opens and closes doors of the SSH gateway for a cluster, also while it runs: straight, jump, plain. Sessions
in a door that is closed end within seconds. A door that the site or the project has closed
stays closed. At the plain door the gateway could read what passes; at the jump door it cannot.`,
		Example: `  muster doors cfd jump     # from now on only end-to-end encrypted sessions
  muster doors cfd all`,
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return a.completeClusters(1)(c, args, typed)
			}
			return append(strings.Split(doorNames(muster.Doors(), " "), " "), "all", "none"), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			r := wire.DoorsRequest{Doors: []string{}}
			if args[1] != "all" {
				r.Doors = strings.Split(args[1], ",")
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.SetDoors(c.Context(), args[0], r)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				fmt.Fprintf(w, "cluster %s  %s  open: %s\n", clean(out.Name), out.ID, first(doorNames(out.Open, ", "), "none"))
			})
		},
	}
}
