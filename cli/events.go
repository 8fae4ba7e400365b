package cli

import (
	"context"
	"fmt"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/replyjson"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// siteEvents is how many of the site's events are told unless said otherwise.
const siteEvents = 50

func (a *app) events() *cobra.Command {
	o := client.EventOptions{}
	c := &cobra.Command{
		Use: "events [CLUSTER]", Short: "Show events of a cluster or of the site", Args: atMost(1),
		Long: `Shows events of a cluster, or of the site as far as you can see them: by default the
last 50 of the site and all of a cluster; -n sets another number, 0 for all. With -f it
keeps showing new events; those of a cluster end when it is deleted. With -o json each
event is one line.`,
		Example: `  muster events cfd
  muster events -f cfd
  muster events -n 200
  muster events -f -o json | jq 'select(.kind == "machine")'`,
		ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			switch {
			case o.Newest < 0 || o.Newest > 100000:
				return muster.Errorf(muster.EInvalid, "--lines cannot be %d", o.Newest).Because(muster.ReasonOutOfRange).WithHint("write how many of the newest events, at most 100000, or 0 for all")
			case len(args) == 0 && !c.Flags().Changed("lines") && !c.Flags().Changed("after"):
				o.Newest = siteEvents
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				o.Cluster = args[0]
				if o.Follow && o.After > 0 {
					if o.Follow, err = a.goesOn(c.Context(), k, args[0]); err != nil {
						return err
					}
				}
			}
			o.Lost = func(error) {
				if a.output == "" {
					fmt.Fprintln(a.env.Err, "muster: the server does not answer; connecting again")
				}
			}
			err = k.Events(c.Context(), o, func(e wire.Event) error {
				err := a.writeEvent(e)
				failed := e.Kind == muster.AuditCluster && e.To == string(muster.ClusterFailed) && e.From != e.To
				if err == nil && failed && o.Cluster != "" && a.output == "" {
					a.writeWhy(c.Context(), k, e.Cluster)
				}
				if err == nil && o.Follow && o.Cluster != "" && isGone(e) {
					if a.output == "" {
						fmt.Fprintf(a.env.Out, "cluster %s is deleted: no more events\n", clean(o.Cluster))
					}
					return client.ErrStop
				}
				return err
			})
			if interrupted(c.Context(), err) {
				return nil
			}
			return err
		},
	}
	c.Flags().BoolVarP(&o.Follow, "follow", "f", false, "keep showing new events")
	c.Flags().IntVarP(&o.Newest, "lines", "n", 0, "number of most recent events; 0: all (default 50 for the site, all for a cluster)")
	c.Flags().Int64Var(&o.After, "after", 0, "start after the event with this sequence number")
	return c
}

// isGone reports whether an event is the last of a cluster.
func isGone(e wire.Event) bool {
	return e.Kind == muster.AuditCluster && e.To == string(muster.ClusterDeleted)
}

// goesOn reports whether a cluster may have more events: who asks for those after its last
// would wait for ever.
func (a *app) goesOn(ctx context.Context, k *client.Client, ref string) (bool, error) {
	c, err := k.Cluster(ctx, ref)
	if muster.CodeOf(err) == muster.EUnavailable {
		return true, nil // it is restarting
	}
	return c.Status != muster.ClusterDeleted, err
}

// writeWhy tells every problem that made a cluster fail. The line of the event
// holds only the first words.
func (a *app) writeWhy(ctx context.Context, k *client.Client, id muster.ClusterID) {
	c, err := k.Cluster(ctx, string(id))
	if err != nil || c.Reason == nil {
		return // it is gone: the story goes on without
	}
	writeProblems(a.env.Out, c.Reason)
}

func (a *app) writeEvent(e wire.Event) error {
	switch a.output {
	case "json":
		return replyjson.Write(a.env.Out, e)
	case "yaml":
		fmt.Fprintln(a.env.Out, "---")
		return writeYAML(a.env.Out, e)
	}
	change := e.To
	if e.From != "" && e.From != e.To {
		change = e.From + " -> " + e.To
	}
	object := string(e.Kind) + " " + e.Object
	if e.Cluster != "" && e.Kind == muster.AuditNode {
		object += " of " + string(e.Cluster)
	}
	line := e.At.Local().Format("2006-01-02 15:04:05.000") + "  " + object
	if change != "" {
		line += "  " + change
	}
	if e.Text != "" {
		line += "  " + e.Text
	}
	if e.Actor != "" && e.Actor != "system" {
		line += "  by " + e.Actor
	}
	if _, err := fmt.Fprintln(a.env.Out, clean(line)); err != nil {
		return muster.Errorf(muster.EInternal, "cannot write").Wrap(err)
	}
	return nil
}
