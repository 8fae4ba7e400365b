package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/internal/replyjson"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) logs() *cobra.Command {
	var f client.LogFilter
	var follow bool
	c := &cobra.Command{
		Use: "logs CLUSTER [NODE]", Short: "Show the journals of nodes",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "CLUSTER is missing")
			}
			return atMost(2)(c, args)
		},
		Long: `Shows the most recent lines of the nodes' journals. They outlive the machines: a line
marks where each attempt begins and on which machine. They are kept for a week after
the cluster is deleted; give its ID then.

With -f it keeps showing new lines until the cluster is deleted; with -o json each line
is then a JSON document.`,
		Example: `  muster logs cfd
  muster logs cfd n02 -n 1000
  muster logs cfd --unit slurmd --since 30m
  muster logs -f cfd --priority warning`,
		ValidArgsFunction: a.completeNodes,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			if c.Flags().Changed("lines") && f.Lines < 1 {
				return muster.Errorf(muster.EInvalid, "--lines cannot be %d", f.Lines).Because(muster.ReasonOutOfRange).WithHint("write how many of the newest lines there should be, such as 200")
			}
			if len(args) > 1 {
				f.Node = args[1]
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			if follow {
				err = a.followLogs(c.Context(), k, args[0], f)
				if interrupted(c.Context(), err) {
					return nil
				}
				return err
			}
			logs, err := k.Logs(c.Context(), args[0], f)
			if err != nil {
				return err
			}
			return a.print(logs, func(w io.Writer) {
				for _, l := range logs.Lines {
					fmt.Fprintln(w, logText(l))
				}
			})
		},
	}
	c.Flags().IntVarP(&f.Lines, "lines", "n", 0, "number of lines (default 200)")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "keep showing new output")
	c.Flags().StringVar(&f.Since, "since", "", "only lines since: 30m, 6h, 2d ago, or 2026-03-01T12:00:00Z")
	c.Flags().StringVar(&f.Unit, "unit", "", "only lines of this unit, such as slurmd")
	c.Flags().StringVar(&f.Priority, "priority", "", "only lines at least this severe: err, warning, ..., or 0 to 7")
	_ = c.RegisterFlagCompletionFunc("priority", cobra.FixedCompletions(wire.LogPriorities(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// logText is a line for people; the day is told of lines that are not of today.
func logText(l wire.LogLine) string {
	at := l.At.Local()
	layout := "15:04:05.000"
	if y, m, d := at.Date(); time.Date(y, m, d, 0, 0, 0, 0, at.Location()).Before(midnight()) {
		layout = "2006-01-02 15:04:05.000"
	}
	return clean(fmt.Sprintf("%s %s %s: %s", at.Format(layout), l.Node, first(l.Unit, "-"), l.Message))
}

func midnight() time.Time {
	y, m, d := time.Now().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.Local)
}

// followLogs tells the newest lines and then what comes.
func (a *app) followLogs(ctx context.Context, k *client.Client, cluster string, f client.LogFilter) error {
	lost := false
	o := client.FollowOptions{LogFilter: f,
		Lost: func(error) {
			if !lost {
				lost = true
				fmt.Fprintln(a.env.Err, "muster: the server does not answer; connecting again")
			}
		},
		Missed: func(n int64) {
			fmt.Fprintf(a.env.Err, "muster: %s left out: they came too fast\n", plaintext.Count(int(n), "line"))
		},
	}
	err := k.FollowLogs(ctx, cluster, o, func(l wire.LogLine) error {
		lost = false
		return a.writeLog(l)
	})
	if err == nil && a.output == "" {
		fmt.Fprintln(a.env.Err, "the cluster is deleted: no more lines come")
	}
	return err
}

func (a *app) writeLog(l wire.LogLine) (err error) {
	switch a.output {
	case "json":
		err = replyjson.Write(a.env.Out, l)
	case "yaml":
		fmt.Fprintln(a.env.Out, "---")
		err = writeYAML(a.env.Out, l)
	default:
		_, err = fmt.Fprintln(a.env.Out, logText(l))
	}
	if err != nil {
		return muster.Errorf(muster.EInternal, "cannot write").WithHint("who reads the output has gone").Wrap(err)
	}
	return nil
}
