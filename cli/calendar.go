package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) calendar() *cobra.Command {
	var q wire.CalendarQuery
	var ical bool
	c := &cobra.Command{
		Use: "calendar", Short: "Show who has machines when", Args: exactly(),
		Long: `Shows the calendar of the site: clusters, promises, estimates of requests that wait,
pauses and maintenance windows, as bars over time. What you may not see is named busy.

  ###  has its machines     ===  promised     ...  estimated     ~~~  paused     xxx  maintenance`,
		Example: `  muster calendar
  muster calendar --from now --to +30d --mine
  muster calendar --ical > muster.ics
  muster calendar -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if ical && a.output != "" {
				return usage(c, "--ical is an output format itself: leave out --output")
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Calendar(c.Context(), q)
			if err != nil {
				return err
			}
			if ical {
				_, err := io.WriteString(a.env.Out, iCalendar(out, time.Now()))
				return err
			}
			return a.print(out, func(w io.Writer) { writeCalendar(w, out, a.env.width(a.env.Out)) })
		},
	}
	f := c.Flags()
	f.StringVar(&q.From, "from", "", "from when: now, +2h, a date (default: now)")
	f.StringVar(&q.Until, "to", "", "until when (default: a week later)")
	f.StringVar(&q.Class, "class", "", "only machines of this class")
	f.BoolVar(&q.Mine, "mine", false, "only what your projects have")
	f.BoolVar(&ical, "ical", false, "write an iCalendar file")
	_ = c.RegisterFlagCompletionFunc("class", a.completeFacts(func(m wire.Machine) string { return m.Facts.Class }))
	return c
}

// barOf is what a kind is drawn with.
func barOf(k wire.CalendarKind) string {
	switch k {
	case wire.CalendarPromise:
		return "="
	case wire.CalendarEstimate:
		return "."
	case wire.CalendarPause:
		return "~"
	case wire.CalendarMaintenance:
		return "x"
	}
	return "#"
}

// writeCalendar draws a bar for each entry.
func writeCalendar(w io.Writer, c wire.Calendar, width int) {
	fmt.Fprintf(w, "%s in service, from %s to %s\n", plaintext.Count(c.Machines, "machine"), moment(c.From), moment(c.Until))
	if len(c.Entries) == 0 {
		fmt.Fprintln(w, "Nothing is booked.")
		return
	}
	cells := min(max(width-64, 20), 60)
	span := c.Until.Sub(c.From)
	at := func(t time.Time) int {
		return min(max(int(int64(cells)*int64(t.Sub(c.From)/time.Second)/max(int64(span/time.Second), 1)), 0), cells)
	}
	t := newTable("NAME", "KIND", "MACHINES", "START", "END", "")
	for _, e := range c.Entries {
		start, end, bar := "not known", "no end", ""
		if !e.Start.IsZero() {
			start = e.Start.Local().Format("01-02 15:04")
			from, to := at(e.Start), cells
			if !e.End.IsZero() {
				end, to = e.End.Local().Format("01-02 15:04"), at(e.End)
			}
			to = min(max(to, from+1), cells)
			from = min(from, to-1)
			bar = "|" + strings.Repeat(" ", from) + strings.Repeat(barOf(e.Kind), to-from) + strings.Repeat(" ", cells-to) + "|"
		} else {
			end = ""
		}
		t.row(e.Name, string(e.Kind), fmt.Sprint(e.Machines), start, end, bar)
	}
	t.write(w)
}

// iCalendar writes a calendar as RFC 5545 has it.
func iCalendar(c wire.Calendar, now time.Time) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		for first := true; len(text) > 0; first = false { // lines of 75 octets at most
			n := 75
			if !first {
				b.WriteString(" ")
				n--
			}
			n = min(n, len(text))
			for n < len(text) && n > 1 && text[n]&0xc0 == 0x80 {
				n--
			}
			b.WriteString(text[:n] + "\r\n")
			text = text[n:]
		}
	}
	escape := strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\n", `\n`)
	utc := func(t time.Time) string { return t.UTC().Format("20060102T150405Z") }
	line("BEGIN:VCALENDAR")
	line("VERSION:2.0")
	line("PRODID:-//Muster//calendar//EN")
	for i, e := range c.Entries {
		if e.Start.IsZero() {
			continue
		}
		line("BEGIN:VEVENT")
		id := string(e.Cluster)
		if id == "" {
			id = fmt.Sprintf("%s-%d-%d", e.Name, e.Start.Unix(), i)
		}
		line("UID:%s-%s@muster", id, e.Kind)
		line("DTSTAMP:%s", utc(now))
		line("DTSTART:%s", utc(e.Start))
		if !e.End.IsZero() {
			line("DTEND:%s", utc(e.End))
		}
		line("SUMMARY:%s", escape.Replace(fmt.Sprintf("%s (%s, %s)", clean(e.Name), e.Kind, plaintext.Count(e.Machines, "machine"))))
		status := "CONFIRMED"
		if e.Kind == wire.CalendarEstimate {
			status = "TENTATIVE"
		}
		line("STATUS:%s", status)
		line("END:VEVENT")
	}
	line("END:VCALENDAR")
	return b.String()
}

func (a *app) change() *cobra.Command {
	var r wire.ChangeRequest
	c := &cobra.Command{
		Use: "change CLUSTER", Short: "Change a cluster before it starts", Args: exactly("CLUSTER"),
		Long: `Changes when a queued or reserved cluster starts, how long it lasts, or how many nodes it
has. If that cannot be, nothing changes, and the nearest time that can be promised is
named. --start now gives a promise up: the request waits in the queue.

--raise (administrators) makes a request count as having waited longer, and everybody
sees it.`,
		Example: `  muster change cfd --start "2026-12-02 10:00 Europe/Berlin"
  muster change cfd --nodes 4 --walltime 4h
  muster change cfd --raise 2d`,
		ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Change(c.Context(), args[0], r)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				fmt.Fprintf(w, "cluster %s  %s  %s\n", clean(out.Name), out.ID, out.Status)
				writeStart(w, out.Answer)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&r.Start, "start", "", "when people can log in: +2h, earliest, RFC 3339; now: as soon as there is room")
	f.StringVar(&r.Walltime, "walltime", "", "time limit: 8h, 2d")
	f.IntVarP(&r.Nodes, "nodes", "n", 0, "number of compute nodes")
	f.StringVar(&r.Raise, "raise", "", "how much longer it counts as having waited: 2d (administrators)")
	return c
}

func (a *app) maintenance() *cobra.Command {
	c := &cobra.Command{
		Use: "maintenance", Short: "Keep machines free of tenants for a time", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `Maintenance windows are entries of the calendar: no cluster and no promise has their
machines at their time.`,
		Example: `  muster maintenance add n[01-16] --from "2026-12-05 08:00 Europe/Berlin" --until "2026-12-05 18:00 Europe/Berlin" --reason "new cooling"
  muster maintenance list`,
	}
	c.AddCommand(a.maintenanceAdd(), a.maintenanceList(), a.maintenanceRemove())
	return c
}

func (a *app) maintenanceAdd() *cobra.Command {
	var r wire.MaintenanceRequest
	c := &cobra.Command{
		Use: "add [MACHINE...]", Short: "Enter a maintenance window",
		Long: `Enters a time in which machines are kept free. If it would break promises, or clusters
are on its machines then, these are listed and nothing is entered; --force enters it all
the same: promises move to other machines or another time, and their people are told.`,
		Example: `  muster maintenance add n[01-16] --from +2d --until +3d --reason "new cooling"
  muster maintenance add --rack r7 --from "2026-12-05 08:00 Europe/Berlin"`,
		ValidArgsFunction: a.completeMachines,
		RunE: func(c *cobra.Command, args []string) error {
			r.Machines = args
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.AddMaintenance(c.Context(), r)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				fmt.Fprintf(w, "maintenance %s  %s from %s\n", clean(out.Window.ID), plaintext.Count(len(out.Window.Machines), "machine"), moment(out.Window.From))
				for _, text := range out.Breaks {
					fmt.Fprintf(w, "  in its way  %s\n", clean(text))
				}
			})
		},
	}
	f := c.Flags()
	f.StringVar(&r.From, "from", "", "when it begins: +2d, a date with its zone")
	f.StringVar(&r.Until, "until", "", "when it ends (default: when it is removed)")
	f.StringVar(&r.Rack, "rack", "", "all machines of a rack")
	f.StringVar(&r.Class, "class", "", "all machines of a class")
	f.StringVar(&r.Why, "reason", "", "the reason, for everybody to see")
	f.BoolVar(&r.Force, "force", false, "enter it although promises or clusters are in its way")
	return c
}

func (a *app) maintenanceList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List maintenance windows", Args: exactly(),
		Long: "Lists the maintenance windows that are entered.", Example: "  muster maintenance list -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Maintenance(c.Context())
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				if len(out.Windows) == 0 {
					fmt.Fprintln(w, "No maintenance is entered.")
					return
				}
				t := newTable("ID", "FROM", "UNTIL", "MACHINES", "BY", "WHY")
				for _, x := range out.Windows {
					until := "removed by hand"
					if !x.Until.IsZero() {
						until = moment(x.Until)
					}
					t.row(x.ID, moment(x.From), until, windowMachines(x.Machines), x.By, x.Why)
				}
				t.write(w)
			})
		},
	}
}

func windowMachines(ids []muster.MachineID) string {
	if len(ids) == 1 {
		return string(ids[0])
	}
	return fmt.Sprintf("%s and %d more", ids[0], len(ids)-1)
}

func (a *app) maintenanceRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Aliases: []string{"rm"}, Short: "Remove a maintenance window", Args: exactly("ID"),
		Long: "Removes a maintenance window: its machines are for tenants again.", Example: "  muster maintenance remove w-8x2k4v",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if err := k.RemoveMaintenance(c.Context(), args[0]); err != nil {
				return err
			}
			return a.print(map[string]string{"id": args[0], "status": "removed"}, func(w io.Writer) { fmt.Fprintf(w, "maintenance %s removed\n", clean(args[0])) })
		},
	}
}
