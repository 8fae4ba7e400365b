package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// awaited are the phases that can be waited for: those in which a cluster stays.
func awaited() []string {
	return []string{string(muster.ClusterReady), string(muster.ClusterPaused), string(muster.ClusterFrozen), string(muster.ClusterFailed), string(muster.ClusterDeleted)}
}

func (a *app) wait() *cobra.Command {
	var goal string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "wait CLUSTER", Short: "Wait until a cluster is ready, paused, frozen or deleted", Args: exactly("CLUSTER"),
		Long: `Waits until a cluster is ready, or with --for until it is paused, frozen, failed or deleted, and
returns at once if it is. It does not matter who asked for that, and when.

The exit status is 0 when it is so; 8 after --timeout; and when it cannot become so any
more, because it failed or somebody deletes it, that of the reason. A cluster that is
gone already is deleted. Ctrl-C ends the waiting and nothing else.`,
		Example: `  muster wait cfd
  muster wait cfd --for deleted --timeout 10m
  muster wait cfd --timeout 2d && muster exec cfd -- sbatch job.sh`,
		ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			if !slices.Contains(awaited(), goal) {
				e := muster.Errorf(muster.EInvalid, "--for cannot be %q", goal).Because(muster.ReasonBadValue)
				if near := suggest.Of(goal, awaited()); near != "" {
					return e.WithHint("did you mean %s?", near)
				}
				return e.WithHint("write %s", strings.Join(awaited(), ", "))
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			found, err := a.beginWait(c.Context(), k, args[0], muster.ClusterPhase(goal))
			if err != nil {
				return err
			}
			found, err = a.awaitPhase(c.Context(), k, string(found.ID), timeout, muster.ClusterPhase(goal), nil)
			if err != nil {
				return err
			}
			return a.print(found, func(io.Writer) {})
		},
	}
	c.Flags().StringVar(&goal, "for", string(muster.ClusterReady), "what to wait for: "+strings.Join(awaited(), ", "))
	duration.Var(c.Flags(), &timeout, "timeout", 0, "give up waiting after this long: 10m, 2d (default: never)")
	_ = c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(awaited(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// beginWait finds the cluster that is meant. A deleted one has no name any more: who waits
// for that may come when it is done.
func (a *app) beginWait(ctx context.Context, k *client.Client, ref string, goal muster.ClusterPhase) (wire.Cluster, error) {
	c, err := k.Cluster(ctx, ref)
	if goal != muster.ClusterDeleted || muster.CodeOf(err) != muster.ENotFound {
		return c, err
	}
	all, listing := k.Clusters(ctx, client.ClusterFilter{All: true})
	if listing != nil {
		return c, err
	}
	for _, old := range slices.Backward(all) {
		if old.Name == ref && old.Status == muster.ClusterDeleted {
			return old, nil
		}
	}
	return c, err
}

// awaitPhase waits until a cluster is in a phase, and shows what it says of itself meanwhile. Once it is in a phase of
// which instead makes an error, it waits no more; nil: there is none.
func (a *app) awaitPhase(ctx context.Context, k *client.Client, ref string, timeout time.Duration, goal muster.ClusterPhase, instead func(wire.Cluster) error) (wire.Cluster, error) {
	waiting := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	said, name, began := "", ref, time.Now()
	var last wire.Cluster
	for {
		c, err := k.Cluster(waiting, ref)
		switch {
		case waiting.Err() != nil:
		case err != nil && muster.CodeOf(err) != muster.EUnavailable:
			return c, err
		case err != nil: // the server is restarting
		default:
			last, name = c, c.Name
			if c.Status == goal {
				if a.output == "" {
					fmt.Fprintf(a.env.Out, "%s\n", clean(string(c.Status)))
				}
				return c, nil
			}
			if instead != nil {
				if err := instead(c); err != nil {
					return c, err
				}
			}
			if neverAgain(c.Status, goal) {
				return c, (&watcher{app: a, id: c.ID, name: c.Name, phase: c.Status, goal: goal}).verdict(&c)
			}
			if a.output == "" && string(c.Status) != said {
				said = string(c.Status)
				line := said
				if c.StatusText != "" && c.StatusText != said {
					line += ": " + c.StatusText
				}
				fmt.Fprintf(a.env.Out, "%s\n", clean(line))
			}
		}
		select {
		case <-waiting.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return last, ctx.Err()
			}
			return last, muster.Errorf(muster.ETimeout, "cluster %s is not %s after %s", name, goal, timeout).Because(muster.ReasonNotDoneYet).WithHint("it goes on: muster show %s", ref)
		case <-time.After(look(time.Since(began))):
		}
	}
}

// takenBack says why a cluster that was being paused is ready again; nil: it is not.
func takenBack(c wire.Cluster) error {
	if c.Status != muster.ClusterReady {
		return nil
	}
	why := "somebody took the pause back"
	if n := len(c.Notices); n > 0 && c.Notices[n-1].Code == muster.NoticePause {
		why = c.Notices[n-1].Text
	}
	return muster.Errorf(muster.EConflict, "cluster %s is not paused: %s", c.Name, why).Because(muster.ReasonChangedMeanwhile).WithHint("see 'muster events %s'", c.ID)
}

// neverAgain reports whether a cluster that is in a phase cannot come into another any more.
func neverAgain(is, goal muster.ClusterPhase) bool {
	switch is {
	case muster.ClusterFailed:
		return goal != muster.ClusterDeleted
	case muster.ClusterDeleting, muster.ClusterDeleted:
		return goal != muster.ClusterDeleted
	}
	return false
}

// look is how long to wait before a cluster is looked at again: seldom, once it takes long.
func look(waited time.Duration) time.Duration {
	return min(max(waited/50, 250*time.Millisecond), 5*time.Second)
}
