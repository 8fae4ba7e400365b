package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// HostPath keeps volumes as directories of the server, which machines of this
// server mount with their own mapping of owners.
type HostPath struct {
	dir string
	mu  sync.Mutex // of choosing numbers for quotas
}

// NewHostPath keeps volumes below dir, which is made when the first one is.
func NewHostPath(dir string) *HostPath {
	return &HostPath{dir: dir}
}

var idForm = regexp.MustCompile(`^v-[a-z0-9]{10}$`)

// IsID reports whether a text is the ID of a volume.
func IsID(s string) bool { return idForm.MatchString(s) }

// path of a volume. Whatever a record says, it lies below the directory.
func (h *HostPath) path(id muster.VolumeID) (string, error) {
	if !IsID(string(id)) {
		return "", muster.Errorf(muster.EInternal, "%.40q is not the ID of a volume", id)
	}
	return filepath.Join(h.dir, string(id)), nil
}

// part is one directory of a volume.
type part struct {
	name, target string
	mode         uint32
	head, seed   bool
}

func partsOf(kind muster.VolumeKind) []part {
	switch kind {
	case muster.VolumeHome:
		return []part{{name: "home", target: HomeTarget, mode: 0o755}}
	case muster.VolumeScheduler:
		return []part{
			{name: "slurm", target: slurmTarget, mode: 0o755, head: true, seed: true},
			{name: "mysql", target: databaseTarget, mode: 0o755, head: true, seed: true},
		}
	}
	// Everybody in the project may add to its data and change what is theirs.
	return []part{{name: "data", mode: 0o1777}}
}

// Create makes the directories of a volume. The one above them is closed to
// everybody: a setuid program that root of a node leaves in a volume must not
// be reachable on the host.
func (h *HostPath) Create(_ context.Context, v muster.Volume) (enforced bool, err error) {
	at, err := h.path(v.ID)
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return false, cannot("made", v, err)
	}
	if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, cannot("made", v, err)
	}
	// Before anything is in it: what is made later inherits its project.
	enforced, err = h.limit(at, v)
	if err != nil {
		return false, cannot("limited", v, err)
	}
	for _, p := range partsOf(v.Kind) {
		if err := makePart(filepath.Join(at, p.name), p.mode); err != nil {
			return false, cannot("made", v, err)
		}
	}
	return enforced, nil
}

// makePart makes a directory with its mode, in one step for whoever looks. The
// mode of one that exists is its users' business.
func makePart(at string, mode uint32) error {
	if st, err := os.Lstat(at); err == nil {
		if !st.IsDir() {
			return fmt.Errorf("%s is not a directory", filepath.Base(at))
		}
		return nil
	}
	made := at + ".new"
	if err := os.Mkdir(made, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := unix.Chmod(made, mode); err != nil {
		return err
	}
	return os.Rename(made, at)
}

// Mounts are binds of the volume's directories.
func (h *HostPath) Mounts(v muster.Volume, target string, readOnly bool) ([]Mount, error) {
	at, err := h.path(v.ID)
	if err != nil {
		return nil, err
	}
	var out []Mount
	for _, p := range partsOf(v.Kind) {
		s := &BindMount{Path: filepath.Join(at, p.name), Target: p.target, ReadOnly: readOnly, Seed: p.seed}
		if s.Target == "" {
			s.Target = target
		}
		out = append(out, Mount{Share: s, HeadOnly: p.head})
	}
	return out, nil
}

// Entries lists the directories that there are, each named as its volume. What
// belongs to no volume on record is nobody's to erase.
func (h *HostPath) Entries() ([]string, error) {
	names, err := h.names()
	for i, n := range names {
		names[i] = filepath.Join(h.dir, n)
	}
	return names, err
}

func (h *HostPath) names() ([]string, error) {
	d, err := os.Open(h.dir)
	if err != nil {
		return nil, ignoreAbsent(err)
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func cannot(done string, v muster.Volume, err error) error {
	return muster.Errorf(muster.EUnavailable, "volume %s cannot be %s", v.Name, done).Because(muster.ReasonVolumeFailed).
		WithHint("an administrator finds the reason in the server's log; is the disk full?").Wrap(err)
}
