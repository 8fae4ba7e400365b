package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) program() *cobra.Command {
	c := &cobra.Command{
		Use: "program", Aliases: []string{"programs"}, Short: "Run programs on clusters and keep their figures", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `Programs run unchanged, as black boxes, on nodes of their own. Each run is kept with its
conditions and one figure: the program's own, or the time it took. ep, is, cg, mg, ft, lu,
sp, bt, farm, lattice and hpl come with Muster; add others to your project.`,
		Example: `  muster program run cfd ep --class A
  muster program tune md
  muster program runs ep`,
	}
	c.AddCommand(a.programAdd(), a.programList(), a.programShow(), a.programRemove(), a.programRun(), a.programTune(), a.programWait(), a.programStop(), a.programRuns())
	return c
}

func (a *app) programList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List programs", Args: exactly(),
		Long:    "Lists built-in programs and those of your projects.",
		Example: "  muster program list",
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.Programs(c.Context())
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) {
				t := newTable("NAME", "PROJECT", "OWNER", "IMAGE", "FIGURE", "RUN")
				for _, p := range list.Programs {
					project, figure := p.Project, "wall time"
					if p.Builtin {
						project = "(built-in)"
					}
					if p.Metric != nil {
						figure = p.Metric.Name
					}
					t.row(p.Name, project, p.Owner, p.Image, figure, shortened(p.Run, 60))
				}
				t.write(w)
			})
		},
	}
}

// shortened is the beginning of a text, on one line.
func shortened(s string, most int) string {
	s = clean(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most-3]) + "..."
	}
	return s
}

func (a *app) programShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME|RUN", Short: "Show a program, or one of its runs", Args: exactly("NAME"), ValidArgsFunction: a.completePrograms(0, true),
		Long: `Shows a program: its commands, patterns and inputs. For the ID of a run it shows that run
with its conditions, and the end of its output if it failed.`,
		Example: `  muster program show ep
  muster program show pr-2345678bcd`,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if muster.ProgramRunID(args[0]).Valid() {
				run, err := k.ProgramRun(c.Context(), args[0])
				if err != nil {
					return err
				}
				return a.print(run, func(w io.Writer) { writeRun(w, run, !a.utf8()) })
			}
			p, err := findProgram(c.Context(), k, args[0])
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) { writeProgram(w, p) })
		},
	}
}

func writeProgram(w io.Writer, p wire.Program) {
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-8s %s\n", label, clean(text))
		}
	}
	line("program", p.Name)
	if p.Builtin {
		line("project", "none: it comes with Muster")
	} else {
		line("project", fmt.Sprintf("%s, added by %s, %s", p.Project, p.Owner, stamp(p.Created)))
	}
	line("image", p.Image)
	line("build", p.Build)
	line("run", p.Run)
	line("check", p.Check)
	if m := p.Metric; m != nil {
		line("metric", fmt.Sprintf("%s (%s): %s", m.Name, m.Unit, m.Pattern))
		line("better", string(m.Better))
	}
	line("inputs", strings.Join(p.Inputs, ", "))
	line("version", p.Version)
}

func (a *app) programRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm", "delete"}, Short: "Remove a program", Args: exactly("NAME"), ValidArgsFunction: a.completePrograms(0, false),
		Long: `Removes a program from its project: whoever added it and managers of the project may. Its
runs stay on record.`,
		Example: "  muster program remove md",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			p, err := findProgram(c.Context(), k, args[0])
			if err != nil {
				return err
			}
			if p.Builtin {
				return muster.Errorf(muster.EConflict, "%s comes with Muster", p.Name).Because(muster.ReasonImmutable).WithHint("it stays; remove programs that were added")
			}
			if err := k.RemoveProgram(c.Context(), p.Project, p.Name); err != nil {
				return err
			}
			return a.print(map[string]string{"name": p.Name, "status": "removed"}, func(w io.Writer) { fmt.Fprintf(w, "program %s removed; its runs stay on record\n", clean(p.Name)) })
		},
	}
}

// findProgram finds a program by its name, or PROJECT/NAME.
func findProgram(ctx context.Context, k *client.Client, ref string) (wire.Program, error) {
	list, err := k.Programs(ctx)
	if err != nil {
		return wire.Program{}, err
	}
	var found []wire.Program
	for _, p := range list.Programs {
		if p.Name == ref || p.Project+"/"+p.Name == ref {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return wire.Program{}, muster.Errorf(muster.ENotFound, "there is no program %.64q", ref).Because(muster.ReasonNoSuchObject).WithHint("`muster program list` lists them")
	case 1:
		return found[0], nil
	}
	return wire.Program{}, muster.Errorf(muster.EConflict, "several projects have a program %.64q", ref).Because(muster.ReasonAmbiguous).WithHint("write PROJECT/NAME, such as %s/%s", found[0].Project, found[0].Name)
}

// completePrograms completes the argument at a place by programs, built-in ones among them
// or not.
func (a *app) completePrograms(at int, builtin bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) != at {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completion(c, func(ctx context.Context, k *client.Client) []string {
			list, _ := k.Programs(ctx)
			var names []string
			for _, p := range list.Programs {
				if builtin || !p.Builtin {
					names = append(names, p.Name)
				}
			}
			return names
		}, typed)
	}
}
