package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
)

// Pin says that a content stays whatever the site's rule says.
type Pin struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

const pinDoc document.Kind[Pin] = "image-pin/1"

func (s *Store) pinPath(id muster.ImageID) string {
	return filepath.Join(s.dir, "pinned", id.Hex()+".json")
}

// Pin keeps a content until it is unpinned. Pinning it again changes who and why.
func (s *Store) Pin(id muster.ImageID, p Pin) error {
	unlock, err := s.lock("publish") // nothing is removed meanwhile
	if err != nil {
		return err
	}
	defer unlock()
	m, err := s.Show(id)
	if err != nil {
		return err
	}
	if _, is := VersionOf(m); !is {
		return muster.Errorf(muster.EInvalid, "%s is a derived image or a saved root: only contents of recipes' images are pinned", id.Short()).
			Because(muster.ReasonBadValue).WithHint("`muster image versions %s` lists those of its image", m.Name)
	}
	data, err := pinDoc.Encode(&p)
	if err == nil {
		err = atomicfile.Replace(s.pinPath(id), data, 0o600)
	}
	if err != nil {
		return storeError("pin image "+id.Short(), err)
	}
	return nil
}

// Unpin ends that; was is false where the content was not pinned.
func (s *Store) Unpin(id muster.ImageID) (was bool, err error) {
	unlock, err := s.lock("publish")
	if err != nil {
		return false, err
	}
	defer unlock()
	err = os.Remove(s.pinPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = atomicfile.SyncDir(filepath.Join(s.dir, "pinned"))
	}
	if err != nil {
		return false, storeError("unpin image "+id.Short(), err)
	}
	return true, nil
}

// Pins are all that is pinned.
func (s *Store) Pins() (map[muster.ImageID]Pin, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "pinned"))
	if err != nil {
		return nil, storeError("list pinned images", err)
	}
	out := map[muster.ImageID]Pin{}
	for _, e := range entries {
		hex, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !hexDigest.MatchString(hex) {
			continue
		}
		id := muster.ImageID("sha256:" + hex)
		if p, pinned := s.pin(id); pinned {
			out[id] = p
		}
	}
	return out, nil
}

// pin reads one. A pin that cannot be read is one: nothing is removed by mistake.
func (s *Store) pin(id muster.ImageID) (p Pin, pinned bool) {
	data, err := os.ReadFile(s.pinPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return Pin{}, false
	}
	if err == nil {
		p, err = pinDoc.Decode(s.pinPath(id), data)
	}
	if err != nil {
		s.log.Warn("reading image pin failed", "image", id.Short(), "error", err)
		return Pin{}, true
	}
	return p, true
}
