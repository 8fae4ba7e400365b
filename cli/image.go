package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) image() *cobra.Command {
	c := &cobra.Command{
		Use: "image", Short: "Build and manage images", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `Images are what machines run: a root file system with a manifest, named by its
content. They are built from recipes. With --state these commands work on the
directory itself, without a server.`,
		Example: `  muster image build hpc --state /var/lib/muster
  muster image list
  muster image versions hpc`,
	}
	c.AddCommand(a.imageBuild(), a.imageList(), a.imageShow(), a.imageVersions(), a.imageCompare(), a.imagePin(), a.imageUnpin(), a.imageVerify(), a.imageRemove())
	return c
}

// stateFlag lets a command work on a state directory without a server.
func stateFlag(c *cobra.Command) *string {
	return c.Flags().String("state", "", "work on this state directory, without a server")
}

func (a *app) imageList() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List images", Args: exactly(),
		Example: `  muster image list
  muster image list --state /var/lib/muster -o json`,
	}
	state := stateFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		var list []wire.Image
		if *state != "" {
			store, err := openImages(*state)
			if err != nil {
				return err
			}
			if list, err = listImages(store); err != nil {
				return err
			}
		} else {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if list, err = k.Images(c.Context()); err != nil {
				return err
			}
		}
		if list == nil {
			list = []wire.Image{}
		}
		return a.print(list, func(w io.Writer) { writeImages(w, list) })
	}
	return c
}

func writeImages(w io.Writer, list []wire.Image) {
	if len(list) == 0 {
		fmt.Fprintln(w, "No images. Build one: muster image build hpc")
		return
	}
	t := newTable("NAME", "ID", "SYSTEM", "SLURM", "SIZE", "PACKAGES", "CREATED", "IN USE", "NOTE")
	for _, i := range list {
		var notes []string
		if i.UserRoot {
			notes = append(notes, "users are root")
		}
		switch {
		case i.Base != "":
			note := "derived from " + muster.ImageID(i.Base).Short()
			if len(i.Projects) > 0 {
				note += " for " + strings.Join(i.Projects, " and ")
			}
			notes = append(notes, note)
		case i.Saved != nil:
			notes = append(notes, fmt.Sprintf("root of %s of cluster %s, over %s", i.Saved.Node, i.Saved.Cluster, i.Name))
		case !i.Newest:
			notes = append(notes, "older")
		}
		name := i.Name
		if i.Saved != nil {
			name = i.Saved.Project + "/" + i.Saved.Name
		}
		t.row(name, muster.ImageID(i.ID).Short(), i.System, i.Slurm, size(i.Size), fmt.Sprint(i.Packages),
			day(i.Created), strings.Join(i.InUse, " "), first(strings.Join(notes, ", "), " "))
	}
	t.write(w)
}

// day is the date of a time; empty for the zero time.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02")
}

func (a *app) imageShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show IMAGE", Short: "Show an image's manifest", Args: exactly("IMAGE"),
		Long: `Shows an image, by name, ID or prefix of its ID, or one of its versions: contents and
requirements. -o json lists all packages.`,
		Example: `  muster image show hpc
  muster image show hpc@2026-11-20
  muster image show hpc -o json | jq -r '.packages[].name'`,
		ValidArgsFunction: a.completeImage,
	}
	state := stateFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		var img muster.Image
		if *state != "" {
			store, err := openImages(*state)
			if err != nil {
				return err
			}
			found, err := store.Resolve(args[0])
			if err != nil {
				return err
			}
			img = *found
		} else {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if img, err = k.Image(c.Context(), args[0]); err != nil {
				return err
			}
		}
		return a.print(img, func(w io.Writer) { writeImage(w, img) })
	}
	return c
}

func writeImage(w io.Writer, i muster.Image) {
	root := "no"
	if i.UserRoot {
		root = "yes"
	}
	fields(w,
		"image", i.Name,
		"id", string(i.ID),
		"summary", i.Summary,
		"base", string(i.Base),
		"added", strings.Join(i.Added, " "),
		"system", i.System+", "+i.Architecture,
		"slurm", i.Slurm,
		"kernel", i.Kernel,
		"users are root", root,
		"packages", fmt.Sprint(len(i.Packages)),
		"size", fmt.Sprintf("%s (%s uncompressed)", size(i.Size()), size(i.Uncompressed)),
		"needs", needsText(i.Requires),
		"created", stamp(i.Created),
	)
	t := newTable("FILE", "ROLE", "SIZE", "SHA-256")
	for _, f := range i.Files {
		t.row(f.Name, string(f.Role), size(f.Size), f.SHA256)
	}
	t.write(w)
}

func needsText(n muster.ImageNeeds) string {
	var parts []string
	if n.Memory > 0 {
		parts = append(parts, size(n.Memory)+" memory")
	}
	if n.CPULevel > 0 {
		parts = append(parts, fmt.Sprintf("x86-64-v%d", n.CPULevel))
	}
	return strings.Join(append(parts, n.Devices...), ", ")
}

func (a *app) imageVerify() *cobra.Command {
	c := &cobra.Command{
		Use: "verify IMAGE", Short: "Verify the digests of an image's files", Args: exactly("IMAGE"),
		Example:           `  muster image verify hpc`,
		ValidArgsFunction: a.completeImage,
	}
	state := stateFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		var v wire.ImageVerified
		if *state != "" {
			store, err := openImages(*state)
			if err != nil {
				return err
			}
			if v, err = verifyImage(c.Context(), store, args[0]); err != nil {
				return err
			}
		} else {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if v, err = k.VerifyImage(c.Context(), args[0]); err != nil {
				return err
			}
		}
		return a.print(v, func(w io.Writer) {
			fmt.Fprintf(w, "image %s (%s): %s read, all digests match\n", clean(v.Name), muster.ImageID(v.ID).Short(), size(v.Bytes))
		})
	}
	return c
}

func (a *app) imageRemove() *cobra.Command {
	c := &cobra.Command{
		Use: "remove IMAGE", Aliases: []string{"rm"}, Short: "Remove an unused image", Args: exactly("IMAGE"),
		Example:           `  muster image remove hpc-12`,
		ValidArgsFunction: a.completeImage,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if err := k.RemoveImage(c.Context(), args[0]); err != nil {
				return err
			}
			return a.print(wire.Done{Status: "removed"}, func(w io.Writer) { fmt.Fprintf(w, "image %s removed\n", clean(args[0])) })
		},
	}
	return c
}
