package image

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	muster "github.com/muster-hpc/muster"
)

const (
	manifestFile = "manifest.json"
	rootFile     = "root.squashfs"
	modulesFile  = "modules.tar"
)

// Store keeps images below one directory, each in a directory that has the
// name of its content ID:
//
//	HEX/root.squashfs, manifest.json and, where the recipe has a kernel, vmlinuz, initrd.img, modules.tar
//	names/NAME.json    what a recipe's name means now
//	pinned/HEX.json    what stays whatever the site's rule says
//	derived/KEY.json   which image a base with more packages became, and who asked for it
//	verified/HEX.json  which bytes were found to be right
//	timings.json       how long builds took
//	cache/             downloaded packages
//	tmp/, locks/, logs/
//
// Any number of processes may use one store at a time.
type Store struct {
	dir   string
	log   *slog.Logger
	clock muster.Clock
	tools tools

	mu        sync.Mutex
	manifests map[muster.ImageID]knownVersion // what manifests said
	asked     map[muster.ImageID]time.Time    // when somebody was about to use it
	contents  map[inside]bool                 // which files are in which root
}

// Option changes how a Store works.
type Option func(*Store)

// WithBounds limits every build that runs programs of packages: bound puts a
// process into a control group, with all that it will start, and leave ends what is
// left of them.
func WithBounds(bound func(pid int) (leave func() error, err error)) Option {
	return func(s *Store) { s.tools.bound = bound }
}

// WithClock replaces the system's clock.
func WithClock(c muster.Clock) Option { return func(s *Store) { s.clock = c } }

// Open opens the store in dir, makes it if it is not there, and removes what
// killed builders left. log may be nil.
func Open(dir string, log *slog.Logger, options ...Option) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "image store %s: %v", dir, err).Wrap(err)
	}
	s := &Store{dir: abs, log: log, clock: muster.SystemClock{}, tools: hostTools(), asked: map[muster.ImageID]time.Time{}}
	for _, o := range options {
		o(s)
	}
	for _, sub := range []string{"", "names", "pinned", "derived", "verified", "cache", "tmp", "locks", "logs"} {
		if err := os.MkdirAll(filepath.Join(abs, sub), 0o700); err != nil {
			return nil, storeError("open the image store", err)
		}
	}
	s.sweep()
	return s, nil
}

// Dir is the directory of the store.
func (s *Store) Dir() string { return s.dir }

// Path is where an image lies, whether it is there or not.
func (s *Store) Path(id muster.ImageID) string { return filepath.Join(s.dir, id.Hex()) }

// Show reads one manifest. It returns ENotFound when the image is absent and
// ECorrupt when the manifest cannot be right.
func (s *Store) Show(id muster.ImageID) (*muster.Image, error) {
	if !hexDigest.MatchString(id.Hex()) {
		return nil, muster.Errorf(muster.EInvalid, "%q is not a content ID", clip(string(id))).Because(muster.ReasonBadValue)
	}
	data, err := os.ReadFile(filepath.Join(s.Path(id), manifestFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, muster.Errorf(muster.ENotFound, "image %s is not in the store", id.Short()).Because(muster.ReasonNoSuchImage).
			WithHint("see what is there: muster image list")
	case err != nil:
		return nil, storeError("read the manifest of image "+id.Short(), err)
	}
	m, err := DecodeManifest(data)
	if err != nil {
		return nil, err
	}
	if m.ID != muster.ImageID("sha256:"+id.Hex()) {
		return nil, muster.Errorf(muster.ECorrupt, "image %s has the manifest of image %s", id.Short(), m.ID.Short()).Because(muster.ReasonImageDamaged).
			WithHint("remove it and build it again")
	}
	return m, nil
}

// List returns all images whose manifest can be read, newest first. Broken ones
// are logged and left out.
func (s *Store) List() ([]*muster.Image, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	var out []*muster.Image
	for _, id := range ids {
		m, err := s.Show(id)
		if err != nil {
			s.log.Warn("image skipped", "image", id.Short(), "error", err)
			continue
		}
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b *muster.Image) int { return b.Created.Compare(a.Created) })
	return out, nil
}

// ids lists the image directories, sorted.
func (s *Store) ids() ([]muster.ImageID, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, storeError("list images", err)
	}
	var ids []muster.ImageID
	for _, e := range entries {
		if e.IsDir() && hexDigest.MatchString(e.Name()) {
			ids = append(ids, muster.ImageID("sha256:"+e.Name()))
		}
	}
	return ids, nil
}
