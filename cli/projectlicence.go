package cli

import (
	"io"

	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) projectLicence() *cobra.Command {
	var r wire.ProjectLicence
	c := &cobra.Command{
		Use: "licence PROJECT HOST:PORT", Aliases: []string{"license"}, Short: "Let the nodes of a project reach a licence server", Args: exactly("PROJECT", "HOST:PORT"),
		Long: `Lets the nodes of a project's clusters reach one port of a licence server outside, and
nothing else by the way, whatever outgoing traffic they have. HOST is a name as Muster's
server resolves it; nodes have the same name for it. It holds at once, for clusters that
are in use, too. A server with two ports needs both. --revoke ends connections.`,
		Example: `  muster project licence cfd licences.example.org:27000
  muster project licence cfd licences.example.org:27000 --revoke`,
		ValidArgsFunction: a.completeProjects,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			r.Server = args[1]
			out, err := k.LicenceProject(c.Context(), args[0], r)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) { writeProject(w, out) })
		},
	}
	c.Flags().BoolVar(&r.Revoke, "revoke", false, "do not let them reach it any more")
	return c
}
