package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) save() *cobra.Command {
	var replace, noWait bool
	var root string
	c := &cobra.Command{
		Use: "save CLUSTER as NAME", Short: "Keep what a cluster is as a template",
		Long: `Keeps the request, the packages and the volumes' names of a cluster as a template of its
project: 'muster create --from NAME' makes others like it. Nothing of the job queue, of
keys or of data is in a template.

--root keeps what was changed in a node's root file system, too, as an image of the
project: programs that root installed by hand, settings, accounts of services. Keys, the
node's identity, logs, the scheduler's state, homes, /tmp and what is mounted are left
out; the kernel is that of the cluster's image. It runs on slices of a host and on bare
machines alike. Stop what writes while it is saved: files are kept as they are read.`,
		Example: `  muster save cfd as solver
  muster save cfd as solver --root          # of the head
  muster save cfd as solver --root=n02
  muster create run2 --from solver --wait`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 4 && c.Flags().Changed("root") && root == rootOfHead { // --root n02
				root, args = args[3], args[:3]
			}
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
			t, err := k.Save(c.Context(), args[0], wire.SaveRequest{Name: args[2], Replace: replace, Root: root})
			if err != nil {
				return err
			}
			if t.Saving != nil && !noWait {
				if t, err = a.awaitSaved(c.Context(), k, t); err != nil {
					return err
				}
			}
			return a.print(t, func(w io.Writer) { writeSaved(w, t) })
		},
	}
	f := c.Flags()
	f.StringVar(&root, "root", "", "keep the root file system of this node, too (without a name: of the head)")
	f.Lookup("root").NoOptDefVal = rootOfHead
	f.BoolVar(&replace, "replace", false, "take the place of a template of that name")
	f.BoolVar(&noWait, "no-wait", false, "with --root: return at once; 'muster template list' says when it is done")
	return c
}

// rootOfHead names the node that has the scheduler, or is the first.
const rootOfHead = "head"

func writeSaved(w io.Writer, t wire.Template) {
	fmt.Fprintf(w, "template %s of project %s\n", clean(t.Name), clean(t.Project))
	if r := t.Root; r != nil {
		fmt.Fprintf(w, "  root        of %s: %s changed or new (%s), %d removed; saved in %s\n", clean(r.Node), plaintext.Count(r.Written, "file"), size(r.Bytes), r.Removed, plaintext.Span(time.Duration(r.Took).Round(time.Second)))
		fmt.Fprintf(w, "  image       %s\n", t.Image.Short())
	}
	if t.Saving != nil {
		fmt.Fprintf(w, "  root        of %s is being saved: muster template list\n", clean(t.Saving.Node))
		return
	}
	fmt.Fprintf(w, "make one like it: muster create NAME --from %s\n", clean(t.Name))
}

// awaitSaved waits until the root of a template is saved, and says how far it is.
func (a *app) awaitSaved(ctx context.Context, k *client.Client, t wire.Template) (wire.Template, error) {
	id, said := t.Saving.ID, ""
	for {
		if p := t.Progress; p != nil && a.output == "" {
			text := p.Stage
			switch {
			case p.Stage == "receiving" && p.Total > p.Bytes: // an estimate, which it may outgrow
				text = fmt.Sprintf("receiving the root of %s: %s of about %s", clean(t.Saving.Node), size(p.Bytes), size(p.Total))
			case p.Stage == "packing":
				text = "packing " + size(p.Bytes)
				if left := time.Until(p.ETA).Round(time.Second); left > 0 {
					text += ", about " + plaintext.Span(left) + " more"
				}
			case p.Stage == "asked":
				text = "waiting for " + clean(t.Saving.Node)
			}
			if text != said {
				said = text
				fmt.Fprintln(a.env.Err, "  "+text)
			}
		}
		select {
		case <-ctx.Done():
			return t, ctx.Err()
		case <-time.After(time.Second):
		}
		next, err := k.Template(ctx, t.Project+"/"+t.Name)
		if err != nil {
			return t, err
		}
		switch {
		case next.Saving == nil:
			return next, nil
		case next.Saving.ID != id:
			return t, muster.Errorf(muster.EConflict, "somebody else saves a root as %s now", t.Name).Because(muster.ReasonChangedMeanwhile).WithHint("choose another name")
		case next.Saving.Error != nil:
			return t, next.Saving.Error
		}
		t = next
	}
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
				t := newTable("NAME", "PROJECT", "OWNER", "NODES", "IMAGE", "AGE", "ROOT")
				for _, x := range out.Templates {
					img := x.Spec.Image
					if x.Root != nil {
						img = x.Image.Short()
					}
					t.row(x.Name, x.Project, x.Owner, fmt.Sprint(x.Spec.Nodes), img, since(x.Created, time.Now()), rootText(x))
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

// rootText says what a template has of a node's root.
func rootText(t wire.Template) string {
	switch {
	case t.Saving != nil && t.Saving.Error != nil:
		return "failed: " + t.Saving.Error.Message
	case t.Saving != nil:
		text := "being saved"
		if t.Progress != nil {
			text += ": " + t.Progress.Stage
		}
		return text
	case t.Root != nil:
		return "of " + t.Root.Node
	}
	return ""
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
	if !t.Usable() {
		if t.Saving.Error != nil {
			return given, muster.Errorf(muster.EConflict, "the root of template %s was not saved: %s", t.Name, t.Saving.Error.Message).Because(muster.ReasonNotReady).WithHint("save it again")
		}
		return given, muster.Errorf(muster.EConflict, "the root of template %s is still being saved", t.Name).Because(muster.ReasonNotReady).WithHint("`muster template list` says when it is done")
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
