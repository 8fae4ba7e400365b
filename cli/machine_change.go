package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// machineCare are the commands by which administrators look after machines.
func (a *app) machineCare() []*cobra.Command {
	return []*cobra.Command{
		a.machineChange(wire.MachineDrain, "Keep machines out of new clusters", `Keeps machines out of new clusters. A cluster that has one keeps it; a free machine
stays idle.`),
		a.machineChange(wire.MachineUndrain, "Return machines to service", `Returns machines to service: drained ones at once, those in maintenance or quarantine
after cleaning.`),
		a.machineChange(wire.MachineMaintenance, "Take machines out of service for maintenance", `Takes machines out of service and powers them off, once no cluster uses them. Nothing is
moved by force: a cluster keeps its machine until it ends, and no new one gets it.`),
		a.machineChange(wire.MachineTest, "Test machines", `Tests machines once no cluster uses them: processors, memory, disk, network, and
whether their BMCs power them on and off. Machines that pass are cleaned and used
again; those that fail twice are quarantined.`),
		a.machineChange(wire.MachineRetire, "Remove machines from service permanently", `Removes machines from service permanently, once no cluster uses them.`),
		a.machineNote(), a.machineHistory(),
	}
}

func (a *app) machineChange(what wire.MachineAction, short, long string) *cobra.Command {
	var r wire.MachineChange
	var wait waiting
	name := string(what)
	c := &cobra.Command{
		Use: name + " MACHINE...", Short: short, Args: someMachines,
		Long: long + `

Give names or sets of names. Either all machines are changed or none. Administrators
only.`,
		Example: fmt.Sprintf(`  muster machine %s local-03 --reason "its fan is loud"
  muster machine %s local-[01-03,07]`, name, name),
		ValidArgsFunction: a.completeMachines,
		RunE: func(c *cobra.Command, args []string) error {
			if err := needsWait(c, wait.on); err != nil {
				return err
			}
			return a.changeMachines(c, args, what, r, wait)
		},
	}
	c.Flags().StringVar(&r.Why, "reason", "", "reason, shown with the machine and kept in its history")
	if what != wire.MachineDrain {
		c.Flags().BoolVar(&wait.on, "wait", false, "wait until it is done; this can take as long as clusters keep the machines")
		duration.Var(c.Flags(), &wait.timeout, "timeout", 0, "with --wait: give up waiting after this long")
	}
	if what == wire.MachineUndrain {
		c.Flags().BoolVar(&r.Test, "test", false, "test them before they return to service")
	}
	return c
}

// waiting says whether, and for how long, to wait until something is done. 0 is
// for as long as it takes.
type waiting struct {
	on      bool
	timeout time.Duration
}

func (a *app) changeMachines(c *cobra.Command, args []string, what wire.MachineAction, r wire.MachineChange, wait waiting) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	list, err := k.ChangeMachines(c.Context(), strings.Join(args, ","), what, r)
	if err != nil {
		return err
	}
	var failed error
	if wait.on {
		if a.output == "" {
			writeAwaited(a.env.Err, what, list)
		}
		list, failed = awaitMachines(c.Context(), k, what, list, wait.timeout)
		if code := muster.CodeOf(failed); failed != nil && code != muster.EConflict && code != muster.ETimeout {
			return failed
		}
	}
	err = a.print(list, func(w io.Writer) {
		t := newTable("MACHINE", "STATUS", "NEXT")
		for _, m := range list {
			t.row(string(m.ID), string(m.Status), m.Text)
		}
		t.write(w)
		if what == wire.MachineTest && !wait.on && len(list) > 0 {
			fmt.Fprintf(w, "Follow the test: muster machine show %s\n", list[0].ID)
		}
	})
	return cmp.Or(failed, err)
}

