package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// built is what image build tells programs.
type built struct {
	Image  wire.Image   `json:"image"`
	Built  bool         `json:"built"`        // false: it was there already
	Took   float64      `json:"took_seconds"` // seconds
	Stages []builtStage `json:"stages"`
}

type builtStage struct {
	Stage string  `json:"stage"`
	Took  float64 `json:"took_seconds"`
}

func (a *app) imageBuild() *cobra.Command {
	var o image.BuildOptions
	c := &cobra.Command{
		Use: "build NAME...", Short: "Build images from their recipes",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "NAME is missing")
			}
			return nil
		},
		Long: `Builds images with mmdebstrap, on this host and as root, and stores them in the state
directory. No server is needed; a running one sees a new image at once. An image that
is up to date is not built again. Two images are built at a time; if one fails, the
others are still built.

Recipes are searched in ./images, DIR/recipes, /usr/share/muster/images and among those
that ship with Muster.`,
		Example: `  muster image build hpc --state /var/lib/muster
  muster image build hpc raw hpc-12 -o json
  muster image build raw --refresh`,
	}
	state := c.Flags().String("state", "", "state directory (default: that of the server named by --server)")
	c.Flags().BoolVar(&o.Refresh, "refresh", false, "rebuild with newer packages even if the recipe did not change")
	c.Flags().StringVar(&o.Mirror, "mirror", "", "package mirror to build from")
	c.Flags().IntVar(&o.Level, "compression-level", 0, "zstd compression level, 1 to 22")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := a.checkOutput(); err != nil {
			return err
		}
		dir, err := a.stateDir(*state)
		if err != nil {
			return err
		}
		return a.runBuilds(c.Context(), dir, args, o)
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

// buildsAtOnce is how many images are built at a time: most of installing
// packages is one core's work, and the mirror does the rest.
const buildsAtOnce = 2

// runBuilds builds images. Every recipe is read before the first is built.
func (a *app) runBuilds(ctx context.Context, dir string, names []string, o image.BuildOptions) error {
	shelves := []fs.FS{os.DirFS("images"), os.DirFS(filepath.Join(dir, "recipes")), os.DirFS("/usr/share/muster/images")}
	book := image.NewBook(append(shelves, a.env.Recipes...)...)
	var recipes []*image.Recipe
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		recipe, err := book.Load(name)
		if err != nil {
			return err
		}
		recipes = append(recipes, recipe)
	}
	store, err := openImages(dir)
	if err != nil {
		return err
	}
	tell := &buildTeller{app: a, live: newLiveLine(a, a.output == ""), now: map[string]image.Progress{}}
	o.Progress = tell.progress
	done, errs := make([]*built, len(recipes)), make([]error, len(recipes))
	var all errgroup.Group
	all.SetLimit(buildsAtOnce)
	for i, recipe := range recipes {
		all.Go(func() error {
			result, err := store.Build(ctx, recipe, o)
			if errs[i] = err; err == nil {
				done[i] = buildResult(result)
			}
			tell.end(recipe.Name, done[i])
			return nil
		})
	}
	_ = all.Wait()
	if a.output != "" {
		list := slices.DeleteFunc(done, func(b *built) bool { return b == nil })
		if err := a.print(list, func(io.Writer) {}); err != nil {
			return err
		}
	}
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) < 2 || ctx.Err() != nil {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		a.report(err)
	}
	return &StatusError{Status: ExitCode(failed[0])}
}

func buildResult(r *image.Result) *built {
	out := &built{Image: imageView(r.Image), Built: r.Built, Took: r.Took.Seconds(), Stages: []builtStage{}}
	out.Image.Newest = true
	for _, s := range r.Stages {
		out.Stages = append(out.Stages, builtStage{s.Stage, s.Took.Seconds()})
	}
	return out
}

// buildTeller tells each stage of each build once, and on a terminal how far
// they are.
type buildTeller struct {
	app  *app
	mu   sync.Mutex
	live *liveLine
	now  map[string]image.Progress // of the builds that go on
}

func (b *buildTeller) progress(p image.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, known := b.now[p.Image]
	b.now[p.Image] = p
	if b.app.output == "" && (!known || last.Stage != p.Stage) {
		b.live.clear()
		fmt.Fprintf(b.app.env.Out, "%7.1fs  %s %s\n", p.Elapsed.Seconds(), clean(p.Image), clean(p.Stage))
	}
	b.draw()
}

// draw shows the builds that go on in the last line of the terminal.
func (b *buildTeller) draw() {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(b.now)) {
		p := b.now[name]
		text := fmt.Sprintf("%s: %s, %s", p.Image, p.Stage, age(p.Elapsed))
		if p.ETA > 0 {
			text += ", about " + age(p.ETA) + " left"
		}
		parts = append(parts, text)
	}
	if len(parts) > 0 {
		b.live.set(strings.Join(parts, "; "))
	}
}

// end reports how a build ended; result is nil when it failed.
func (b *buildTeller) end(name string, result *built) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live.clear()
	delete(b.now, name)
	if result != nil && b.app.output == "" {
		writeBuilt(b.app.env.Out, result)
	}
	b.draw()
}

func writeBuilt(w io.Writer, b *built) {
	id := muster.ImageID(b.Image.ID).Short()
	if !b.Built {
		fmt.Fprintf(w, "image %s (%s) is there already\n", clean(b.Image.Name), id)
		return
	}
	var parts []string
	for _, s := range b.Stages {
		parts = append(parts, fmt.Sprintf("%s %.1f", s.Stage, s.Took))
	}
	fmt.Fprintf(w, "image %s (%s): %s, %s, built in %.1fs\n  %s, seconds: %s\n", clean(b.Image.Name), id,
		size(b.Image.Size), plaintext.Count(b.Image.Packages, "package"), b.Took, clean(b.Image.Name), strings.Join(parts, ", "))
}
