package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) imageVersions() *cobra.Command {
	return &cobra.Command{
		Use: "versions IMAGE[@VERSION]", Short: "List the contents that an image has had, and why they are kept", Args: exactly("IMAGE"),
		Long: `Lists the contents of an image, the newest first: when each was built (days are those of
UTC), its size, and why it is kept. Each can be used wherever an image is named: by what
the first column shows, or by a day or a month: hpc@2026-11-20 is the newest that was
built on that day or before, hpc@2026-11 the newest built before the end of that month.
With IMAGE@VERSION it is the one that this means.

A content is kept while its name means it (current), something uses it (in-use), it is
pinned, it is among the newest of its image, or young (age). One without a reason is
removed within minutes. Administrators set the rule: muster serve
--image-versions-min and --image-versions-ttl.`,
		Example: `  muster image versions hpc
  muster image versions hpc@2026-11
  muster image versions hpc -o json | jq -r '.versions[] | select(.built < "2026-07") | .ref'`,
		ValidArgsFunction: a.completeImage,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.ImageVersions(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { writeVersions(w, list) })
		},
	}
}

func writeVersions(w io.Writer, list wire.ImageVersionList) {
	if len(list.Versions) == 0 {
		fmt.Fprintf(w, "image %s has no content here that a recipe gave\n", clean(list.Image))
		return
	}
	t := newTable("CONTENT", "BUILT (UTC)", "SIZE", "PACKAGES", "KEPT", "IN USE", "NOTE")
	for _, v := range list.Versions {
		kept := strings.Join(v.Kept, " ")
		if kept == "" {
			kept = "no: it goes soon"
		}
		note := ""
		if v.Pin != nil {
			note = "pinned by " + first(v.Pin.By, "somebody")
			if v.Pin.Reason != "" {
				note += ": " + v.Pin.Reason
			}
		}
		built := ""
		if !v.Built.IsZero() {
			built = v.Built.UTC().Format("2006-01-02 15:04")
		}
		t.row(v.Ref, built, size(v.Size), fmt.Sprint(v.Packages), kept, strings.Join(v.InUse, ", "), first(note, " "))
	}
	t.write(w)
	rule := "the newest " + fmt.Sprint(list.Rule.Newest)
	if age := time.Duration(list.Rule.Age); age > 0 {
		rule += ", those younger than " + plaintext.Span(age)
	}
	fmt.Fprintf(w, "kept here: %s, and what is current, in use or pinned\n", rule)
}

func (a *app) imagePin() *cobra.Command {
	var r wire.PinImage
	c := &cobra.Command{
		Use: "pin IMAGE@VERSION", Short: "Keep a content of an image whatever its age", Args: exactly("IMAGE@VERSION"),
		Long: `Keeps one content of an image until it is unpinned, though nobody uses it and it is old.
Without @VERSION it is the content that the name means now.`,
		Example: `  muster image pin hpc@2026-06-30 --reason "release 3 was validated on it"
  muster image pin hpc@0ddd19d63a2e`,
		ValidArgsFunction: a.completeImage,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			p, err := k.PinImage(c.Context(), args[0], r)
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) { fmt.Fprintf(w, "image %s is kept until it is unpinned\n", clean(p.Ref)) })
		},
	}
	c.Flags().StringVar(&r.Reason, "reason", "", "shown with the content")
	return c
}

func (a *app) imageUnpin() *cobra.Command {
	return &cobra.Command{
		Use: "unpin IMAGE@VERSION", Short: "Keep a content of an image only as long as the site's rule says", Args: exactly("IMAGE@VERSION"),
		Example:           `  muster image unpin hpc@2026-06-30`,
		ValidArgsFunction: a.completeImage,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			p, err := k.UnpinImage(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) {
				text := "is not pinned any more"
				if p.Status == "not-pinned" {
					text = "was not pinned"
				}
				fmt.Fprintf(w, "image %s %s\n", clean(p.Ref), text)
			})
		},
	}
}

func (a *app) imageCompare() *cobra.Command {
	return &cobra.Command{
		Use: "compare A B", Short: "Show what differs between two images", Args: exactly("A", "B"),
		Long: `Shows which packages are newer, older, new or gone in image B, compared with image A, by
Debian's order of versions; and what else is not the same: the day, the recipe, the builder
of Muster, the base, the kernel, the files. Two contents with the same packages can differ
in these.`,
		Example: `  muster image compare hpc@2026-06 hpc
  muster image compare hpc-12 hpc -o json | jq -r '.newer[].name'`,
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeImages(c, args, typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			d, err := k.CompareImages(c.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			return a.print(d, func(w io.Writer) { writeImageComparison(w, d) })
		},
	}
}

func writeImageComparison(w io.Writer, d wire.ImageComparison) {
	side := func(c wire.ComparedImage) string {
		return fmt.Sprintf("%s, built %s, %s", c.Ref, day(c.Built), plaintext.Count(c.Packages, "package"))
	}
	fields(w, "from", side(d.From), "to", side(d.To))
	fmt.Fprintf(w, "%d newer, %d older, %d new, %d gone, %d the same\n", len(d.Newer), len(d.Older), len(d.Added), len(d.Removed), d.Same)
	if len(d.Differ) > 0 {
		t := newTable("ALSO", "FROM", "TO")
		for _, o := range d.Differ {
			t.row(o.What, first(o.From, "-"), first(o.To, "-"))
		}
		t.write(w)
	} else if d.From.ID == d.To.ID {
		fmt.Fprintln(w, "it is the same content")
	}
	all := slices.Concat(d.Newer, d.Older, d.Added, d.Removed)
	if len(all) == 0 {
		return
	}
	t := newTable("PACKAGE", "FROM", "TO", "CHANGE")
	for _, part := range []struct {
		what string
		list []wire.PackageChange
	}{{"newer", d.Newer}, {"older", d.Older}, {"new", d.Added}, {"gone", d.Removed}} {
		for _, c := range part.list {
			t.row(c.Name, first(c.From, "-"), first(c.To, "-"), part.what)
		}
	}
	t.write(w)
}

// versionWords are what an image can be called by beside its name: its days, the newest
// content of each, and its contents.
func versionWords(list []wire.Image, name string) []string {
	var words []string
	for _, img := range list {
		if img.Name != name || img.Base != "" || img.Saved != nil {
			continue
		}
		words = append(words, name+"@"+img.Created.UTC().Format(time.DateOnly), name+"@"+muster.ImageID(img.ID).Short())
	}
	slices.Sort(words)
	return slices.Compact(words)
}
