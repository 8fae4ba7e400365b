package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/measure/programs/kit"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) platform() *cobra.Command {
	c := &cobra.Command{
		Use: "platform", Aliases: []string{"platforms"}, Short: "Compare with clusters that are not Muster's", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `Platforms are clusters that are not Muster's: a supercomputer, a cloud. A kit measures them
with Muster's built-in programs; gcc, make and an MPI are enough there. Loaded, its
result stands beside clusters of Muster's, marked as not measured by Muster.`,
		Example: `  muster platform kit
  muster platform import archer.jsonl
  muster platform compare archer cfd`,
	}
	c.AddCommand(a.platformKit(), a.platformImport(), a.platformList(), a.platformShow(), a.platformCompare(), a.platformRemove())
	return c
}

func (a *app) platformKit() *cobra.Command {
	to := "muster-kit.tar.gz"
	c := &cobra.Command{
		Use: "kit", Short: "Write the kit that measures other clusters", Args: exactly(), ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Writes an archive with the sources of the built-in programs and a script. On the other
cluster, unpack it and run ./measure --help. No server is needed for this.`,
		Example: `  muster platform kit
  muster platform kit --to - | ssh archer tar xz`,
		RunE: func(_ *cobra.Command, _ []string) error {
			if to == "-" {
				return kit.Write(a.env.Out)
			}
			var b bytes.Buffer
			if err := kit.Write(&b); err != nil {
				return err
			}
			if err := free(to, b.Bytes(), false); err != nil {
				return err
			}
			if err := os.WriteFile(to, b.Bytes(), 0o644); err != nil { //nolint:gosec // sources are for everybody
				return muster.Errorf(muster.EInvalid, "cannot write %s", to).Because(muster.ReasonFileUnwritable).WithHint("give --to a file in a directory in which you may write").Wrap(err)
			}
			return a.print(map[string]string{"file": to}, func(w io.Writer) {
				fmt.Fprintf(w, "%s: on the other cluster: tar xzf %[1]s; cd %s; ./measure --help\n", clean(to), kit.Folder)
			})
		},
	}
	c.Flags().StringVar(&to, "to", to, "file; - is standard output")
	return c
}

// mostPlatform is more than any file that can be loaded.
const mostPlatform = 16 << 20

func (a *app) platformImport() *cobra.Command {
	var r wire.PlatformImport
	c := &cobra.Command{
		Use: "import FILE", Short: "Load what the kit measured", Args: exactly("FILE"),
		Long: `Loads the file that ./measure of the kit wrote. All members of the project see it.
Everything that is wrong with the file is named with its line, and nothing is loaded then.`,
		Example: `  muster platform import archer.jsonl
  muster platform import archer.jsonl --name archer-2 --project chem`,
		RunE: func(c *cobra.Command, args []string) error {
			data, err := a.readUpTo(args[0], mostPlatform, "a file that ./measure wrote")
			if err != nil {
				return err
			}
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(data) // to memory
			_ = z.Close()
			r.Data = b.Bytes()
			k, err := a.connect()
			if err != nil {
				return err
			}
			p, err := k.ImportPlatform(c.Context(), r)
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) {
				fmt.Fprintf(w, "platform %s loaded into project %s: %s\n", clean(p.Name), clean(p.Project), plaintext.Count(len(p.Launches), "launch"))
				fmt.Fprintf(w, "compare it: muster platform compare %s CLUSTER\n", clean(p.Name))
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&r.Name, "name", "", "name (default: the one in the file)")
	flags.StringVar(&r.Project, "project", "", "project (default: your only one)")
	flags.BoolVar(&r.Replace, "replace", false, "take the place of a platform of that name")
	for _, name := range []string{"name", "project"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}

func (a *app) platformList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List platforms", Args: exactly(),
		Long: "Lists the platforms of your projects.", Example: "  muster platform list",
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.Platforms(c.Context())
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) {
				if len(list.Platforms) == 0 {
					fmt.Fprintln(w, "No platforms. Measure one: muster platform kit")
					return
				}
				t := newTable("NAME", "PROJECT", "OWNER", "MEASURED", "NODES", "PROCESSOR", "LAUNCHES", "FAILED")
				for _, p := range list.Platforms {
					t.row(p.Name, p.Project, p.Owner, strings.TrimSuffix(strings.Replace(p.Began, "T", " ", 1), "Z"), fmt.Sprint(p.Nodes), p.Processor, fmt.Sprint(p.Launches), fmt.Sprint(p.Failed))
				}
				t.write(w)
			})
		},
	}
}

// findPlatform finds a platform by its name, or PROJECT/NAME.
func findPlatform(ctx context.Context, k *client.Client, ref string) (wire.PlatformSummary, error) {
	list, err := k.Platforms(ctx)
	if err != nil {
		return wire.PlatformSummary{}, err
	}
	var found []wire.PlatformSummary
	for _, p := range list.Platforms {
		if p.Name == ref || p.Project+"/"+p.Name == ref {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return wire.PlatformSummary{}, muster.Errorf(muster.ENotFound, "there is no platform %.64q", ref).Because(muster.ReasonNoSuchObject).WithHint("`muster platform list` lists them")
	case 1:
		return found[0], nil
	}
	return wire.PlatformSummary{}, muster.Errorf(muster.EConflict, "several projects have a platform %.64q", ref).Because(muster.ReasonAmbiguous).WithHint("write PROJECT/NAME, such as %s/%s", found[0].Project, found[0].Name)
}

func (a *app) platformShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a platform: conditions and figures", Args: exactly("NAME"), ValidArgsFunction: a.completePlatforms(1),
		Long:    "Shows what ran a platform's programs, where its ranks were, and its figures. Each launch is in the JSON.",
		Example: "  muster platform show archer\n  muster platform show archer -o json",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			sum, err := findPlatform(c.Context(), k, args[0])
			if err != nil {
				return err
			}
			p, err := k.Platform(c.Context(), sum.Project, sum.Name)
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) { writePlatform(w, p) })
		},
	}
}

func writePlatform(w io.Writer, p wire.Platform) {
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-9s %s\n", label, clean(text))
		}
	}
	line("platform", p.Name+", not measured by Muster")
	line("project", fmt.Sprintf("%s, loaded by %s, %s", p.Project, p.Owner, stamp(p.Created)))
	line("measured", stamp(p.Began))
	line("launcher", p.Launcher)
	line("compiler", strings.TrimSpace(p.Compiler+" "+p.Flags))
	line("MPI", p.MPI)
	for _, n := range p.Nodes {
		text := fmt.Sprintf("%s: %s, %s, %s, %s", n.Names, n.Processor, plaintext.Count(n.Sockets, "socket"), plaintext.Count(n.Cores, "core"), size(n.Memory))
		for _, more := range []string{n.Kernel, n.Governor, n.Virtualization, n.NIC} {
			if more != "" {
				text += ", " + more
			}
		}
		line("nodes", text)
	}
	for _, l := range p.Layouts {
		text := fmt.Sprintf("%d on %s, %d with a core of their own", l.Ranks, plaintext.Count(l.Nodes, "node"), l.Bound)
		if l.Near != nil {
			text += fmt.Sprintf(", %d on the network card's socket", *l.Near)
		}
		line("ranks", text)
	}
	fmt.Fprintln(w)
	writePlatformRows(w, []wire.PlatformSide{{Name: p.Name}}, p.Rows)
}

func (a *app) platformCompare() *cobra.Command {
	return &cobra.Command{
		Use: "compare SIDE SIDE...", Short: "Compare platforms and clusters by their programs", ValidArgsFunction: a.completePlatforms(-1),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(c, "name at least two platforms or clusters")
			}
			return nil
		},
		Long: `Puts platforms and clusters of Muster's side by side, by the built-in programs that ran on
them: median of Mop/s, deviation of launches, and how many times as fast as the slowest
side each is, with the interval at 95 %. A side is a name; platform:NAME and cluster:NAME
say which where there are both.`,
		Example: `  muster platform compare archer cfd
  muster platform compare archer cloud-a cluster:cfd -o json`,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.ComparePlatforms(c.Context(), args)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				var not []string
				for _, s := range out.Sides {
					if !s.Measured {
						not = append(not, clean(s.Name))
					}
				}
				if len(out.Rows) == 0 {
					fmt.Fprintln(w, "No built-in program ran on these. Run one: muster program run CLUSTER ep")
					return
				}
				writePlatformRows(w, out.Sides, out.Rows)
				if len(not) > 0 {
					fmt.Fprintf(w, "\nnot measured by Muster: %s\n", strings.Join(not, ", "))
				}
			})
		},
	}
}

// writePlatformRows writes a line for each side of each row: names of programs stand once.
func writePlatformRows(w io.Writer, sides []wire.PlatformSide, rows []wire.PlatformRow) {
	t := newTable("PROGRAM", "CLASS", "RANKS", "ON", "LAUNCHES", "FAILED", "MOP/S", "INTERVAL", "DEVIATION", "RATIO")
	for _, r := range rows {
		for i, f := range r.Figures {
			if f == nil {
				continue
			}
			cells := []string{r.Program, r.Class, fmt.Sprint(r.Ranks), sides[i].Name, fmt.Sprint(f.Launches), fmt.Sprint(f.Failed), "", "", "", ""}
			if f.Launches > 0 {
				cells[6] = fmt.Sprintf("%.4g", f.Median)
			}
			if f.High > 0 {
				cells[7] = fmt.Sprintf("%.4g to %.4g", f.Low, f.High)
			}
			if f.Launches > 1 {
				cells[8] = fmt.Sprintf("%.1f %%", f.Deviation*100)
			}
			switch {
			case f.Slowest:
				cells[9] = "1 (slowest)"
			case f.RatioHigh > 0:
				cells[9] = fmt.Sprintf("%.2f (%.2f to %.2f)", f.Ratio, f.RatioLow, f.RatioHigh)
			case f.Ratio > 0:
				cells[9] = fmt.Sprintf("%.2f", f.Ratio)
			}
			t.row(cells...)
		}
	}
	t.write(w)
}

func (a *app) platformRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm", "delete"}, Short: "Remove a platform", Args: exactly("NAME"), ValidArgsFunction: a.completePlatforms(1),
		Long:    "Removes a platform with its figures: whoever loaded it and managers of the project may.",
		Example: "  muster platform remove archer",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			p, err := findPlatform(c.Context(), k, args[0])
			if err != nil {
				return err
			}
			if err := k.RemovePlatform(c.Context(), p.Project, p.Name); err != nil {
				return err
			}
			return a.print(map[string]string{"name": p.Name, "status": "removed"}, func(w io.Writer) { fmt.Fprintf(w, "platform %s removed\n", clean(p.Name)) })
		},
	}
}

// completePlatforms completes the first so many arguments by platforms; -1: all of them.
func (a *app) completePlatforms(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completion(c, func(ctx context.Context, k *client.Client) []string {
			list, _ := k.Platforms(ctx)
			var names []string
			for _, p := range list.Platforms {
				names = append(names, p.Name)
			}
			return names
		}, typed)
	}
}
