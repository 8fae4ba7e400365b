package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) save() *cobra.Command {
	var replace bool
	c := &cobra.Command{
		Use: "save CLUSTER as NAME", Short: "Keep what a cluster is as a template",
		Long: `Keeps the request, the packages and the volumes' names of a cluster as a template of its
project: 'muster create --from NAME' makes others like it. Nothing of the job queue, of
keys or of data is in a template.`,
		Example: `  muster save cfd as solver
  muster create run2 --from solver --wait`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 3 || args[1] != "as" {
				return usage(c, "write: muster save CLUSTER as NAME")
			}
			return nil
		},
		ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			t, err := k.Save(c.Context(), args[0], wire.SaveRequest{Name: args[2], Replace: replace})
			if err != nil {
				return err
			}
			return a.print(t, func(w io.Writer) {
				fmt.Fprintf(w, "template %s of project %s\nmake one like it: muster create NAME --from %s\n", clean(t.Name), clean(t.Project), clean(t.Name))
			})
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "take the place of a template of that name")
	return c
}

func (a *app) template() *cobra.Command {
	c := &cobra.Command{
		Use: "template", Aliases: []string{"templates"}, Short: "List and delete templates of clusters", Args: cobra.ArbitraryArgs, RunE: group,
		Long: "Templates are what clusters were, to make others like them. 'muster save' makes them.", Example: "  muster template list",
	}
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List templates", Args: exactly(),
		Long: "Lists the templates of your projects.", Example: "  muster template list -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Templates(c.Context())
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				if len(out.Templates) == 0 {
					fmt.Fprintln(w, "No templates. Make one: muster save CLUSTER as NAME")
					return
				}
				t := newTable("NAME", "PROJECT", "OWNER", "NODES", "IMAGE", "AGE")
				for _, x := range out.Templates {
					t.row(x.Name, x.Project, x.Owner, fmt.Sprint(x.Spec.Nodes), x.Spec.Image, since(x.Created, time.Now()))
				}
				t.write(w)
			})
		},
	}
	remove := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Short: "Delete a template", Args: exactly("NAME"),
		Long: "Deletes a template; clusters made from it stay.", Example: "  muster template delete cfd/solver",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			t, err := findTemplate(c.Context(), k, args[0])
			if err != nil {
				return err
			}
			if err := k.DeleteTemplate(c.Context(), t.Project+"/"+t.Name); err != nil {
				return err
			}
			return a.print(map[string]string{"name": t.Name, "status": "deleted"}, func(w io.Writer) { fmt.Fprintf(w, "template %s deleted\n", clean(t.Name)) })
		},
	}
	c.AddCommand(list, remove)
	return c
}

// findTemplate finds a template by its name, or PROJECT/NAME.
func findTemplate(ctx context.Context, k *client.Client, ref string) (wire.Template, error) {
	list, err := k.Templates(ctx)
	if err != nil {
		return wire.Template{}, err
	}
	var found []wire.Template
	for _, t := range list.Templates {
		if t.Name == ref || t.Project+"/"+t.Name == ref {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return wire.Template{}, muster.Errorf(muster.ENotFound, "there is no template %.64q", ref).Because(muster.ReasonNoSuchObject).WithHint("`muster template list` lists them")
	case 1:
		return found[0], nil
	}
	return wire.Template{}, muster.Errorf(muster.EConflict, "several projects have a template %.64q", ref).Because(muster.ReasonAmbiguous).WithHint("write PROJECT/NAME")
}

// fromTemplate makes a request of a template and of the flags that were given beside it.
func (a *app) fromTemplate(c *cobra.Command, ref string, given wire.Request) (wire.Request, error) {
	k, err := a.connect()
	if err != nil {
		return given, err
	}
	t, err := findTemplate(c.Context(), k, ref)
	if err != nil {
		return given, err
	}
	// What the flags say stands over what the template says: both as JSON, where what was not
	// given is left out.
	base, err := json.Marshal(t.Request)
	if err != nil {
		return given, err
	}
	over, err := json.Marshal(given)
	if err != nil {
		return given, err
	}
	out := wire.Request{}
	if err := json.Unmarshal(base, &out); err != nil {
		return given, err
	}
	nodes := out.Nodes
	if err := json.Unmarshal(over, &out); err != nil {
		return given, err
	}
	if given.Nodes == 0 {
		out.Nodes = nodes
	}
	return out, nil
}
