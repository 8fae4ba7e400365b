package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) volume() *cobra.Command {
	c := &cobra.Command{
		Use: "volume", Aliases: []string{"volumes"}, Short: "Manage volumes: data that outlives clusters", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `Volumes are data that outlive machines and, if wanted, clusters.

A home is made with its cluster and mounted at /home. When the cluster is
deleted it is kept for a while, and can be the home of a new one. A volume of
data is made by itself, belongs to a project, and is mounted by as many of its
clusters as ask for it. What is written anywhere else in a node is gone with
the node.`,
		Example: `  muster volume create inputs --size 100GiB
  muster create cfd -n 4 --volume inputs:/data:ro
  muster volume list
  muster create cfd2 -n 4 --home cfd-home`,
	}
	c.AddCommand(a.volumeList(), a.volumeShow(), a.volumeCreate(), a.volumeDelete(), a.volumeRetain())
	return c
}

func (a *app) volumeList() *cobra.Command {
	var q wire.VolumeQuery
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List volumes", Args: exactly(),
		Long: "Lists the volumes you can see: who uses them, how much data they hold, and when they expire.",
		Example: `  muster volume list
  muster volume list --all -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.Volumes(c.Context(), q)
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { writeVolumes(w, list, time.Now()) })
		},
	}
	c.Flags().BoolVar(&q.All, "all", false, "include erased volumes and scheduler state")
	c.Flags().StringVar(&q.Project, "project", "", "only this project")
	c.Flags().StringVar(&q.Owner, "owner", "", "only this owner")
	return c
}

func writeVolumes(w io.Writer, list []wire.Volume, now time.Time) {
	if len(list) == 0 {
		fmt.Fprintln(w, "No volumes. Clusters bring their homes; make one for data: muster volume create NAME")
		return
	}
	t := newTable("NAME", "ID", "KIND", "STATUS", "USED", "SIZE", "PROJECT", "OWNER", "USED BY", "KEPT")
	for _, v := range list {
		t.row(v.Name, string(v.ID), string(v.Kind), string(v.Status), usedText(v.Used, v.UsedAt), quotaText(v.Quota, v.Enforced),
			v.Project, v.Owner, usersText(v.UsedBy), keptText(v, now))
	}
	t.write(w)
}

func usedText(used int64, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return size(used)
}

func quotaText(quota int64, enforced bool) string {
	switch {
	case quota == 0:
		return ""
	case !enforced:
		return size(quota) + " (not enforced)"
	}
	return size(quota)
}

func usersText(list []wire.VolumeUser) string {
	names := make([]string, len(list))
	for i, u := range list {
		names[i] = u.Name
	}
	return strings.Join(names, " ")
}

func keptText(v wire.Volume, now time.Time) string {
	switch {
	case v.Status == muster.VolumeReady && v.Kind == muster.VolumeHome && len(v.UsedBy) > 0:
		if v.UsedBy[0].Retain == 0 {
			return "until its cluster is deleted"
		}
		return days0(time.Duration(v.UsedBy[0].Retain)) + " after its cluster"
	case v.Status != muster.VolumeRetained:
		return ""
	case v.Expires.IsZero():
		return "forever"
	}
	return age(v.Expires.Sub(now)) + " more"
}

// days0 tells whole days as such, and what is no whole day as every time.
func days0(d time.Duration) string {
	if d >= 24*time.Hour && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return age(d)
}

func (a *app) volumeShow() *cobra.Command {
	return &cobra.Command{
		Use: "show VOLUME", Short: "Show a volume", Args: exactly("VOLUME"),
		Long:              "Shows a volume, by name or ID: its purpose, who mounts it and where, and when it expires.",
		Example:           `  muster volume show cfd-home`,
		ValidArgsFunction: a.completeVolumes(1, nil),
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			v, err := k.Volume(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) { writeVolume(w, v, time.Now()) })
		},
	}
}

func writeVolume(w io.Writer, v wire.Volume, now time.Time) {
	fmt.Fprintf(w, "%s  %s  %s\n", clean(v.Name), v.ID, v.Status)
	used := usedText(v.Used, v.UsedAt)
	if used != "" {
		used += ", measured " + since(v.UsedAt, now) + " ago"
	}
	kept := keptText(v, now)
	if !v.Expires.IsZero() && kept != "" {
		kept += ", until " + stamp(v.Expires)
	}
	fields(w,
		"for", kindText(v.Kind),
		"since", since(v.PhaseSince, now),
		"project", v.Project+", owner "+v.Owner,
		"driver", string(v.Driver),
		"source", v.Source,
		"used", used,
		"size", quotaText(v.Quota, v.Enforced),
		"kept", kept,
		"cluster", string(v.Cluster),
		"created", stamp(v.Created),
		"note", v.Note,
	)
	for _, u := range v.UsedBy {
		how := ""
		if u.ReadOnly {
			how = ", read-only"
		}
		fmt.Fprintf(w, "mounted by %s (%s) at %s%s\n", clean(u.Name), u.ID, clean(u.Target), how)
	}
	for _, n := range v.Notices {
		fmt.Fprintf(w, "note: %s\n", clean(n))
	}
	if v.Status == muster.VolumeRetained && v.Kind == muster.VolumeHome {
		fmt.Fprintf(w, "use it again: muster create NAME -n N --home %s\n", clean(v.Name))
	}
}

func kindText(k muster.VolumeKind) string {
	switch k {
	case muster.VolumeHome:
		return "home: /home of one cluster"
	case muster.VolumeScheduler:
		return "scheduler: queue and accounting of one cluster"
	}
	return "data of a project, mounted by clusters that ask for it"
}

func (a *app) volumeCreate() *cobra.Command {
	var r wire.VolumeRequest
	c := &cobra.Command{
		Use: "create NAME", Short: "Create a volume for a project's data", Args: exactly("NAME"),
		Long: `Creates a volume for a project's data. Clusters mount it on request:
muster create ... --volume NAME:/PATH. It is kept until it is deleted.

Administrators can add an export of an existing file server as a volume of one project,
with --driver nfs and --source. Muster never touches the data in it, also not when the
volume is deleted.`,
		Example: `  muster volume create inputs --size 100GiB
  muster volume create archive --project aero --driver nfs --source filer.example:/export/aero`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			r.Name = args[0]
			k, err := a.connect()
			if err != nil {
				return err
			}
			v, err := k.CreateVolume(c.Context(), r)
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) {
				fmt.Fprintf(w, "volume %s  %s  %s\n", clean(v.Name), v.ID, v.Status)
				for _, n := range v.Notices {
					fmt.Fprintf(w, "note: %s\n", clean(n))
				}
				fmt.Fprintf(w, "mount it: muster create NAME -n N --volume %s:/data\n", clean(v.Name))
			})
		},
	}
	f := c.Flags()
	f.StringVar(&r.Size, "size", "", "size limit, if the driver can enforce one: 100GiB")
	f.StringVar(&r.Project, "project", "", "owning project")
	f.StringVar(&r.Driver, "driver", "", "driver: hostpath, managed-nfs or nfs (default hostpath)")
	f.StringVar(&r.Source, "source", "", "with --driver nfs: SERVER:/EXPORT")
	f.StringVar(&r.Note, "note", "", "description")
	_ = c.RegisterFlagCompletionFunc("driver", cobra.FixedCompletions([]string{"hostpath", "managed-nfs", "nfs"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) volumeDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete VOLUME", Aliases: []string{"rm"}, Short: "Erase an unused volume", Args: exactly("VOLUME"),
		Long:              `Erases a volume with all its data. This cannot be undone.`,
		Example:           `  muster volume delete cfd-home`,
		ValidArgsFunction: a.completeVolumes(1, func(v wire.Volume) bool { return len(v.UsedBy) == 0 }),
		RunE: func(c *cobra.Command, args []string) error {
			return a.changeVolume(c, func(ctx context.Context, k *client.Client) (wire.Volume, error) { return k.DeleteVolume(ctx, args[0]) })
		},
	}
}

func (a *app) volumeRetain() *cobra.Command {
	return &cobra.Command{
		Use: "retain VOLUME TIME", Short: "Set how long a volume is kept", Args: exactly("VOLUME", "TIME"),
		Long: `Sets how long from now to keep a volume of a deleted cluster. For the home of a running
cluster, it sets how long to keep it after the cluster is deleted; 0 deletes it at once.
Administrators can use "forever".`,
		Example: `  muster volume retain cfd-home 30d
  muster volume retain cfd-home 12h`,
		ValidArgsFunction: a.completeVolumes(1, func(v wire.Volume) bool {
			return v.Kind == muster.VolumeHome
		}),
		RunE: func(c *cobra.Command, args []string) error {
			return a.changeVolume(c, func(ctx context.Context, k *client.Client) (wire.Volume, error) {
				v, err := k.RetainVolume(ctx, args[0], args[1])
				return v, called(err, "for", "TIME")
			})
		},
	}
}

// called gives a field of the API the name that it has on the command line.
func called(err error, field, name string) error {
	var e *muster.Error
	if errors.As(err, &e) {
		for i := range e.Problems {
			if e.Problems[i].Field == field {
				e.Problems[i].Field = name
			}
		}
	}
	return err
}

// changeVolume does something to a volume and shows what has become of it.
func (a *app) changeVolume(c *cobra.Command, change func(context.Context, *client.Client) (wire.Volume, error)) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	v, err := change(c.Context(), k)
	if err != nil {
		return err
	}
	return a.print(v, func(w io.Writer) {
		text := ""
		if kept := keptText(v, time.Now()); kept != "" {
			text = "  kept " + kept
		}
		fmt.Fprintf(w, "volume %s  %s  %s%s\n", clean(v.Name), v.ID, v.Status, text)
	})
}

// completeVolumes completes names of volumes that suit, as the first most
// arguments (-1: always).
func (a *app) completeVolumes(most int, suits func(wire.Volume) bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completion(c, func(ctx context.Context, k *client.Client) []string {
			list, _ := k.Volumes(ctx, wire.VolumeQuery{})
			var names []string
			for _, v := range list {
				if suits == nil || suits(v) {
					names = append(names, v.Name)
				}
			}
			return names
		}, typed)
	}
}

// writeMounts reports what a cluster mounts.
func writeMounts(w io.Writer, list []wire.MountedVolume, now time.Time) {
	for _, m := range list {
		text := clean(m.Name)
		if m.ReadOnly {
			text += ", read-only"
		}
		if used := usedText(m.Used, m.UsedAt); used != "" {
			text += ", " + used + " used"
		}
		if q := quotaText(m.Quota, m.Enforced); q != "" {
			text += " of " + q
		}
		if m.Phase != "" {
			text += ", " + string(m.Phase)
		}
		if !m.Expires.IsZero() {
			text += ", erased in " + age(m.Expires.Sub(now))
		}
		fmt.Fprintf(w, "volume %s: %s\n", clean(m.Target), text)
	}
}

// writeKept reports what a deleted cluster leaves.
func (a *app) writeKept(d wire.Deleted) {
	if d.Home != "" {
		fmt.Fprintf(a.env.Out, "its home stays for %s as volume %s\n", days0(time.Duration(d.Kept)), clean(d.Home))
	}
}
