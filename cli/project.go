package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) project() *cobra.Command {
	c := &cobra.Command{
		Use: "project", Aliases: []string{"projects"}, Short: "Show projects, and limit what they may have", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `A project is a group of people who share clusters, volumes and limits. Limits bound what
the project, or each of its people, holds at once, books and asks for; rights say what they
may ask for at all. The project '*' stands for all that have no limits of their own.`,
		Example: `  muster project list
  muster project limit cfd machines=8 user.cores=64 machine-time=2000h/30d
  muster project allow cfd big-run --until +7d --reason "paper deadline"`,
	}
	c.AddCommand(a.projectList(), a.projectShow(), a.projectLimit(), a.projectMember(), a.projectAllow(), a.projectLicence())
	return c
}

func (a *app) projectList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List projects", Args: exactly(),
		Long: "Lists the projects you can see, with what they hold.", Example: "  muster project list -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Projects(c.Context())
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				if len(out.Projects) == 0 {
					fmt.Fprintln(w, "No projects. One begins with its first member: muster user add NAME --projects P")
					return
				}
				t := newTable("NAME", "MEMBERS", "MACHINES", "CORES", "PROMISES", "LIMITS")
				for _, p := range out.Projects {
					t.row(p.Name, fmt.Sprint(len(p.Members)), fmt.Sprint(p.Use.Machines), fmt.Sprint(p.Use.Cores), fmt.Sprint(p.Use.Promises), strings.Join(limitTexts("", p.Limits), " "))
				}
				t.write(w)
			})
		},
	}
}

// limitTexts are limits as `project limit` takes them.
func limitTexts(prefix string, l muster.Limits) (out []string) {
	for _, x := range []struct {
		name string
		n    int
	}{{"machines", l.Machines}, {"cores", l.Cores}, {"accelerators", l.Accelerators}, {"promises", l.Promises}} {
		if x.n > 0 {
			out = append(out, fmt.Sprintf("%s%s=%d", prefix, x.name, x.n))
		}
	}
	for _, x := range []struct {
		name string
		d    muster.Duration
	}{{"ahead", l.Ahead}, {"walltime", l.Walltime}} {
		if x.d > 0 {
			out = append(out, fmt.Sprintf("%s%s=%s", prefix, x.name, plaintext.Span(time.Duration(x.d))))
		}
	}
	if l.MachineTime > 0 {
		out = append(out, fmt.Sprintf("%smachine-time=%.0fh/%s", prefix, time.Duration(l.MachineTime).Hours(), plaintext.Span(time.Duration(l.Period))))
	}
	return out
}

func (a *app) projectShow() *cobra.Command {
	return &cobra.Command{
		Use: "show PROJECT", Short: "Show a project: members, limits and what is in use", Args: exactly("PROJECT"),
		Long: "Shows the members and managers of a project, its limits and what is in use of them, its rights, and clusters for which limits are lifted.", Example: "  muster project show cfd",
		ValidArgsFunction: a.completeProjects,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Project(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) { writeProject(w, out) })
		},
	}
}

func writeProject(w io.Writer, p wire.ProjectUse) {
	fmt.Fprintf(w, "project %s\n", clean(p.Name))
	fmt.Fprintf(w, "  members     %s\n", clean(strings.Join(p.Members, " ")))
	if len(p.Managers) > 0 {
		fmt.Fprintf(w, "  managers    %s\n", clean(strings.Join(p.Managers, " ")))
	}
	use := func(u wire.LimitUse) string {
		return fmt.Sprintf("%s, %s, %s, %s, %.0f machine-hours", plaintext.Count(u.Machines, "machine"), plaintext.Count(u.Cores, "core"),
			plaintext.Count(u.Accelerators, "accelerator"), plaintext.Count(u.Promises, "promise"), time.Duration(u.MachineTime).Hours())
	}
	fmt.Fprintf(w, "  in use      %s\n", use(p.Use))
	for _, name := range slices.Sorted(maps.Keys(p.Users)) {
		fmt.Fprintf(w, "    %-9s %s\n", clean(name), use(p.Users[name]))
	}
	limits := append(limitTexts("", p.Limits), limitTexts("user.", p.EachUser)...)
	if len(limits) == 0 {
		limits = []string{"none"}
	}
	whose := ""
	if !p.Kept && limits[0] != "none" {
		whose = " (those of all projects)"
	}
	fmt.Fprintf(w, "  limits      %s%s\n", strings.Join(limits, " "), whose)
	for _, h := range p.Hours {
		fmt.Fprintf(w, "  hours       %s to %s %s: %s\n", clean(h.From), clean(h.Until), clean(h.Zone), plaintext.Count(h.Machines, "machine"))
	}
	for _, x := range []struct {
		no   bool
		text string
	}{{p.Rights.NoPromises, "may-reserve=no"}, {p.Rights.NoRacks, "may-name-racks=no"}, {p.Rights.NoHardware, "may-name-hardware=no"}} {
		if x.no {
			fmt.Fprintf(w, "  right       %s\n", x.text)
		}
	}
	if len(p.Rights.Classes) > 0 {
		fmt.Fprintf(w, "  right       classes=%s\n", clean(strings.Join(p.Rights.Classes, ",")))
	}
	if len(p.Rights.Providers) > 0 {
		fmt.Fprintf(w, "  right       providers=%s\n", clean(strings.Join(p.Rights.Providers, ",")))
	}
	if len(p.Rights.Doors) > 0 {
		fmt.Fprintf(w, "  right       doors=%s\n", doorNames(p.Rights.Doors, ","))
	}
	for _, l := range p.Licences {
		fmt.Fprintf(w, "  licences    %s\n", clean(l.String()))
	}
	for _, c := range p.Lifted {
		fmt.Fprintf(w, "  lifted      cluster %s: %s\n", clean(c.Name), clean(c.Text()))
	}
	for _, e := range p.Exceptions {
		fmt.Fprintf(w, "  lifted      for the next cluster %s: %s\n", clean(e.Cluster), clean(e.Text()))
	}
}

