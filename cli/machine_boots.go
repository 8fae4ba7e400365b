package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) machineBoots() *cobra.Command {
	var rack string
	c := &cobra.Command{
		Use: "boot-queue", Short: "Show boots of bare machines, running and queued", Args: exactly(),
		Long: `Shows the bare machines that are booting, with their current step, and those that are
queued in their rack, in order and with the time at which they will probably be powered
on. A failed boot is shown until the machine boots again. 'muster machine show' shows
all stages of one boot. Administrators only.`,
		Example: `  muster machine boot-queue
  muster machine boot-queue --rack r1 -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.MachineBoots(c.Context(), rack)
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { writeBoots(w, list, time.Now()) })
		},
	}
	c.Flags().StringVar(&rack, "rack", "", "only this rack")
	_ = c.RegisterFlagCompletionFunc("rack", a.completeRack)
	return c
}

func writeBoots(w io.Writer, list wire.MachineBoots, now time.Time) {
	if len(list.Boots)+len(list.Queue) == 0 {
		fmt.Fprintln(w, "No bare machine is booting or queued.")
		return
	}
	t := newTable("MACHINE", "RACK", "FOR", "STEP", "SINCE", "TRUST", "NOTE")
	for _, b := range list.Boots {
		note := b.Doing
		if f := b.Failure; f != nil {
			note = strings.TrimSuffix(f.Stage+": "+f.Text+" ("+f.Hint+")", " ()")
		}
		t.row(string(b.Machine), b.Rack, string(b.Kind), b.Step, since(b.Since, now), string(b.Trust), note)
	}
	for _, q := range list.Queue {
		t.row(string(q.Machine), q.Rack, string(q.Kind), "queued", since(q.Ordered, now), "", fmt.Sprintf("place %d%s", q.Place, etaOf(q.ETA, now)))
	}
	t.write(w)
}

// completeRack completes names of racks of bare machines.
func (a *app) completeRack(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	k, err := a.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := k.Registered(c.Context(), "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	seen := map[string]bool{}
	var names []string
	for _, r := range list {
		if r.Rack != "" && !seen[r.Rack] {
			seen[r.Rack] = true
			names = append(names, r.Rack)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
