package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) machine() *cobra.Command {
	c := &cobra.Command{
		Use: "machine", Short: "List and maintain machines", Args: cobra.ArbitraryArgs, RunE: group,
		Example: `  muster machine list
  muster machine show local-01
  muster machine drain local-[03-04] --reason "new memory on Friday"`,
	}
	c.AddCommand(a.machineList(), a.machineShow(), a.machineTopology(), a.machinePlan())
	c.AddCommand(a.machineCare()...)
	c.AddCommand(a.registering()...)
	return c
}

func (a *app) machineList() *cobra.Command {
	var all, wide bool
	var registered registeredFlags
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List machines", Args: exactly(),
		Long: `Lists the machines that respond, with their hardware, the images they run and, where
you are allowed to see it, who uses them.

With --registered it lists the bare machines that are registered: their MACs, power
control and location, and when they last booted. Machines with the state "waiting"
showed up by themselves: approve them, register them under another name with
'muster machine add', or block them. Administrators only.`,
		Example: `  muster machine list
  muster machine list --wide
  muster machine list --all -o json
  muster machine list --registered --state waiting`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := registered.check(c); err != nil {
				return err
			}
			if registered.on {
				return a.listRegistered(c, registered.state)
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.Machines(c.Context(), true)
			if err != nil {
				return err
			}
			hidden := map[string]int{} // by status
			if !all {
				list = slices.DeleteFunc(list, func(m wire.Machine) bool {
					if !m.Answers {
						hidden[statusOf(m)]++
					}
					return !m.Answers
				})
			}
			waiting := 0 // registered, and not approved yet
			if len(list)+len(hidden) == 0 {
				// Who may not know of any learns that none answers.
				if r, err := k.Registered(c.Context(), ""); err == nil {
					waiting = len(r)
				}
			}
			return a.print(list, func(w io.Writer) {
				if waiting > 0 {
					fmt.Fprintf(w, "No machines yet: %s registered, none ready (muster machine list --registered, muster machine boot-queue)\n", plaintext.Count(waiting, "bare machine"))
					return
				}
				writeMachines(w, list, wide)
				writeHidden(w, hidden)
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "include machines that do not respond")
	c.Flags().BoolVarP(&wide, "wide", "w", false, "also show processor, NUMA, MACs, disk, address")
	registered.add(c)
	c.MarkFlagsMutuallyExclusive("registered", "all")
	c.MarkFlagsMutuallyExclusive("registered", "wide")
	return c
}

// writeHidden reports machines that are not in the list.
func writeHidden(w io.Writer, hidden map[string]int) {
	if len(hidden) == 0 {
		return
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(hidden)) {
		parts = append(parts, fmt.Sprintf("%d %s", hidden[status], status))
	}
	fmt.Fprintf(w, "Not shown: %s (muster machine list --all)\n", strings.Join(parts, ", "))
}

func writeMachines(w io.Writer, list []wire.Machine, wide bool) {
	if len(list) == 0 {
		fmt.Fprintln(w, "No machine responds. Add slices of this host with muster serve --local N, bare machines with muster serve --metal-interface INTERFACE and muster machine import.")
		return
	}
	head := []string{"MACHINE", "STATUS", "CLASS", "RACK", "CORES", "MEMORY", "NICS", "ACCEL", "USER", "CLUSTER", "NODE", "IMAGES"}
	if wide {
		head = append(head, "PROCESSOR", "NUMA", "DISK", "MACS", "ADDRESS")
	}
	t := newTable(head...)
	shared := false
	var disturbed []string
	for _, m := range list {
		f := m.Facts
		if hasCode(m.Conditions, muster.ConditionDisturbed) {
			disturbed = append(disturbed, string(m.ID))
		}
		shared = shared || f.Oversubscribed
		row := []string{string(m.ID), statusOf(m), f.Class, f.Rack, fmt.Sprint(f.Cores), size(f.Memory), nicText(f),
			accelText(f), m.User, string(m.Cluster), m.Node, strings.Join(m.Images, " ")}
		if wide {
			var macs []string
			for _, n := range f.NICs {
				macs = append(macs, n.MAC)
			}
			row = append(row, f.Processor, fmt.Sprint(max(len(f.NUMA), 1)), size(f.Disk), strings.Join(macs, " "), m.Address)
		}
		t.row(row...)
	}
	t.write(w)
	writeAtOnce(w, list)
	if len(disturbed) > 0 {
		fmt.Fprintf(w, "Used by others whenever they are measured: %s (muster machine show %s)\n", strings.Join(disturbed, ", "), disturbed[0])
	}
	if shared {
		fmt.Fprintln(w, "Oversubscribed: machines share cores with others; nothing measured on them counts.")
	}
}

// writeAtOnce says how much of machines that share parts can be in use at once; without such, nothing.
func writeAtOnce(w io.Writer, list []wire.Machine) {
	var facts []*muster.Facts
	shared := false
	for i := range list {
		if list[i].Status == muster.MachineRetired {
			continue
		}
		facts = append(facts, &list[i].Facts)
		shared = shared || len(list[i].Facts.Parts) > 0
	}
	if !shared {
		return
	}
	count := muster.AtOnce(facts, func(*muster.Facts) int64 { return 1 })
	cores := muster.AtOnce(facts, func(f *muster.Facts) int64 { return int64(f.Cores) })
	fmt.Fprintf(w, "Machines of different sets share cores and memory, and exclude each other: at most %s and %s can be in use at once.\n",
		plaintext.Count(int(count), "machine"), plaintext.Count(int(cores), "core"))
}

// statusOf is the status of a machine with what is wanted of it, where that is
// something else.
func statusOf(m wire.Machine) string {
	status := string(m.Status)
	if m.Intent != muster.IntentNone && string(m.Intent) != status && m.Status != muster.MachineRetired {
		status += " (" + string(m.Intent) + ")"
	}
	if b := m.Boot; b != nil && b.Queue != nil {
		return fmt.Sprintf("%s, place %d to %s", status, b.Queue.Place, b.Kind)
	} else if b != nil && (b.Step != "running" || b.Kind != wire.BootImage) {
		return status + ", " + string(b.Kind) + " " + b.Step
	}
	return status
}

func nicText(f muster.Facts) string {
	n, speed := 0, int64(0)
	for _, nic := range f.NICs {
		if nic.Use != "management" {
			n++
			speed = max(speed, nic.Speed)
		}
	}
	switch {
	case n == 0:
		return ""
	case speed == 0:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d x %s", n, bits(speed))
}

func bits(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%gGb/s", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%gMb/s", float64(n)/1e6)
	}
	return fmt.Sprintf("%db/s", n)
}

func accelText(f muster.Facts) string {
	var parts []string
	for _, d := range f.Accelerators {
		parts = append(parts, fmt.Sprintf("%d x %s", d.Count, cmp.Or(d.Name, d.Model)))
	}
	return strings.Join(parts, ", ")
}

func (a *app) machineShow() *cobra.Command {
	return &cobra.Command{
		Use: "show MACHINE", Short: "Show a machine", Args: exactly("MACHINE"),
		Long: `Shows a machine: hardware, state, who uses it, its last cleaning and test, and recent
events.

For a bare machine it also shows its registration and power control, the trust level of
its last boot, memory modules, disks and network cards with the switch ports they
report (LLDP), and the boot in progress: its place in the rack's boot queue, each stage
with its time, and why it failed.`,
		Example: `  muster machine show local-01 -o yaml
  muster machine show r1-n01`,

		ValidArgsFunction: a.completeMachine,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			m, err := k.Machine(c.Context(), muster.MachineID(args[0]))
			if err != nil {
				return err
			}
			return a.print(m, func(w io.Writer) { writeMachine(w, m, time.Now()) })
		},
	}
}

