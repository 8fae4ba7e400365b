package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

func (a *app) delete() *cobra.Command {
	var wait, erase, yes bool
	var timeout time.Duration
	var file string
	c := &cobra.Command{
		Use: "delete CLUSTER... | -f FILE", Aliases: []string{"rm"}, Short: "Delete clusters",
		Long: `Deletes clusters: their machines are powered off, erased, checked and freed. Homes are
kept for a while (7 days by default) and can be used by new clusters; with --erase they
are erased at once. Local scratch and the job queue are lost. This cannot be undone.

It says how many jobs run, and whose. On a terminal it asks before it ends jobs, and before
it erases a home, for which the name is typed. --yes answers for you; without a terminal
--erase needs it.

-f reads the same from a request in YAML, JSON or XML (<terminate>): cluster and erase. What
stands there is not asked for again.`,
		Example: `  muster delete cfd --wait
  muster delete cfd --erase --yes
  muster delete cfd lab c-8x2k4v9wqz
  muster delete -f end.yaml --wait`,
		Args: func(c *cobra.Command, args []string) error {
			if file != "" && (len(args) > 0 || erase) {
				return usage(c, "the cluster stands in the request file, not beside it")
			}
			if len(args) == 0 && file == "" {
				return usage(c, "CLUSTER is missing")
			}
			return nil
		},
		ValidArgsFunction: a.completeClusters(-1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			if err := needsWait(c, wait); err != nil {
				return err
			}
			if file != "" {
				data, err := a.readUpTo(file, maxRequest, "a request")
				if err != nil {
					return err
				}
				r, err := spec.ReadTerminate(data, spec.FormatOf("", file, data))
				if err != nil {
					return err
				}
				args, erase, yes = []string{r.Cluster}, r.Erase, true
			}
			return a.runDelete(c, args, wait, erase, yes, timeout)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "request file; - is standard input")
	c.Flags().BoolVar(&erase, "erase", false, "also erase their homes")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&wait, "wait", false, "wait until their machines are free again")
	duration.Var(c.Flags(), &timeout, "timeout", 0, "with --wait: give up waiting after this long")
	return c
}

func (a *app) runDelete(c *cobra.Command, args []string, wait, erase, yes bool, timeout time.Duration) error {
	k, err := a.connect()
	if err != nil {
		return err
	}
	began := time.Now()
	done := []wire.Deleted{}
	var failed []error
	ask := a.confirming(yes)
	for _, ref := range args {
		if err := a.confirmDelete(c.Context(), k, ask, ref, erase); err != nil {
			return err // nothing is begun of what was meant otherwise
		}
	}
	for _, ref := range args {
		do := k.DeleteCluster
		if erase {
			do = k.EraseCluster
		}
		d, err := do(c.Context(), ref)
		if err != nil {
			failed = append(failed, err)
			if len(args) > 1 {
				a.report(err)
			}
			continue
		}
		done = append(done, d)
		if a.output == "" && !wait {
			fmt.Fprintf(a.env.Out, "cluster %s  %s  %s\n", clean(d.Name), d.ID, d.Status)
			a.writeKept(d)
		}
	}
	if wait {
		var all errgroup.Group
		for i := range done {
			all.Go(func() error {
				w := &watcher{app: a, client: k, id: done[i].ID, name: done[i].Name, timeout: timeout, goal: muster.ClusterDeleted,
					show: a.output == "" && len(done) == 1}
				if done[i].Status != muster.ClusterDeleted {
					if _, err := w.run(c.Context()); err != nil {
						return err
					}
				}
				done[i].Status = muster.ClusterDeleted
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			return err
		}
		if a.output == "" {
			for _, d := range done {
				fmt.Fprintf(a.env.Out, "cluster %s  %s  %s after %.1fs\n", clean(d.Name), d.ID, d.Status, time.Since(began).Seconds())
				a.writeKept(d)
			}
		}
	}
	if a.output != "" {
		if err := a.print(done, func(io.Writer) {}); err != nil {
			return err
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case len(args) == 1:
		return failed[0]
	}
	return &StatusError{Status: ExitCode(errors.Join(failed...))}
}
