package controltest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/wire"
)

// Images are the manifests of hpc and raw, without files.
type Images struct {
	mu     sync.Mutex
	list   []*muster.Image
	askers map[muster.ImageID][]string
	pins   map[muster.ImageID]image.Pin
	lacks  []string
	// Rule is that by which contents were pruned last, if any were.
	Rule *image.KeepVersions
}

// NewImages gives hpc (with Slurm) and raw (whose users are root).
func NewImages() *Images {
	manifest := func(name, digit, slurm string, root bool) *muster.Image {
		return &muster.Image{
			Format: 1, ID: muster.ImageID("sha256:" + strings.Repeat(digit, 64)), Name: name, Recipe: strings.Repeat(digit, 64),
			Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Architecture: "amd64", Distribution: "debian", Suite: "trixie",
			System: "Debian GNU/Linux 13 (trixie)", Slurm: slurm, UserRoot: root,
			Files: []muster.ImageFile{{Role: muster.FileRoot, Name: "root.squashfs", Size: 1 << 20, SHA256: strings.Repeat(digit, 64)}},
			Agent: muster.VersionRange{Min: 1, Max: 1}, Packages: []muster.ImagePackage{{Name: "base-files", Version: "13.8", Architecture: "amd64"}},
		}
	}
	return &Images{list: []*muster.Image{manifest("hpc", "a", "24.11.5", false), manifest("raw", "b", "", true)}}
}

// List lists the manifests.
func (i *Images) List() ([]*muster.Image, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.list), nil
}

// Names maps names to IDs: those of the newest.
func (i *Images) Names() map[string]muster.ImageID {
	out := map[string]muster.ImageID{}
	for _, v := range slices.Backward(i.versions("")) {
		out[v.Name] = v.ID
	}
	return out
}

func (i *Images) versions(name string) []image.Version {
	list, _ := i.List()
	var out []image.Version
	for _, img := range list {
		if v, is := image.VersionOf(img); is && (name == "" || v.Name == name) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, image.ByAge)
	return out
}

// Resolve finds by name, ID or version.
func (i *Images) Resolve(ref string) (*muster.Image, error) {
	id := i.Names()[ref]
	v, versioned, err := muster.ParseImageVersion(ref)
	if err == nil && versioned {
		id, err = image.ChooseVersion(v, i.versions(v.Name), i.Names()[v.Name], time.Now())
	}
	if err != nil {
		return nil, err
	}
	list, _ := i.List()
	for _, img := range list {
		if img.ID == id || string(img.ID) == ref || id == "" && img.Name == ref {
			return img, nil
		}
	}
	return nil, muster.Errorf(muster.ENotFound, "no image is called %q", ref).Because(muster.ReasonNoSuchImage).WithHint("there is hpc, raw")
}

// ResolveForUse is Resolve: nothing is removed here by itself.
func (i *Images) ResolveForUse(ref string) (*muster.Image, error) { return i.Resolve(ref) }

// Contains is true of all files but those of Lacks.
func (i *Images) Contains(_ muster.ImageID, path string) (there, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !slices.Contains(i.lacks, path), true
}

// Lack has all images lack a file.
func (i *Images) Lack(path string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lacks = append(i.lacks, path)
}

// Versions are the contents of an image, the newest first.
func (i *Images) Versions(name string) ([]*muster.Image, error) {
	var out []*muster.Image
	for _, v := range i.versions(name) {
		img, err := i.Resolve(string(v.ID))
		if err != nil {
			return nil, err
		}
		out = append(out, img)
	}
	return out, nil
}

// Content adds a content of an image that was built then, with these versions of packages
// beside what the image has, and returns it. packages are names and versions in turn.
func (i *Images) Content(name string, built time.Time, packages ...string) *muster.Image {
	from, err := i.Resolve(name)
	if err != nil {
		panic(err) // a test's mistake
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	m := *from
	m.Created = built
	m.ID = muster.ImageID(fmt.Sprintf("sha256:c0ffee%02x%056x", len(i.list), 0))
	m.Packages = slices.Clone(m.Packages)
	for n := 0; n+1 < len(packages); n += 2 {
		m.Packages = append(m.Packages, muster.ImagePackage{Name: packages[n], Version: packages[n+1], Architecture: "amd64"})
	}
	i.list = append(i.list, &m)
	return &m
}

// Pins are all that is pinned.
func (i *Images) Pins() (map[muster.ImageID]image.Pin, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.pins), nil
}

