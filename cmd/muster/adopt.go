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
		Short: "Take up clusters that run though the store was lost",
		Long: `Make a store anew, or complete an old one, from what runs on this host. Beside the
store there is a copy of what it knew of each cluster, at most a second old. A
cluster is adopted when one of its machines proves itself: it runs in the control
groups of this site, and its note, which only root of this host can write, names
the cluster. Nothing in it ends: jobs go on.

Without --yes it says what would become of each cluster and machine, and changes
nothing. No server may run. Nodes whose machines do not run are started again by
the server, or replaced. Machines that nothing proves are left alone; the next start
names them, and waits until you have ended them (muster cleanup --unknown).

Where there is an old store, such as a restored backup, a cluster is adopted that it does
not know, or of which its copy and its machines know more: nodes that were started again
or replaced. A cluster with the same name or network ended before, and is deleted; its
data is kept. Where the store knows as much, its records stay, and it begins a new epoch:
that is how a server goes on whose place another one had taken, once that is stopped for
good.

A backup brings back more: projects, tokens, history, certificates, bare machines.
See muster restore.`,
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
				cmd.Printf("machine %s  left: nothing proves whose it is (muster cleanup --unknown ends it)\n", m)
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
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return cmd
}
