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
		Use: "boots", Short: "List the boots of bare machines", Args: exactly(),
		Long: `Lists the bare machines that boot now, with the step that they are at, and those that
wait for their turn in their rack, in their order and with the time when they are
likely to be switched on. A boot that failed is listed until the machine boots again.
muster machine show tells all stages of one. Only administrators see any.`,
		Example: `  muster machine boots
  muster machine boots --rack r1 -o json`,
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
	c.Flags().StringVar(&rack, "rack", "", "only those of this rack")
	_ = c.RegisterFlagCompletionFunc("rack", a.completeRack)
	return c
}

func writeBoots(w io.Writer, list wire.MachineBoots, now time.Time) {
	if len(list.Boots)+len(list.Queue) == 0 {
		fmt.Fprintln(w, "No bare machine boots now.")
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
