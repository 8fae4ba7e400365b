package cli

import (
	"fmt"
	"io"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) topology() *cobra.Command {
	c := &cobra.Command{
		Use: "topology", Short: "Show where machines stand and how they are joined", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `Shows in which data centres, rooms, spines, leaves and chassis the machines of a site stand,
and what the links between these carry. Placement uses it. Administrators describe it by a
file; what the file leaves out is known from registrations.`,
		Example: `  muster topology show
  muster topology import site.yaml
  muster topology export --format topology.conf`,
	}
	c.AddCommand(a.topologyShow(), a.topologyImport(), a.topologyExport(), a.topologyRemove())
	return c
}

func (a *app) topologyShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Draw where machines stand", Args: exactly(), ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Draws the tree with the capacity of each uplink, and names machines of which the
description says something else than their registrations or their switches. What stands in
brackets is only registered. With -o svg it is drawn.`,
		Example: `  muster topology show
  muster topology show -o svg > site.svg
  muster topology show -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			drawn := a.output == "svg"
			if !drawn {
				if err := a.checkOutput(); err != nil {
					return err
				}
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			t, err := k.SiteTopology(c.Context())
			if err != nil {
				return err
			}
			if drawn {
				return topology.Draw(a.env.Out, t.Stands)
			}
			return a.print(t, func(w io.Writer) { writeTree(w, t) })
		},
	}
}

func (a *app) topologyImport() *cobra.Command {
	var r wire.TopologyImport
	c := &cobra.Command{
		Use: "import FILE", Short: "Describe where machines stand", Args: exactly("FILE"),
		Long: `Reads a description of where machines stand and how they are joined, which replaces the
present one. The file is Muster's own, or Slurm's topology.conf or topology.yaml. Everything
that is wrong with it is named with its line, and the present one stays then.

Muster's own is a list of stands. A stand is a datacentre, room, spine, leaf or chassis; it
is in another one, and its uplink goes there. Machines are in leaves and chassis:

  stands:
    - {name: core, kind: spine}
    - {name: leaf1, kind: leaf, in: core, uplink: 2 x 40Gb/s, machines: "n[001-012]"}
    - {name: leaf2, kind: leaf, in: core, uplink: 2 x 40Gb/s}
    - {name: enc1, kind: chassis, in: leaf2, uplink: 4 x 1Gb/s, link: 1Gb/s, machines: "n[101-114]"}

FILE - is standard input.`,
		Example: `  muster topology import site.yaml --dry-run
  muster topology import /etc/slurm/topology.conf`,
		RunE: func(c *cobra.Command, args []string) error {
			data, err := a.readUpTo(args[0], topology.MaxBytes, "a description of where machines stand")
			if err != nil {
				return err
			}
			// What is wrong with it is found here too: with bytes that are no text.
			if _, err := topology.Read(data); err != nil {
				return err
			}
			r.Text = string(data)
			k, err := a.connect()
			if err != nil {
				return err
			}
			t, err := k.ImportTopology(c.Context(), r)
			if err != nil {
				return err
			}
			return a.print(t, func(w io.Writer) {
				writeTree(w, t)
				if r.DryRun {
					fmt.Fprintln(w, "dry run: nothing is changed")
				}
			})
		},
	}
	c.Flags().BoolVar(&r.DryRun, "dry-run", false, "show the tree without changing anything")
	return c
}

func (a *app) topologyExport() *cobra.Command {
	format := topology.FormatMuster
	c := &cobra.Command{
		Use: "export", Short: "Write where machines stand as a file", Args: exactly(), ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Writes the tree to standard output, in Muster's own format or in one of Slurm's. Slurm's have
no words for capacities and kinds, and leave out what no machine stands in.`,
		Example: `  muster topology export > site.yaml
  muster topology export --format topology.conf > /etc/slurm/topology.conf`,
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			t, err := k.SiteTopology(c.Context())
			if err != nil {
				return err
			}
			var stands []muster.Stand
			for _, s := range t.Stands {
				if s.Name != "" { // nothing is known of where those machines stand
					s.Machines = topology.JoinSets(s.Machines, s.Unknown)
					stands = append(stands, s.Stand)
				}
			}
			text, err := topology.Write(stands, format)
			if err != nil {
				return err
			}
			return a.print(map[string]string{"format": format, "text": text}, func(w io.Writer) { fmt.Fprint(w, text) })
		},
	}
	c.Flags().StringVar(&format, "format", format, "muster, topology.conf or topology.yaml")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(topology.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) topologyRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove", Short: "Forget the description", Args: exactly(), ValidArgsFunction: cobra.NoFileCompletions,
		Long:    "Forgets the description of where machines stand. What is registered of machines counts alone.",
		Example: "  muster topology remove",
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if err := k.RemoveTopology(c.Context()); err != nil {
				return err
			}
			return a.print(wire.Done{Status: "removed"}, func(w io.Writer) { fmt.Fprintln(w, "the description is removed") })
		},
	}
}

func writeTree(w io.Writer, t wire.SiteTopology) {
	table := newTable("STAND", "KIND", "UPLINK", "FREE", "MACHINES")
	for _, l := range topology.Lines(t.Stands) {
		s := l.Stand
		name, kind := s.Name, string(s.Kind)
		if s.Registered {
			name = "[" + name + "]"
		}
		if name == "" {
			name = "place not known"
		}
		if s.NotReached != nil {
			name += " (not reached)"
		}
		machines := s.Machines
		if s.Link > 0 && machines != "" {
			machines += " at " + topology.Rate(s.Link)
		}
		table.row(l.Branch+clean(name), kind, topology.LinkText(s.Stand), fmt.Sprintf("%d of %d", s.Free, s.Below), clean(machines))
	}
	table.write(w)
	for _, s := range t.Stands {
		if c := s.NotReached; c != nil {
			fmt.Fprintf(w, "not reached: %s since %s: machines behind it are given last until %s (muster machine test of one of them clears that)\n", clean(s.Name), stamp(c.Since), stamp(c.Deadline))
		}
	}
	if !t.Described {
		fmt.Fprintln(w, "nobody described this site: it is what registrations say (muster topology import)")
	}
	if t.Unknown != "" {
		fmt.Fprintf(w, "not machines of this site: %s\n", clean(t.Unknown))
	}
	if t.Confirmed != "" {
		fmt.Fprintf(w, "confirmed by measurement: %s\n", clean(t.Confirmed))
	}
	for _, c := range t.Split {
		fmt.Fprintf(w, "split: %s\n", clean(c))
	}
	for _, c := range t.MeasuredElsewhere {
		fmt.Fprintf(w, "doubtful: %s\n", clean(c))
	}
	for _, c := range t.Contradictions {
		fmt.Fprintf(w, "contradiction: %s\n", clean(c))
	}
	if t.More > 0 {
		fmt.Fprintf(w, "and %s more\n", plaintext.Count(t.More, "contradiction"))
	}
}