func (a *app) projectLimit() *cobra.Command {
	var r wire.ProjectLimits
	c := &cobra.Command{
		Use: "limit PROJECT LIMIT=VALUE...", Short: "Limit what a project may have",
		Long: `Sets limits of a project; with "user." before them, of each of its people. none takes a
limit away. A limit below what is in use is refused, unless --force sets it: nobody is
ended, and new requests are refused.

  machines=8 cores=64 accelerators=4   held at once
  machine-time=2000h/30d               booked in a period
  promises=3 ahead=60d                 promises at once, and how far ahead
  walltime=7d                          of one cluster
  hours="fri 18:00-mon 08:00 Europe/Berlin:2"   machines at once in these hours
  classes=a,b providers=metal          what they may have
  may-reserve=no may-name-racks=no may-name-hardware=no doors=jump`,
		Example: `  muster project limit cfd machines=8 user.cores=64
  muster project limit '*' walltime=7d
  muster project limit cfd machines=none`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(c, "PROJECT and LIMIT=VALUE are missing")
			}
			return nil
		},
		ValidArgsFunction: a.completeProjects,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			r.Set = args[1:]
			out, err := k.LimitProject(c.Context(), args[0], r)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) { writeProject(w, out) })
		},
	}
	c.Flags().BoolVar(&r.Force, "force", false, "set a limit below what is in use")
	return c
}

func (a *app) projectMember() *cobra.Command {
	var role string
	c := &cobra.Command{
		Use: "member PROJECT USER", Short: "Make somebody a member or a manager of a project", Args: exactly("PROJECT", "USER"),
		Long: `Makes somebody a member or a manager of a project, or neither. Members make clusters and see
those of the project; managers change all of them, and add members. Administrators make
managers.`,
		Example: `  muster project member cfd alice
  muster project member cfd alice --role manager
  muster project member cfd alice --role none`,
		ValidArgsFunction: a.completeProjects,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.SetProjectMember(c.Context(), args[0], wire.ProjectMember{User: args[1], Role: role})
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) { writeProject(w, out) })
		},
	}
	c.Flags().StringVar(&role, "role", "member", "member, manager or none")
	_ = c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{"member", "manager", "none"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) projectAllow() *cobra.Command {
	var r wire.ProjectAllow
	c := &cobra.Command{
		Use: "allow PROJECT CLUSTER", Short: "Lift the limits of a project for one cluster", Args: exactly("PROJECT", "CLUSTER"),
		Long: `Lifts the limits of a project for one cluster: for the living one of that name or ID, or
else for the next one of that name, and no later one. Administrators lift all limits and
rights, managers of the project those of each user. Everybody who sees the cluster sees it.`,
		Example: `  muster project allow cfd big-run --until +7d --reason "paper deadline"
  muster project allow cfd big-run --revoke`,
		ValidArgsFunction: a.completeProjects,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			r.Cluster = args[1]
			out, err := k.AllowProject(c.Context(), args[0], r)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) { writeProject(w, out) })
		},
	}
	c.Flags().StringVar(&r.Until, "until", "", "until when it may be asked for (default: always)")
	c.Flags().StringVar(&r.Why, "reason", "", "the reason, for everybody to see")
	c.Flags().BoolVar(&r.Revoke, "revoke", false, "let the limits hold again")
	return c
}
