package cli

import (
	"fmt"
	"io"

	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) programAdd() *cobra.Command {
	var r wire.ProgramRequest
	c := &cobra.Command{
		Use: "add NAME", Short: "Add a program to a project", Args: exactly("NAME"), ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Adds a program to a project; all members may run it. The commands are for bash, in an
empty folder of the home of whoever runs it. CC, CXX and FC are the compilers of MPI. In
both commands, Muster replaces
  {ranks} {ranks_per_node} {nodes}   how many there are
  {class}                            the size of the problem, from --class
  {args}                             the arguments of the run
  {input} {input:VOLUME}             where an input is mounted

Patterns are RE2; ^ and $ match at each line. --metric is NAME: PATTERN or
NAME (UNIT): PATTERN, with one group that is a number; the last match counts.`,
		Example: `  muster program add md --image hpc --input cases \
    --build 'cp -r {input}/md/. . && make CC=$CC' \
    --run 'mpirun -n {ranks} ./md in.gro' \
    --check '^Finished' --metric 'ns/day: ^Performance: +([0-9.]+)' --better higher
  muster program add stream --image hpc --run 'srun -n {ranks} ~/stream' \
    --metric 'triad (MB/s): ^Triad: +([0-9.]+)' --better higher`,
		RunE: func(c *cobra.Command, args []string) error {
			r.Name = args[0]
			k, err := a.connect()
			if err != nil {
				return err
			}
			p, err := k.AddProgram(c.Context(), r)
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) {
				fmt.Fprintf(w, "program %s added to project %s\nrun it: muster program run CLUSTER %[1]s\n", clean(p.Name), clean(p.Project))
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&r.Image, "image", "", "image that it runs in")
	flags.StringVar(&r.Build, "build", "", "command that builds it before each run")
	flags.StringVar(&r.Run, "run", "", "command that runs it")
	flags.StringVar(&r.Check, "check", "", "pattern that must match in the output")
	flags.StringVar(&r.Metric, "metric", "", "the program's own figure: NAME (UNIT): PATTERN")
	flags.StringVar(&r.Better, "better", "", "which figures are better: higher or lower")
	flags.StringSliceVar(&r.Inputs, "input", nil, "volume that it reads (may be repeated)")
	flags.StringVar(&r.Project, "project", "", "project (default: your only one)")
	_ = c.RegisterFlagCompletionFunc("image", a.completeImages)
	_ = c.RegisterFlagCompletionFunc("better", cobra.FixedCompletions([]string{"higher", "lower"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("input", a.completeVolumes(-1, nil))
	for _, name := range []string{"build", "run", "check", "metric", "project"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}
