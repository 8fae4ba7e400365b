package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) pause() *cobra.Command {
	var r wire.PauseRequest
	var wait bool
	var timeout time.Duration
	c := &cobra.Command{
		Use: "pause CLUSTER", Short: "Free the machines of a cluster and keep everything else", Args: exactly("CLUSTER"),
		Long: `Pauses a cluster: no job starts any more; running jobs are waited for, or put into the
queue again; then its machines are freed. Its name, addresses, keys, home, volumes, job
queue and accounting stay, and its walltime does not run. 'muster resume' brings it back
on other machines, and its jobs go on.

--on-pause wait (the default) waits until running jobs have ended, with --wait-until until
a time. --on-pause requeue ends them (SIGTERM, then 20 seconds) and puts them
into the queue again: a job that writes checkpoints goes on from its last one.
--on-pause freeze suspends them and stops every processor of the cluster: its memory and
its machines stay its own, its walltime runs on, and 'muster resume' lets them go on in
seconds where they were.
--on-pause save, for clusters of virtual machines, suspends them and saves all machines with
what is in their memory, encrypted; machines are freed, and after 'muster resume' the jobs go
on where they were.
--on-pause hibernate, for clusters of bare machines whose request says so, suspends them and
has each machine write its memory to its own disk, encrypted, and go off: the machines stay
its own, its walltime runs on, and after 'muster resume' the jobs go on where they were, once
all machines have booted. Without the flag it is as the request said (on_pause).

What will not survive is said first. Jobs that would be lost (salloc, or srun outside a
batch script; --no-requeue) stop the command, unless --lose-running gives them up.

With --until the time of its return is promised in the same step.`,
		Example: `  muster pause cfd
  muster pause cfd --on-pause requeue --wait
  muster pause cfd --on-pause freeze --wait
  muster pause cfd --on-pause save --wait
  muster pause cfd --on-pause hibernate --wait
  muster pause cfd --at "2026-12-04 18:00 Europe/Berlin" --until "2026-12-07 08:00 Europe/Berlin"
  muster pause cfd --dry-run`,
		ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			if err := needsWait(c, wait); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Pause(c.Context(), args[0], r)
			if err != nil {
				return err
			}
			if a.output == "" {
				a.writePaused(a.env.Out, out)
			}
			if wait && !r.DryRun && out.At.IsZero() {
				got, err := a.awaitPhase(c.Context(), k, string(out.ID), timeout, pausedPhase(out), takenBack)
				if err != nil {
					return err
				}
				out.Status = got.Status
			}
			return a.print(out, func(io.Writer) {})
		},
	}
	f := c.Flags()
	f.StringVar(&r.At, "at", "", `when it begins: +2h, RFC 3339, "2026-12-04 18:00 Europe/Berlin" (default: now)`)
	f.StringVar(&r.Until, "until", "", "when the cluster is to be back, as a promise (default: when you resume it)")
	f.StringVar(&r.OnPause, "on-pause", "", "what to do with running jobs: wait (also: stop), requeue, freeze, save or hibernate (default: as the request says, or wait)")
	f.StringVar(&r.WaitUntil, "wait-until", "", "with --on-pause wait: requeue what still runs then")
	f.BoolVar(&r.LoseRunning, "lose-running", false, "pause even if running work is lost")
	f.BoolVar(&r.DryRun, "dry-run", false, "only show what will not survive")
	f.BoolVar(&wait, "wait", false, "wait until its machines are freed, frozen, or off")
	duration.Var(f, &timeout, "timeout", 0, "with --wait: give up waiting after this long")
	_ = c.RegisterFlagCompletionFunc("on-pause", cobra.FixedCompletions([]string{"wait", "requeue", "freeze", "save", "hibernate"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// pausedPhase is the phase that a pause leads to.
func pausedPhase(p wire.Paused) muster.ClusterPhase {
	if p.KeepsMachines {
		return muster.ClusterFrozen
	}
	return muster.ClusterPaused
}

// shownJobs is how many running jobs are shown of a cluster that is paused.
const shownJobs = 10

func (a *app) writePaused(w io.Writer, out wire.Paused) {
	switch {
	case out.DryRun:
		fmt.Fprintf(w, "cluster %s  %s  dry run, nothing is changed\n", clean(out.Name), out.ID)
	case !out.At.IsZero() && time.Until(out.At) > time.Second:
		fmt.Fprintf(w, "cluster %s  %s  will be paused at %s\n", clean(out.Name), out.ID, moment(out.At))
	default:
		fmt.Fprintf(w, "cluster %s  %s  %s\n", clean(out.Name), out.ID, out.Status)
	}
	for _, j := range out.Jobs {
		fmt.Fprintf(w, "  lost        job %s, %s of %s: %s\n", clean(j.ID), clean(j.Name), clean(j.User), clean(j.Why))
	}
	for i, j := range out.Running {
		if i == shownJobs {
			fmt.Fprintf(w, "              and %d more jobs that run\n", len(out.Running)-i)
			break
		}
		fmt.Fprintf(w, "  job         %s, %s of %s: %s\n", clean(j.ID), clean(j.Name), clean(j.User), clean(j.Why))
	}
	for _, text := range out.Lost {
		fmt.Fprintf(w, "  not kept    %s\n", clean(text))
	}
	if out.KeepsMachines {
		text := "its machines, and what is in their memory; they serve nobody else"
		if !out.Expires.IsZero() {
			text += ", and its walltime runs on: it ends at " + moment(out.Expires)
		}
		fmt.Fprintf(w, "  kept        %s\n", text)
	}
	if out.Memory > 0 {
		text := "what is in the memory of its virtual machines, encrypted: " + size(out.Memory) + " at most, "
		if out.Takes > 0 {
			text += "in about " + age(max(time.Second, time.Duration(out.Takes).Round(time.Second)))
		} else {
			text += "in a time that nobody knows yet: none of its class was saved here"
		}
		fmt.Fprintf(w, "  saved       %s\n", text)
	}
	switch {
	case out.KeepsMachines && !out.Until.IsZero():
		fmt.Fprintf(w, "  back        it goes on at %s, %s\n", moment(out.Until), fromNow(out.Until))
	case out.Promised:
		fmt.Fprintf(w, "  promised    it is back at %s, %s\n", moment(out.Until), fromNow(out.Until))
	case !out.Until.IsZero():
		fmt.Fprintf(w, "  back        it waits for machines from %s on: a cluster without an end is promised no time\n", moment(out.Until))
	case !out.DryRun:
		fmt.Fprintf(w, "bring it back: muster resume %s --wait\n", clean(out.Name))
	}
}

func (a *app) resume() *cobra.Command {
	var r wire.ResumeRequest
	var wait bool
	var timeout time.Duration
	c := &cobra.Command{
		Use: "resume CLUSTER", Short: "Bring a paused cluster back", Args: exactly("CLUSTER"),
		Long: `Brings a paused cluster back under the same names, addresses and keys, on whatever
machines fit: at once if there is room, else in its turn in the queue, or with --start at a
promised time. Its speed is measured again before jobs start. A pause that is only
planned, or whose jobs still run, is taken back.`,
		Example: `  muster resume cfd --wait
  muster resume cfd --start "2026-12-07 08:00 Europe/Berlin"`,
		ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			if err := needsWait(c, wait); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Resume(c.Context(), args[0], r)
			if err != nil {
				return err
			}
			if a.output == "" {
				fmt.Fprintf(a.env.Out, "cluster %s  %s  %s: %s\n", clean(out.Name), out.ID, out.Status, clean(out.Text))
				writeStart(a.env.Out, out.Answer)
			}
			if wait {
				got, err := a.awaitPhase(c.Context(), k, string(out.ID), timeout, muster.ClusterReady, nil)
				if err != nil {
					return err
				}
				out.Status = got.Status
			}
			return a.print(out, func(io.Writer) {})
		},
	}
	f := c.Flags()
	f.StringVar(&r.Start, "start", "", "when, as a promise: +2h, earliest, RFC 3339 (default: as soon as there is room)")
	f.BoolVar(&wait, "wait", false, "wait until it is ready")
	duration.Var(f, &timeout, "timeout", 0, "with --wait: give up waiting after this long")
	return c
}