func (a *app) machineNote() *cobra.Command {
	return &cobra.Command{
		Use: "note MACHINE TEXT...", Short: "Set a machine's note",
		Long: `Sets a note that is shown with the machine and replaces the previous one. An empty text
removes it. Administrators only.`,
		Example: `  muster machine note local-03 new memory since March
  muster machine note local-[01-04] ""`,
		Args: func(c *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return usage(c, "MACHINE is missing")
			case 1:
				return usage(c, "TEXT is missing")
			}
			return nil
		},
		ValidArgsFunction: a.completeMachine,
		RunE: func(c *cobra.Command, args []string) error {
			return a.changeMachines(c, args[:1], wire.MachineNote, wire.MachineChange{Note: strings.Join(args[1:], " ")}, waiting{})
		},
	}
}

func (a *app) machineHistory() *cobra.Command {
	var most int
	c := &cobra.Command{
		Use: "history MACHINE", Short: "Show a machine's event history", Args: exactly("MACHINE"),
		Long: `Shows the machine's event history, newest first: clusters it was part of, failures with
their evidence, fencing, tests, cleanings, administrative actions, notes. The most
recent 500 events of the last two years are kept. Owners of clusters are shown only to
those who are allowed to see them.`,
		Example: `  muster machine history local-03
  muster machine history local-03 -n 100 -o json`,
		ValidArgsFunction: a.completeMachine,
		RunE: func(c *cobra.Command, args []string) error {
			if most < 0 || most > 1000 {
				return usage(c, "--lines cannot be %d: write 0 (all) to 1000", most)
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			h, err := k.MachineHistory(c.Context(), muster.MachineID(args[0]), most)
			if err != nil {
				return err
			}
			return a.print(h, func(w io.Writer) {
				if len(h.Events) == 0 {
					fmt.Fprintln(w, "No events.")
					return
				}
				writeHistory(w, "", h.Events)
			})
		},
	}
	c.Flags().IntVarP(&most, "lines", "n", 20, "number of most recent events; 0: all")
	return c
}

func writeHistory(w io.Writer, indent string, events []muster.MachineEvent) {
	t := newTable(indent+"WHEN", "WHAT", "CLUSTER", "NODE", "TEXT")
	for _, e := range events {
		t.row(indent+stamp(e.At), e.Kind, string(e.Cluster), e.Node, eventText(e))
	}
	t.write(w)
}

// eventText is what came to pass, with the steps that failed.
func eventText(e muster.MachineEvent) string {
	text := e.Text
	for _, s := range e.Steps {
		if !s.OK {
			text += fmt.Sprintf("; %s: %s", s.What, s.Check)
		}
	}
	return strings.TrimPrefix(text, "; ")
}

// writeCare reports how a machine was tested and how often it failed.
func writeCare(w io.Writer, m wire.Machine, now time.Time) {
	if n := len(m.Faults); n > 0 {
		fmt.Fprintf(w, "failed %s, last %s ago\n", plaintext.Count(n, "time"), since(m.Faults[n-1], now))
	}
	if r := m.LastTest; r != nil {
		outcome := "FAILED"
		if r.Passed {
			outcome = "passed"
		}
		fmt.Fprintf(w, "last tested %s in %.1fs, %s:\n", stamp(r.At), r.Took.Seconds(), outcome)
		writeSteps(w, r.Steps)
	}
	if len(m.History) > 0 {
		fmt.Fprintf(w, "recent events (all: muster machine history %s):\n", m.ID)
		writeHistory(w, "  ", m.History)
	}
}

func writeSteps(w io.Writer, steps []muster.CleanStep) {
	t := newTable("  WHAT", "CHECK", "OK")
	for _, s := range steps {
		ok := "yes"
		if !s.OK {
			ok = "no"
		}
		t.row("  "+s.What, s.Check, ok)
	}
	t.write(w)
}

func someMachines(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(c, "MACHINE is missing")
	}
	return nil
}

// completeMachines completes any number of machines.
func (a *app) completeMachines(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.completeFacts(func(m wire.Machine) string { return string(m.ID) })(c, nil, typed)
}
