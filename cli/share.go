package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster/internal/plaintext"
)

func (a *app) extend() *cobra.Command {
	return &cobra.Command{
		Use: "extend CLUSTER TIME", Short: "Extend the walltime of a cluster", Args: exactly("CLUSTER", "TIME"),
		Long: `Adds to the walltime of a cluster, also while it is running. Users are warned before it
ends; at its end the scheduler first ends the jobs, as at their own time limit, then the
machines are freed.`,
		Example: `  muster extend cfd 2h
  muster extend cfd 1d12h`,
		ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Extend(c.Context(), args[0], wire.ExtendRequest{By: args[1]})
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				end := "once it is ready"
				if !out.Expires.IsZero() {
					end = "until " + stamp(out.Expires)
				}
				fmt.Fprintf(w, "cluster %s  %s  lives %s, %s\n", clean(out.Name), out.ID, age(time.Duration(out.Walltime)), end)
			})
		},
	}
}

func (a *app) share() *cobra.Command {
	var project bool
	c := &cobra.Command{
		Use: "share CLUSTER [USER...]", Short: "Give users access to a cluster",
		Long: `Lets others log in to a cluster and run jobs there, also while it is running: their
accounts and keys are on every node within seconds. They must be in the cluster's
project, unless an administrator adds them. For administrators, unknown users are
created; a name that differs from an existing one by a letter or two is rejected as a
typo ('muster user add' creates such a user).`,
		Example: `  muster share cfd alice bob
  muster share cfd --project`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usage(c, "CLUSTER is missing")
			case len(args) == 1 && !project:
				return usage(c, "USER is missing")
			}
			return nil
		},
		ValidArgsFunction: a.completeSharing,
		RunE: func(c *cobra.Command, args []string) error {
			return a.runShare(c, args[0], wire.ShareRequest{Add: args[1:], Project: project})
		},
	}
	c.Flags().BoolVar(&project, "project", false, "everybody in the cluster's project")
	return c
}

func (a *app) unshare() *cobra.Command {
	return &cobra.Command{
		Use: "unshare CLUSTER USER...", Short: "Remove users from a cluster",
		Long: `Removes users from a cluster, also while it is running: they can no longer log in, and
their processes and jobs there end. Their files are kept. The owner cannot be removed.
Managers of the cluster's project may change it, so they can add themselves again.`,
		Example: `  muster unshare cfd bob`,
		Args: func(c *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return usage(c, "CLUSTER is missing")
			case 1:
				return usage(c, "USER is missing")
			}
			return nil
		},
		ValidArgsFunction: a.completeSharing,
		RunE: func(c *cobra.Command, args []string) error {
			return a.runShare(c, args[0], wire.ShareRequest{Remove: args[1:]})
		},
	}
}

// completeSharing completes a cluster, then people.
func (a *app) completeSharing(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeClusters(1)(c, args, typed)
	}
	return a.completeUsers(c, nil, typed)
}

func (a *app) runShare(c *cobra.Command, ref string, r wire.ShareRequest) error {
	k, err := a.connect()
	if err != nil {
		return err
	}
	out, err := k.Share(c.Context(), ref, r)
	if err != nil {
		return err
	}
	return a.print(out, func(w io.Writer) {
		for _, n := range out.Notices {
			fmt.Fprintf(a.env.Err, "note: %s\n", clean(n))
		}
		text := "unchanged"
		if len(out.Added) > 0 {
			text = strings.Join(out.Added, ", ") + " added"
		}
		if len(out.Removed) > 0 {
			text = strings.Join(out.Removed, ", ") + " removed"
		}
		fmt.Fprintf(w, "cluster %s  %s  %s; its users are %s\n", clean(out.Name), out.ID, clean(text), clean(strings.Join(out.Users, " ")))
		writeApplied(w, out.Name, out.Applied)
	})
}

// writeApplied reports where a change is not in force yet, and what becomes of it.
func writeApplied(w io.Writer, cluster string, a *wire.Applied) {
	if a == nil || a.On == a.Nodes {
		return
	}
	fmt.Fprintf(w, "in force on %d of %s\n", a.On, plaintext.Count(a.Nodes, "node"))
	for _, f := range a.Failed {
		fmt.Fprintf(w, "  %s  all but: %s\n", clean(f.Node), clean(f.Text))
	}
	if len(a.Waiting) > 0 {
		fmt.Fprintf(w, "  %s  not yet; it comes by itself, see 'muster show %s'\n", clean(strings.Join(a.Waiting, " ")), clean(cluster))
	}
}
