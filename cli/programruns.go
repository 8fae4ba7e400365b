package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) programRuns() *cobra.Command {
	var q wire.RunQuery
	c := &cobra.Command{
		Use: "runs [NAME]", Short: "List runs of programs, newest first", Args: atMost(1), ValidArgsFunction: a.completePrograms(0, true),
		Long: `Lists the runs of a program, or of all, newest first, also those on clusters that are gone.
Compare figures of one version only: VERSION changes with commands, image, inputs and
arguments.`,
		Example: `  muster program runs ep
  muster program runs md --cluster cfd --limit 20 -o json`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				q.Program = args[0]
			}
			if q.Limit < 0 {
				return usage(c, "--limit cannot be %d", q.Limit)
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.ProgramRuns(c.Context(), q)
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { writeRuns(w, list.Runs) })
		},
	}
	c.Flags().StringVar(&q.Cluster, "cluster", "", "only on this cluster")
	c.Flags().IntVar(&q.Limit, "limit", 0, "at most so many (default: all)")
	_ = c.RegisterFlagCompletionFunc("cluster", a.completeClusters(-1))
	_ = c.RegisterFlagCompletionFunc("limit", cobra.NoFileCompletions)
	return c
}

func writeRuns(w io.Writer, runs []muster.ProgramRun) {
	if len(runs) == 0 {
		fmt.Fprintln(w, "No runs. Make one: muster program run CLUSTER NAME")
		return
	}
	t := newTable("RUN", "PROGRAM", "SUBMITTED", "BY", "CLUSTER", "CLASS", "STACK", "RANKS", "NODES", "SETTINGS", "VERSION", "RESULT", "FIGURE", "WALL")
	for _, r := range runs {
		wall := ""
		if r.Wall > 0 {
			wall = fmt.Sprintf("%.2f s", r.Wall)
		}
		t.row(string(r.ID), r.Program, stamp(r.Submitted), r.By, cmp.Or(r.ClusterName, string(r.Cluster)), r.Class, r.Stack, fmt.Sprint(r.Ranks), fmt.Sprint(r.NodeCount),
			shortSettings(r.Settings), shortVersion(r.Version), string(r.State), figureText(r.Figure), wall)
	}
	t.write(w)
}

// mostSettings is how many characters of the settings of a run stand in a list.
const mostSettings = 40

// shortSettings are the beginning of the settings of a run: a variable may be long.
func shortSettings(s muster.RunSettings) string {
	text := []rune(clean(settingsText(s)))
	if len(text) > mostSettings {
		return string(text[:mostSettings-1]) + "…"
	}
	return string(text)
}

// shortVersion is enough of a version to tell it from others.
func shortVersion(v string) string { return v[:min(len(v), 10)] }

func figureText(f *muster.ProgramFigure) string {
	switch {
	case f == nil:
		return ""
	case f.Unit == f.Name:
		return fmt.Sprintf("%.6g %s", f.Value, f.Unit)
	}
	return fmt.Sprintf("%s %.6g %s", f.Name, f.Value, f.Unit)
}

// mostLines of an output are shown; in JSON there is all that is on record.
const mostLines = 30

func writeRun(w io.Writer, r muster.ProgramRun, ascii bool) {
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-10s %s\n", label, clean(text))
		}
	}
	line("run", fmt.Sprintf("%s of %s on %s, by %s, %s", r.ID, r.Program, cmp.Or(r.ClusterName, string(r.Cluster)), r.By, stamp(r.Submitted)))
	result := string(r.State)
	if r.Problem != "" {
		result += ": " + r.Problem
	}
	line("result", result)
	if f := r.Figure; f != nil {
		line("figure", fmt.Sprintf("%s (%s is better)", figureText(f), f.Better))
	}
	if r.Wall > 0 {
		line("wall time", fmt.Sprintf("%.3f s", r.Wall))
	}
	if r.Build > 0 {
		line("build", fmt.Sprintf("%.3f s", r.Build))
	}
	if r.Exit != nil {
		line("exit", fmt.Sprint(*r.Exit))
	}
	line("class", r.Class)
	line("stack", r.Stack)
	line("ranks", fmt.Sprintf("%d, on %s", r.Ranks, plaintext.Count(r.NodeCount, "node")))
	line("settings", settingsText(r.Settings))
	line("nodes", strings.Join(r.Nodes, ", "))
	var machines []string
	for _, m := range r.Machines {
		machines = append(machines, string(m))
	}
	line("machines", strings.Join(machines, ", "))
	line("arguments", quoteAll(r.Args))
	line("version", r.Version)
	if u := r.Use; u != nil {
		line("used", fmt.Sprintf("%.3f s user, %.3f s system, on %s", u.User, u.System, plaintext.Count(u.Cores, "core")))
		line("sent", sentText(*u, r.Wall))
	}
	c := r.Conditions
	line("processor", c.Processor)
	line("image", string(c.Image))
	provider := c.Provider
	if c.Oversubscribed {
		provider += ", oversubscribed"
	}
	line("provider", provider)
	line("differ", strings.Join(c.Differ, ", "))
	writeUse(w, r.UseSeries, ascii)
	if r.Output != "" {
		fmt.Fprintln(w, "\nthe end of its output:")
		lines := strings.Split(r.Output, "\n")
		for _, l := range lines[max(0, len(lines)-mostLines):] {
			fmt.Fprintln(w, "  "+clean(l))
		}
	}
}

// sentText is what the nodes of a run sent to the message network: "12.5 MB in 9000 packets
// (1.25 MB/s, 900 packets/s)".
func sentText(u muster.ProgramUse, wall float64) string {
	if u.SentBytes == nil || u.SentPackets == nil {
		return ""
	}
	bytes, packets := float64(*u.SentBytes), float64(*u.SentPackets)
	text := fmt.Sprintf("%.4g MB in %d packets", bytes/1e6, *u.SentPackets)
	if wall > 0 {
		text += fmt.Sprintf(" (%.3g MB/s, %.3g packets/s)", bytes/wall/1e6, packets/wall)
	}
	return text
}
