package main

import (
	"strings"

	"github.com/muster-hpc/muster/daemon"
	"github.com/spf13/cobra"
)

func adoptCommand() *cobra.Command {
	var state string
	var yes bool
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Rebuild lost records from clusters that are still running",
		Long: `Creates a new database, or completes an old one, from what is running on this host. Next
to the database there is a copy of the records of each cluster, at most a second old. A
cluster is adopted if one of its machines proves that it belongs to it: it runs in the
control groups of this site, and its record, which only root of this host can write,
names the cluster. Jobs keep running.

Without --yes it shows what would happen to each cluster and machine, and changes
nothing. No server may be running. Nodes whose machines are not running are restarted or
replaced by the server. Machines without proof are left alone; the next start lists them
and waits until you have stopped them (muster cleanup --orphans).

If there is an old database, such as a restored backup, clusters are adopted that are not
in it or have changed since: nodes that were restarted or replaced. An older cluster with
the same name or network is deleted; its data is kept. If the database is up to date, its
records are kept and a new epoch begins: use this to continue with a server that another
one had superseded, once that one is stopped for good.

A backup restores more: projects, tokens, history, certificates, bare machines. See
muster restore.`,
		Example: `  muster adopt --state /var/lib/muster
  muster adopt --state /var/lib/muster --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := daemon.Adopt(cmd.Context(), stateOr(state), yes)
			if err != nil {
				return err
			}
			would := "would be adopted"
			if yes {
				would = "adopted"
			}
			for _, c := range a.Clusters {
				cmd.Printf("cluster %s  %s  of %s  %s: %s run\n", c.Name, c.ID, c.Owner, would, strings.Join(c.Proven, " "))
				if len(c.Absent) > 0 {
					cmd.Printf("  without a machine that runs: %s\n", strings.Join(c.Absent, " "))
				}
			}
			for _, m := range a.Left {
				cmd.Printf("machine %s  left alone: cannot prove its cluster (muster cleanup --orphans stops it)\n", m)
			}
			if len(a.Clusters) == 0 {
				cmd.Println("There is no cluster that could be adopted.")
			}
			for _, n := range a.Notes {
				cmd.PrintErrln("note: " + n)
			}
			switch {
			case yes && len(a.Left) == 0:
				cmd.Println("Start the server.")
			case !yes && len(a.Clusters) > 0:
				cmd.Println("Nothing was changed. Run it with --yes to adopt.")
			case !yes:
				cmd.Println("Nothing was changed.")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "state directory of the server (default that of MUSTER_SERVER's socket, or /var/lib/muster)")
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm")
	return cmd
}