// Pin pins.
func (i *Images) Pin(id muster.ImageID, p image.Pin) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pins == nil {
		i.pins = map[muster.ImageID]image.Pin{}
	}
	i.pins[id] = p
	return nil
}

// Unpin ends that.
func (i *Images) Unpin(id muster.ImageID) (bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, was := i.pins[id]
	delete(i.pins, id)
	return was, nil
}

// PruneVersions removes all contents that nobody uses, and that no name means.
func (i *Images) PruneVersions(ctx context.Context, k image.KeepVersions, users image.Users) (gone []muster.Image, _ error) {
	names := i.Names()
	for _, v := range i.versions("") {
		img, err := i.Resolve(string(v.ID))
		if err != nil {
			return gone, err
		}
		if names[v.Name] != v.ID && i.Remove(ctx, v.ID, users) == nil {
			gone = append(gone, *img)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Rule = &k
	return gone, nil
}

// Change changes what an image is.
func (i *Images) Change(name string, f func(*muster.Image)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, img := range i.list {
		if img.Name == name {
			c := *img
			f(&c)
			i.list[n] = &c
		}
	}
}

// Askers are what Derive said.
func (i *Images) Askers() map[muster.ImageID][]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.askers
}

// Derive adds what an image is with more packages, which projects asked for.
func (i *Images) Derive(base string, packages []string, projects ...string) *muster.Image {
	from, err := i.Resolve(base)
	if err != nil {
		panic(err) // a test's mistake
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	m := *from
	m.Base, m.Added = from.ID, packages
	m.ID = muster.ImageID(fmt.Sprintf("sha256:%064x", len(i.list)))
	i.list = append(i.list, &m)
	if i.askers == nil {
		i.askers = map[muster.ImageID][]string{}
	}
	i.askers[m.ID] = projects
	return &m
}

// Verify finds every image right.
func (i *Images) Verify(_ context.Context, id muster.ImageID) (*muster.Image, error) {
	return i.Resolve(string(id))
}

// Remove removes an image that nobody uses.
func (i *Images) Remove(ctx context.Context, id muster.ImageID, users image.Users) error {
	used, err := users.ImageUsers(ctx, id)
	if err != nil {
		return err
	}
	if len(used) > 0 {
		return muster.Errorf(muster.EConflict, "the image is in use by %s", strings.Join(used, ", ")).Because(muster.ReasonImageInUse).WithHint("delete them first")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.list = slices.DeleteFunc(i.list, func(img *muster.Image) bool { return img.ID == id })
	return nil
}

// Agents know of no node but what a test puts here.
type Agents struct {
	mu      sync.Mutex
	Samples map[muster.MachineID][]wire.Usage
	journal
	At map[muster.MachineID]time.Time
	// Topologies are how machines are built.
	Topologies map[muster.MachineID]*muster.Topology
}

// Seen is what At says.
func (a *Agents) Seen(id muster.MachineID) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.At[id]
}

// Usage is the newest n of Samples.
func (a *Agents) Usage(id muster.MachineID, n int) []wire.Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.Samples[id]
	return list[max(0, len(list)-n):]
}

// Topology is what PutTopology set.
func (a *Agents) Topology(id muster.MachineID) (*muster.Topology, time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Topologies[id], a.At[id]
}

// PutTopology sets how a machine is built.
func (a *Agents) PutTopology(id muster.MachineID, t *muster.Topology) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Topologies == nil {
		a.Topologies = map[muster.MachineID]*muster.Topology{}
	}
	a.Topologies[id] = t
}

// PutUsage sets the samples of a machine.
func (a *Agents) PutUsage(id muster.MachineID, samples ...wire.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Samples == nil {
		a.Samples = map[muster.MachineID][]wire.Usage{}
	}
	a.Samples[id] = samples
}

// Dialer connects to what a test says; without, to nothing.
type Dialer struct {
	mu   sync.Mutex
	to   func(muster.Machine) (net.Conn, error)
	Last muster.MachineID
}

// To sets what is dialed.
func (d *Dialer) To(f func(muster.Machine) (net.Conn, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = f
}

// Dial calls what To set.
func (d *Dialer) Dial(_ context.Context, m muster.Machine, _ int) (net.Conn, error) {
	d.mu.Lock()
	f := d.to
	d.Last = m.ID
	d.mu.Unlock()
	if f == nil {
		return nil, muster.Errorf(muster.EUnavailable, "nobody answers")
	}
	return f(m)
}
