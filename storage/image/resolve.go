package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
)

// A prefix of an ID needs six digits: fewer are a slip of the finger.
var idPrefix = regexp.MustCompile(`^[0-9a-f]{6,64}$`)

// looksLikeID keeps recipes from having names that hide a content ID.
func looksLikeID(name string) bool {
	return idPrefix.MatchString(name) || strings.HasPrefix(name, "sha256")
}

// alias is what a recipe's name means now.
type alias struct {
	ID     muster.ImageID `json:"id"`
	Recipe string         `json:"recipe"` // hash that it was built from
	Built  time.Time      `json:"built"`
}

const aliasDoc document.Kind[alias] = "image-name/1"

func (s *Store) aliasPath(name string) string { return filepath.Join(s.dir, "names", name+".json") }

// alias reads what a name means; ok is false when it means nothing. A damaged
// alias means nothing too, nor does one of another version: building writes a new one.
func (s *Store) alias(name string) (a alias, ok bool) {
	if !recipeName.MatchString(name) {
		return alias{}, false
	}
	data, err := os.ReadFile(s.aliasPath(name))
	if err == nil {
		a, err = aliasDoc.Decode(s.aliasPath(name), data)
	}
	if err != nil || !hexDigest.MatchString(a.ID.Hex()) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("reading image name failed", "name", name, "error", err)
		}
		return alias{}, false
	}
	return a, true
}

func (s *Store) setAlias(name string, a alias) error {
	data, err := aliasDoc.Encode(&a)
	if err != nil {
		return err
	}
	return atomicfile.Replace(s.aliasPath(name), data, 0o600)
}

// Names maps each name to the image that it means now.
func (s *Store) Names() map[string]muster.ImageID {
	out := map[string]muster.ImageID{}
	files, _ := filepath.Glob(filepath.Join(s.dir, "names", "*.json")) // only a bad pattern fails
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		if a, ok := s.alias(name); ok {
			out[name] = a.ID
		}
	}
	return out
}

// Resolve finds an image by name, content ID, or an unambiguous beginning of at
// least six digits of its content ID, or one of its versions as
// muster.ParseImageVersion reads them. It returns ENotFound, with the name that
// may have been meant or the oldest version, and EInvalid when several IDs begin so.
func (s *Store) Resolve(ref string) (*muster.Image, error) {
	if v, ok, err := muster.ParseImageVersion(ref); err != nil {
		return nil, err
	} else if ok {
		id, err := s.resolveVersion(v)
		if err != nil {
			return nil, err
		}
		return s.Show(id)
	}
	if a, ok := s.alias(ref); ok {
		return s.Show(a.ID)
	}
	hex := strings.ToLower(strings.TrimPrefix(ref, "sha256:"))
	if idPrefix.MatchString(hex) {
		ids, err := s.ids()
		if err != nil {
			return nil, err
		}
		ids = slices.DeleteFunc(ids, func(id muster.ImageID) bool { return !strings.HasPrefix(id.Hex(), hex) })
		switch len(ids) {
		case 0:
		case 1:
			return s.Show(ids[0])
		default:
			return nil, muster.Errorf(muster.EInvalid, "%d images begin with %s", len(ids), clip(hex)).Because(muster.ReasonAmbiguous).WithHint("give more digits")
		}
	}
	return nil, s.unknown(ref)
}

// unknown says that there is no such image, and which one may have been meant.
func (s *Store) unknown(ref string) error {
	names := s.Names()
	var known []string
	for n := range names {
		known = append(known, n)
	}
	slices.Sort(known)
	e := muster.Errorf(muster.ENotFound, "there is no image %q", clip(ref)).Because(muster.ReasonNoSuchImage)
	switch hint := didYouMean(ref, known); {
	case hint != "":
		return e.WithHint("%s", hint)
	case len(known) > 0:
		return e.WithHint("images here: %s; build another: muster image build NAME", strings.Join(known, ", "))
	}
	return e.WithHint("there is none yet; build one: muster image build NAME")
}
