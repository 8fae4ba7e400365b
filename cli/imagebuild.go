package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/client"
	"github.com/muster-hpc/muster/image"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// built is what image build tells programs.
type built struct {
	Image  wire.Image   `json:"image"`
	Built  bool         `json:"built"` // false: it was there already
	Took   float64      `json:"took"`  // seconds
	Stages []builtStage `json:"stages"`
}

type builtStage struct {
	Stage string  `json:"stage"`
	Took  float64 `json:"took"`
}

func (a *app) imageBuild() *cobra.Command {
	var o image.BuildOptions
	c := &cobra.Command{
		Use: "build NAME", Short: "Build an image from its recipe", Args: exactly("NAME"),
		Long: `Builds an image with mmdebstrap, on this host and as root, and keeps it in the
images of a state directory. No server is needed; one that runs sees the new
image at once. An image that is there already is found and not built again.

Recipes are looked for in ./images, DIR/recipes, /usr/share/muster/images and
among those that come with Muster.`,
		Example: `  muster image build hpc --state /var/lib/muster
  muster image build raw --refresh`,
	}
	state := c.Flags().String("state", "", "state directory (default: that of the server named by --server)")
	c.Flags().BoolVar(&o.Refresh, "refresh", false, "look for newer packages although the recipe did not change")
	c.Flags().StringVar(&o.Mirror, "mirror", "", "package mirror to build from")
	c.Flags().IntVar(&o.Level, "level", 0, "compression level of zstd, 1 to 22")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := a.checkOutput(); err != nil {
			return err
		}
		dir, err := a.stateDir(*state)
		if err != nil {
			return err
		}
		return a.runBuild(c.Context(), dir, args[0], o)
	}
	return c
}

// stateDir is the directory named, or the one where the local server's socket
// lies.
func (a *app) stateDir(state string) (string, error) {
	if state != "" {
		return state, nil
	}
	address, err := client.ParseAddress(first(a.server, a.env.getenv("MUSTER_SERVER")))
	if err != nil {
		return "", err
	}
	if address.Socket == "" {
		return "", muster.Errorf(muster.EInvalid, "images are built on the server's own host").
			WithHint("run 'muster image build NAME --state DIR' there")
	}
	return filepath.Dir(address.Socket), nil
}

func openImages(state string) (*image.Store, error) {
	return image.Open(filepath.Join(state, "images"), slog.New(slog.DiscardHandler))
}

func (a *app) runBuild(ctx context.Context, dir, name string, o image.BuildOptions) error {
	shelves := []fs.FS{os.DirFS("images"), os.DirFS(filepath.Join(dir, "recipes")), os.DirFS("/usr/share/muster/images")}
	book := image.NewBook(append(shelves, a.env.Recipes...)...)
	recipe, err := book.Load(name)
	if err != nil {
		return err
	}
	store, err := openImages(dir)
	if err != nil {
		return err
	}
	o.Progress = a.buildProgress()
	result, err := store.Build(ctx, recipe, o)
	if err != nil {
		return err
	}
	out := built{Image: imageView(result.Image), Built: result.Built, Took: result.Took.Seconds(), Stages: []builtStage{}}
	out.Image.Newest = true
	for _, s := range result.Stages {
		out.Stages = append(out.Stages, builtStage{s.Stage, s.Took.Seconds()})
	}
	return a.print(out, func(w io.Writer) {
		if !out.Built {
			fmt.Fprintf(w, "image %s (%s) is there already\n", clean(out.Image.Name), result.Image.ID.Short())
			return
		}
		var parts []string
		for _, s := range out.Stages {
			parts = append(parts, fmt.Sprintf("%s %.1f", s.Stage, s.Took))
		}
		fmt.Fprintf(w, "image %s (%s): %s, %s, built in %.1fs\n  seconds: %s\n", clean(out.Image.Name), result.Image.ID.Short(),
			size(out.Image.Size), count(out.Image.Packages, "package"), out.Took, strings.Join(parts, ", "))
	})
}

// buildProgress tells each stage once, and on a terminal how far it is.
func (a *app) buildProgress() func(image.Progress) {
	if a.output != "" {
		return nil
	}
	last := ""
	live := newLiveLine(a, true)
	return func(p image.Progress) {
		if live.on {
			text := fmt.Sprintf("%s: %s, %s", p.Image, p.Stage, age(p.Elapsed))
			if p.ETA > 0 {
				text += ", about " + age(p.ETA) + " left"
			}
			live.set(text)
		}
		if p.Stage != last {
			last = p.Stage
			live.clear()
			fmt.Fprintf(a.env.Out, "%7.1fs  %s %s\n", p.Elapsed.Seconds(), clean(p.Image), clean(p.Stage))
		}
	}
}

func listImages(store *image.Store) ([]wire.Image, error) {
	list, err := store.List()
	if err != nil {
		return nil, err
	}
	names := store.Names()
	var out []wire.Image
	for _, img := range list {
		view := imageView(img)
		view.Newest = names[img.Name] == img.ID
		out = append(out, view)
	}
	return out, nil
}

func imageView(img *muster.Image) wire.Image {
	return wire.Image{
		ID: string(img.ID), Name: img.Name, Summary: img.Summary, Size: img.Size(), Created: img.Created,
		System: img.System, UserRoot: img.UserRoot, Slurm: img.Slurm, Packages: len(img.Packages), Base: string(img.Base),
	}
}

func verifyImage(ctx context.Context, store *image.Store, ref string) (wire.ImageVerified, error) {
	img, err := store.Resolve(ref)
	if err != nil {
		return wire.ImageVerified{}, err
	}
	if img, err = store.Verify(ctx, img.ID); err != nil {
		return wire.ImageVerified{}, err
	}
	return wire.ImageVerified{ID: string(img.ID), Name: img.Name, OK: true, Bytes: img.Size(), At: time.Now().UTC()}, nil
}
