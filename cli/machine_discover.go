package cli

import (
	"context"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// discoverLook is how often registrations are looked at while somebody waits for boots.
const discoverLook = time.Second

func (a *app) machineDiscover() *cobra.Command {
	var wait bool
	var timeout time.Duration
	c := &cobra.Command{
		Use: "discover MACHINE...", Short: "Inventory the hardware of bare machines", Args: someMachines,
		Long: `Boots bare machines once, inventories their hardware, and powers them off again.
Differences show as the condition hardware-changed until they are accepted with
'muster machine approve'; a machine that lost hardware is kept out of new clusters
meanwhile.

Every boot updates the inventory: run this after you changed hardware by hand. Machines
that are part of a cluster cannot be discovered. Give names or sets of names. Either all
machines are discovered or none. Administrators only.`,
		Example: `  muster machine discover r1-n01
  muster machine discover r1-n[01-16] --wait --timeout 15m`,
		ValidArgsFunction: a.completeRegistered,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.ChangeRegistered(c.Context(), strings.Join(args, ","), wire.RegisteredDiscover)
			if err != nil {
				return err
			}
			var late error
			if wait {
				list, late = awaitDiscovered(c.Context(), k, list, timeout)
			}
			if err := a.printRegistered(list); err != nil {
				return err
			}
			return late
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until all of them have reported")
	duration.Var(c.Flags(), &timeout, "timeout", 0, "with --wait: give up waiting after this long, such as 15m (default: never)")
	return c
}

// awaitDiscovered waits until machines have told what they are made of since they were
// asked, and returns what they told. A timeout of 0 is as long as it takes.
func awaitDiscovered(ctx context.Context, k *client.Client, list []wire.RegisteredChange, timeout time.Duration) ([]wire.RegisteredChange, error) {
	var late <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		late = t.C
	}
	for {
		now, err := k.Registered(ctx, "")
		if err != nil {
			return list, err
		}
		by := make(map[muster.MachineID]muster.Registration, len(now))
		for _, r := range now {
			by[r.ID] = r
		}
		var left []string
		boots, listens, err := bootsOf(ctx, k)
		if err != nil {
			return list, err
		}
		for i, c := range list {
			switch r, ok := by[c.Name]; {
			case !ok:
				list[i].Text = "it was forgotten meanwhile"
			case !r.Seen.After(r.Asked) || listens[c.Name]:
				left = append(left, string(c.Name))
				if text := boots[c.Name]; text != "" {
					list[i].Text = text // how far it is, if nobody waits any longer
				}
			default:
				list[i].What, list[i].Text = "discovered", discoveredText(r)
			}
		}
		if len(left) == 0 {
			return list, nil
		}
		select {
		case <-ctx.Done():
			return list, ctx.Err()
		case <-late:
			return list, muster.Errorf(muster.ETimeout, "%s: not discovered after %s", nodeset.Fold(left), timeout).Because(muster.ReasonNotDoneYet).
				WithHint("it goes on; look with 'muster machine show %s'", left[0])
		case <-time.After(discoverLook):
		}
	}
}

// bootsOf says of each machine that boots how far it is, and which of them have more to
// tell: they listen what their switches say of themselves, half a minute after they said
// what they are made of.
func bootsOf(ctx context.Context, k *client.Client) (out map[muster.MachineID]string, listens map[muster.MachineID]bool, err error) {
	list, err := k.MachineBoots(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	out, listens = map[muster.MachineID]string{}, map[muster.MachineID]bool{}
	for _, q := range list.Queue {
		out[q.Machine] = queueText(q.BootPlace, q.Rack, now)
	}
	for _, b := range list.Boots {
		listens[b.Machine] = b.Kind == wire.BootDiscover && !b.Over() && b.Step != "leaving"
		if out[b.Machine] = bootText(b, now); b.Failure != nil {
			out[b.Machine] = b.Failure.Stage + ": " + b.Failure.Text
		}
	}
	return out, listens, nil
}

// discoveredText says in a line what a machine is made of, and what of that is new.
func discoveredText(r muster.Registration) string {
	if len(r.Changed) > 0 {
		return strings.Join(r.Changed, "; ") + " (muster machine approve " + string(r.ID) + " accepts it)"
	}
	if r.Facts == nil {
		return ""
	}
	f := r.Facts
	parts := []string{plaintext.Count(f.Cores, "core"), size(f.Memory), plaintext.Count(len(f.Disks), "disk"), plaintext.Count(len(f.NICs), "interface")}
	if f.Processor != "" {
		parts = append([]string{f.Processor}, parts...)
	}
	return strings.Join(parts, ", ")
}