// interfaceText leaves out what is not known of an interface.
func interfaceText(n muster.NIC) string {
	text := strings.TrimSpace(n.Use + " " + n.Kind)
	if n.MAC != "" {
		text += ", " + n.MAC
	}
	if n.Speed > 0 {
		text += ", " + bits(n.Speed)
	}
	return text
}

func writeMachine(w io.Writer, m wire.Machine, now time.Time) {
	f := m.Facts
	used := ""
	if m.Cluster != "" {
		used = fmt.Sprintf("node %s of cluster %s, user %s", m.Node, m.Cluster, m.User)
	}
	pairs := []string{
		"machine", string(m.ID),
		"status", string(m.Status) + " for " + since(m.PhaseSince, now) + etaText(m, now),
		"answers", answersText(m, now),
		"used by", used,
		"provider", m.Provider,
		"class", f.Class,
		"rack", f.Rack,
	}
	if f.Cores > 0 { // else it has not told what it is made of
		pairs = append(pairs,
			"processor", fmt.Sprintf("%s (%s)", f.Processor, f.Architecture),
			"cores", fmt.Sprintf("%d, %s, %s", f.Cores, plaintext.Count(f.Threads, "thread"), plaintext.Count(f.Sockets, "socket")),
			"numa nodes", fmt.Sprint(max(len(f.NUMA), 1)),
			"memory", size(f.Memory),
			"disk", size(f.Disk),
		)
	}
	pairs = append(pairs,
		"accelerators", accelText(f),
		"address", m.Address,
		"images", strings.Join(m.Images, " "),
		"note", m.Note,
	)
	fields(w, append(pairs, bareFields(m, now)...)...)
	if !wired(f) { // else they are a table
		for _, n := range f.NICs {
			fmt.Fprintf(w, "interface %s: %s\n", n.Name, interfaceText(n))
		}
	}
	writeBare(w, m, now)
	if f.Set != "" {
		fmt.Fprintf(w, "set %s: not in use beside machines of other sets that have %s\n", clean(f.Set), clean(strings.Join(f.Parts, ", ")))
	}
	if f.Oversubscribed {
		fmt.Fprintln(w, "oversubscribed: it shares cores with other machines")
	}
	writeConditions(w, "", m.Conditions, "")
	if r := m.LastClean; r != nil {
		verified := "NOT verified"
		if r.Verified {
			verified = "verified"
		}
		fmt.Fprintf(w, "last cleaned %s in %.1fs, %s:\n", stamp(r.At), r.Took.Seconds(), verified)
		writeSteps(w, r.Steps)
	}
	writeCare(w, m, now)
}

// answersText says whether anything is heard of a machine. A bare one that nobody uses
// is off, and says nothing.
func answersText(m wire.Machine, now time.Time) string {
	idle := m.OffWhenFree && m.Cluster == ""
	switch {
	case idle && m.Answers:
		return "once it is switched on"
	case idle:
		return "no"
	}
	text := "no"
	if m.Answers {
		text = "yes"
	}
	if !m.LastSeen.IsZero() {
		text += ", last " + since(m.LastSeen, now) + " ago"
	}
	return text
}

// etaText reports when what goes on with a machine should be over.
func etaText(m wire.Machine, now time.Time) string {
	if !m.ETA.After(now) {
		return ""
	}
	return ", about " + age(m.ETA.Sub(now)) + " left"
}
