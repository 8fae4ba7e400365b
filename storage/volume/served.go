package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// ManagedNFS keeps volumes that machines elsewhere mount from this server. Each has a
// file system of its own, in a file: a made-up file handle leads to nothing but the
// volume, and its size holds everywhere. Machines of this server mount the same
// directories.
//
// A volume that a server without root made has its directories beside each other
// instead. Machines of this server go on using it, others cannot have it.
type ManagedNFS struct {
	*HostPath
	making sync.Mutex // one at a time: they are quick, and must not meet
}

// NewManagedNFS keeps volumes below dir, beside those of a HostPath.
func NewManagedNFS(dir string) *ManagedNFS { return &ManagedNFS{HostPath: NewHostPath(dir)} }

// In the directory of a volume.
const (
	imageName = "image"
	rootName  = "fs"
)

// Create makes the file system of a volume and mounts it, also after a start of the
// host. A volume that is to be larger grows, at once where the kernel lets it and
// otherwise when it is mounted next; one that is to be smaller stays, and its size is a
// wish.
func (s *ManagedNFS) Create(ctx context.Context, v muster.Volume) (enforced bool, err error) {
	at, err := s.path(v.ID)
	if err != nil {
		return false, err
	}
	s.making.Lock()
	defer s.making.Unlock()
	if plain(at, v.Kind) {
		return s.HostPath.Create(ctx, v)
	}
	for _, dir := range []string{s.dir, at, filepath.Join(at, rootName)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false, cannot("made", v, err)
		}
	}
	size, err := s.room(v)
	if err != nil {
		return false, cannot("made", v, err)
	}
	had, err := makeImage(ctx, filepath.Join(at, imageName), size)
	if err != nil {
		return false, cannot("made", v, err)
	}
	root := filepath.Join(at, rootName)
	if err := mountImage(ctx, filepath.Join(at, imageName), root); err != nil {
		return false, cannot("mounted", v, err)
	}
	if v.Quota > 0 {
		if err := growImage(ctx, filepath.Join(at, imageName), root, had, size); err != nil {
			return false, cannot("made larger", v, err)
		}
	}
	for _, p := range partsOf(v.Kind) {
		if err := makePart(filepath.Join(root, p.name), p.mode); err != nil {
			return false, cannot("made", v, err)
		}
	}
	return v.Quota > 0 && had <= size, nil
}

// plain reports whether a server without root made the volume.
func plain(at string, kind muster.VolumeKind) bool {
	for _, p := range partsOf(kind) {
		if st, err := os.Lstat(filepath.Join(at, p.name)); err == nil && st.IsDir() {
			return true
		}
	}
	return false
}

// What file systems are given, in bytes. One without a bound gets as much as the disk
// has: it takes what is written only.
const (
	leastImage = 16 << 20
	wholeBlock = 1 << 20
)

func (s *ManagedNFS) room(v muster.Volume) (int64, error) {
	size := v.Quota
	if size <= 0 {
		var disk unix.Statfs_t
		if err := unix.Statfs(s.dir, &disk); err != nil {
			return 0, err
		}
		size = int64(disk.Blocks) * disk.Bsize
	}
	return max(leastImage, (size+wholeBlock-1)/wholeBlock*wholeBlock), nil
}

// Mounts are binds for machines of this server, and exports for others.
func (s *ManagedNFS) Mounts(v muster.Volume, target string, readOnly bool) ([]Mount, error) {
	list, err := s.HostPath.Mounts(v, target, readOnly)
	if err != nil {
		return nil, err
	}
	at, _ := s.path(v.ID)
	if plain(at, v.Kind) {
		return list, nil
	}
	for i, p := range partsOf(v.Kind) {
		list[i].Share.Path = filepath.Join(at, rootName, p.name)
		list[i].Export = &Export{Name: string(v.ID) + "-" + p.name, Path: list[i].Share.Path, Cluster: v.Cluster}
	}
	return list, nil
}

// Usage is what the file system says.
func (s *ManagedNFS) Usage(ctx context.Context, v muster.Volume) (bytes int64, part bool, err error) {
	at, err := s.path(v.ID)
	if err != nil {
		return 0, false, err
	}
	root := filepath.Join(at, rootName)
	if plain(at, v.Kind) {
		return s.HostPath.Usage(ctx, v)
	}
	on, err := isMountPoint(root)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !on {
		return 0, false, muster.Errorf(muster.ENotFound, "volume %s is not mounted", v.Name).Because(muster.ReasonVolumeGone)
	}
	var st unix.Statfs_t
	if err == nil {
		err = unix.Statfs(root, &st)
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize, false, err
}

// Erase removes a volume with its file system. It must not be in use: neither
// exported nor mounted by a machine.
func (s *ManagedNFS) Erase(ctx context.Context, v muster.Volume) error {
	at, err := s.path(v.ID)
	if err != nil {
		return err
	}
	s.making.Lock()
	defer s.making.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.unmount(ctx, at); err != nil {
		return cannot("erased", v, err)
	}
	return s.HostPath.Erase(ctx, v)
}

// unmount tries for a moment: a program that this process starts holds what is open
// here until it runs.
func (s *ManagedNFS) unmount(ctx context.Context, at string) error {
	root := filepath.Join(at, rootName)
	for left := 40; ; {
		on, err := isMountPoint(root)
		if err != nil || !on {
			return ignoreAbsent(err)
		}
		err = unix.Unmount(root, unix.UMOUNT_NOFOLLOW)
		if left--; err != nil && (left == 0 || !errors.Is(err, unix.EBUSY)) {
			return fmt.Errorf("unmount %s: %w", root, err)
		}
		if err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-muster.SystemClock{}.After(25 * time.Millisecond):
		}
	}
}

// Unmount unmounts all volumes, and tells of the ones that are in use. It is for who
// takes a server away; a server that merely ends leaves them.
func (s *ManagedNFS) Unmount(ctx context.Context) error {
	s.making.Lock()
	defer s.making.Unlock()
	list, err := s.Entries()
	for _, at := range list {
		err = errors.Join(err, s.unmount(ctx, at))
	}
	return err
}
