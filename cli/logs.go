package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

const (
	// logsWindow is how many of the newest lines are asked for while following:
	// as many as are told when more come between two looks.
	logsWindow = 2000
	// logsLook is how often following looks for more.
	logsLook = time.Second
	// logsLines is how many lines are told at first.
	logsLines = 200
)

func (a *app) logs() *cobra.Command {
	var lines int
	var follow bool
	c := &cobra.Command{
		Use: "logs CLUSTER [NODE]", Short: "Read the journals of nodes",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "CLUSTER is missing")
			}
			return atMost(2)(c, args)
		},
		Long: `Reads the newest lines that the nodes wrote to their journals. They outlive the
machines. With -f it goes on with what comes, until the cluster is deleted; with
-o json each line is then one document on one line.`,
		Example: `  muster logs cfd
  muster logs cfd n02 -n 1000
  muster logs -f cfd`,
		ValidArgsFunction: a.completeNodes,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			node := ""
			if len(args) > 1 {
				node = args[1]
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			if follow {
				err = a.followLogs(c.Context(), k, args[0], node, lines)
				if interrupted(c.Context(), err) {
					return nil
				}
				return err
			}
			logs, err := k.Logs(c.Context(), args[0], node, lines)
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
	c.Flags().IntVarP(&lines, "lines", "n", 0, "how many lines (default 200)")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	return c
}

func logText(l wire.LogLine) string {
	return clean(fmt.Sprintf("%s %s %s: %s", l.At.Local().Format("15:04:05.000"), l.Node, first(l.Unit, "-"), l.Message))
}

// followLogs tells the newest lines and then what comes. Nodes report their
// lines at different times, so that a new line may be older than one that was
// told: what is new is what the last look did not have.
func (a *app) followLogs(ctx context.Context, k *client.Client, cluster, node string, lines int) error {
	if lines <= 0 {
		lines = logsLines
	}
	var told map[wire.LogLine]int
	lost := false
	for {
		logs, err := k.Logs(ctx, cluster, node, max(lines, logsWindow))
		switch {
		case err == nil:
			lost = false
			cluster = string(logs.ID) // its name may be given to another
			fresh, now := unseen(logs.Lines, told)
			if told == nil {
				fresh = fresh[max(0, len(fresh)-lines):]
			}
			told = now
			for _, l := range fresh {
				if err := a.writeLog(l); err != nil {
					return err
				}
			}
			if logs.Status == muster.ClusterDeleted {
				if a.output == "" {
					fmt.Fprintln(a.env.Err, "the cluster is deleted: no more lines come")
				}
				return nil
			}
		case told == nil || muster.CodeOf(err) != muster.EUnavailable:
			return err
		case !lost:
			lost = true
			fmt.Fprintln(a.env.Err, "muster: the server does not answer; connecting again")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(logsLook):
		}
	}
}

// unseen are the lines that were not told yet, and what is told after them. A
// line may stand there more than once.
func unseen(lines []wire.LogLine, told map[wire.LogLine]int) (fresh []wire.LogLine, now map[wire.LogLine]int) {
	now = make(map[wire.LogLine]int, len(lines))
	for _, l := range lines {
		key := l
		key.At = l.At.UTC().Round(0) // as a key, a time is its zone too
		now[key]++
		if now[key] > told[key] {
			fresh = append(fresh, l)
		}
	}
	return fresh, now
}

func (a *app) writeLog(l wire.LogLine) (err error) {
	switch a.output {
	case "json":
		err = json.NewEncoder(a.env.Out).Encode(l)
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
