package daemon

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/storage/image"
)

// catalog is the image store. Where all machines only pretend, the images of
// the recipes pretend too: nothing has to be built to try Muster out.
type catalog struct {
	*image.Store
	pretend bool
}

func pretended() []*muster.Image {
	image := func(digit, name, slurm string) *muster.Image {
		return &muster.Image{
			ID: muster.ImageID("sha256:" + strings.Repeat(digit, 64)), Name: name, Summary: "pretends to be " + name,
			Architecture: "amd64", Distribution: "debian", System: "none", Slurm: slurm, UserRoot: slurm == "",
			Agent: muster.VersionRange{Min: 1, Max: 1},
		}
	}
	return []*muster.Image{image("1", "hpc", "24.11.5"), image("2", "hpc-12", "22.05.8"), image("3", "raw", "")}
}

func pretendedNames() []string {
	var names []string
	for _, p := range pretended() {
		names = append(names, p.Name)
	}
	return names
}

// Resolve finds an image by name, ID or the beginning of an ID, or by its version.
func (c catalog) Resolve(ref string) (*muster.Image, error) {
	return c.orPretended(ref, c.Store.Resolve)
}

// ResolveForUse is that for whoever is about to use it.
func (c catalog) ResolveForUse(ref string) (*muster.Image, error) {
	return c.orPretended(ref, c.Store.ResolveForUse)
}

func (c catalog) orPretended(ref string, resolve func(string) (*muster.Image, error)) (*muster.Image, error) {
	m, err := resolve(ref)
	if err == nil || !c.pretend {
		return m, err
	}
	v, versioned, _ := muster.ParseImageVersion(ref)
	for _, p := range pretended() {
		if ref == p.Name || ref == string(p.ID) || versioned && v.Name == p.Name && strings.HasPrefix(p.ID.Hex(), v.Content) {
			return p, nil
		}
	}
	if list, failed := c.Store.List(); failed == nil && len(list) == 0 && muster.CodeOf(err) == muster.ENotFound {
		e := muster.Errorf(muster.ENotFound, "there is no image %q", ref).Because(muster.ReasonNoSuchImage)
		if meant := suggest.Of(ref, pretendedNames()); meant != "" {
			return nil, e.WithHint("did you mean %q?", meant)
		}
		return nil, e.WithHint("simulated machines run hpc, hpc-12 or raw")
	}
	return m, err
}

// Versions lists the contents of an image.
func (c catalog) Versions(name string) ([]*muster.Image, error) {
	list, err := c.Store.Versions(name)
	if err == nil && len(list) == 0 && c.pretend {
		list = slices.DeleteFunc(pretended(), func(m *muster.Image) bool { return m.Name != name })
	}
	return list, err
}

// List lists the images.
func (c catalog) List() ([]*muster.Image, error) {
	list, err := c.Store.List()
	if c.pretend && len(list) == 0 {
		list = pretended()
	}
	return list, err
}

// Names reports what each name means now.
func (c catalog) Names() map[string]muster.ImageID {
	names := c.Store.Names()
	if c.pretend && len(names) == 0 {
		names = map[string]muster.ImageID{}
		for _, p := range pretended() {
			names[p.Name] = p.ID
		}
	}
	return names
}

// clusterImages gives converge the image of a cluster: the one it names,
// verified, or the derived one with its extra packages.
type clusterImages struct {
	catalog
	users image.Users
	keep  func() *image.Keep
}

// Resolve may take minutes, when packages are to be installed.
func (i clusterImages) Resolve(ctx context.Context, c muster.Cluster) (muster.ImageID, error) {
	ref := string(c.Image)
	if ref == "" {
		ref = c.Spec.Image
	}
	base, err := i.catalog.Resolve(ref)
	if err != nil {
		return "", err
	}
	if len(c.Spec.Packages) == 0 || base.Base != "" {
		return base.ID, nil
	}
	derived, err := i.Derive(ctx, base.ID, c.Spec.Packages, image.BuildOptions{For: image.Asker{Project: c.Spec.Project, Keep: *i.keep(), Users: i.users}})
	if err != nil {
		return "", err
	}
	return derived.Image.ID, nil
}

// saveRoot makes images of nodes' roots; nil where all machines are simulated.
func (s *Server) saveRoot() func(context.Context, image.SaveOptions, io.Reader) (*muster.Image, image.TreeChanges, error) {
	if s.catalog.pretend {
		return nil
	}
	return s.images.Save
}

// boundBuilds bounds what scripts of packages take of this host while images are built.
// A server that is not root builds none.
func (s *Server) boundBuilds(ctx context.Context) image.Option {
	if os.Geteuid() != 0 {
		return image.WithBounds(nil)
	}
	room, err := local.OpenWorkroom(ctx, s.instance)
	if err != nil {
		s.log.Warn("image builds not limited: control group failed", "error", err, "hint", "run `muster doctor`")
		return image.WithBounds(nil)
	}
	s.closes(room.Close)
	return image.WithBounds(room.Bound)
}
