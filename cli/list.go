package cli

import (
	"fmt"
	"github.com/muster-hpc/muster"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) list() *cobra.Command {
	var f client.ClusterFilter
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List clusters", Args: exactly(),
		Long: "Lists the clusters you can see, oldest first.",
		Example: `  muster list
  muster list --all -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.Clusters(c.Context(), f)
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) {
				if len(list) == 0 && (f.Project != "" || f.Owner != "") {
					fmt.Fprintln(w, "No clusters that match --project and --owner.")
					return
				}
				a.clusterTable(w, list, time.Now())
			})
		},
	}
	c.Flags().BoolVar(&f.All, "all", false, "include deleted clusters")
	c.Flags().StringVar(&f.Project, "project", "", "only this project")
	c.Flags().StringVar(&f.Owner, "owner", "", "only this owner")
	return c
}

func (a *app) clusterTable(w io.Writer, list []wire.Cluster, now time.Time) {
	if len(list) == 0 {
		fmt.Fprintln(w, "No clusters. Ask for one: muster create NAME -n 4 --wait")
		return
	}
	t := newTable("NAME", "ID", "STATUS", "NODES", "IMAGE", "OWNER", "AGE", "NOTE")
	for _, c := range list {
		note := c.StatusText
		if note == string(c.Status) {
			note = " "
		}
		for _, x := range c.Conditions {
			if x.Code == muster.ConditionDegraded { // more urgent than when its time ends
				note = x.Text
			}
		}
		t.row(c.Name, string(c.ID), string(c.Status), fmt.Sprintf("%d/%d", c.ReadyCount, c.NodeCount),
			c.Spec.Image, c.Owner, since(c.Created, now), note)
	}
	var b strings.Builder
	t.write(&b)
	_, _ = io.WriteString(w, b.String())
}
