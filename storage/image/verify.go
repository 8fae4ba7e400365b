package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
)

// Verify reads every byte of an image and compares it with the manifest. It
// returns ECorrupt when a file is missing, of the wrong size or of the wrong
// digest.
func (s *Store) Verify(ctx context.Context, id muster.ImageID) (*muster.Image, error) {
	m, err := s.Show(id)
	if err != nil {
		return nil, err
	}
	if err := s.checkContext(ctx, m, readAlways); err != nil {
		return nil, err
	}
	return m, nil
}

// OpenForBoot returns the manifest and the open root file system of an image,
// and refuses it with ECorrupt when its bytes are not those of the manifest. The
// caller closes the file.
//
// A digest is taken once per state of a file: (device, inode, size, change
// time, modification time). This is sound against everything that writes
// through the file system, because each write moves the change time and no call
// sets that; the file is only root's, read-only, and in a directory that is
// only root's. It does not notice bytes that rot on the disk: Verify does, and
// squashfs answers with an I/O error for a block that no longer decompresses.
// Who can forge the note in verified/ could as well replace the manifest.
func (s *Store) OpenForBoot(ctx context.Context, id muster.ImageID) (*muster.Image, *os.File, error) {
	m, err := s.Show(id)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkContext(ctx, m, readUnlessKnown); err != nil {
		return nil, nil, err
	}
	root, _ := m.File(muster.FileRoot) // DecodeManifest saw to it
	f, err := os.Open(filepath.Join(s.Path(id), root.Name))
	if err != nil {
		return nil, nil, storeError("open image "+id.Short(), err)
	}
	// What was opened must be what was checked.
	if now, err := stateOf(f); err != nil || !s.known(m, root, now) {
		_ = f.Close()
		return nil, nil, muster.Errorf(muster.EConflict, "image %s changed while it was opened", id.Short()).Because(muster.ReasonChangedMeanwhile).WithHint("try again")
	}
	return m, f, nil
}

// thoroughness says when check reads bytes.
type thoroughness bool

const (
	readAlways      thoroughness = true
	readUnlessKnown thoroughness = false
)

func (s *Store) check(m *muster.Image, how thoroughness) error {
	return s.checkContext(context.Background(), m, how)
}

func (s *Store) checkContext(ctx context.Context, m *muster.Image, how thoroughness) error {
	states := map[string]fileState{}
	for _, f := range m.Files {
		state, err := s.checkFile(ctx, m, f, how)
		if err != nil {
			if muster.CodeOf(err) == muster.ECorrupt {
				s.forget(m.ID)
			}
			return err
		}
		states[f.Name] = state
	}
	if how == readUnlessKnown && s.allKnown(m, states) {
		return nil
	}
	s.remember(m, states)
	return nil
}

func (s *Store) checkFile(ctx context.Context, m *muster.Image, want muster.ImageFile, how thoroughness) (fileState, error) {
	corrupt := func(format string, args ...any) error {
		return muster.Errorf(muster.ECorrupt, "image %s (%s) is corrupted: "+format, append([]any{m.Name, m.ID.Short()}, args...)...).Because(muster.ReasonImageDamaged).
			WithHint("build it again: muster image build %s", m.Name)
	}
	f, err := os.Open(filepath.Join(s.Path(m.ID), want.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return fileState{}, corrupt("%s is missing", want.Name)
	}
	if err != nil {
		return fileState{}, storeError("read image "+m.ID.Short(), err)
	}
	defer f.Close()
	for range 3 {
		before, err := stateOf(f)
		if err != nil {
			return fileState{}, storeError("read image "+m.ID.Short(), err)
		}
		if before.Size != want.Size {
			return fileState{}, corrupt("%s has %d bytes instead of %d", want.Name, before.Size, want.Size)
		}
		if how == readUnlessKnown && s.known(m, want, before) {
			return before, nil
		}
		// A change in the same tick of the kernel's clock as this stat would
		// not be seen later: let that tick pass first.
		if since := time.Since(before.Changed); since >= 0 && since < clockTick {
			time.Sleep(clockTick - since)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return fileState{}, storeError("read image "+m.ID.Short(), err)
		}
		got, err := sum(ctx, f)
		if ctx.Err() != nil {
			return fileState{}, ctx.Err()
		}
		if err != nil {
			return fileState{}, corrupt("%s cannot be read: %v", want.Name, err)
		}
		if got != want.SHA256 {
			return fileState{}, corrupt("%s has another digest than when it was built", want.Name)
		}
		if after, err := stateOf(f); err == nil && after == before {
			return after, nil
		}
	}
	return fileState{}, muster.Errorf(muster.EConflict, "image %s is being written to while it is read", m.ID.Short()).Because(muster.ReasonChangedMeanwhile).WithHint("find out who writes to the image store")
}

// clockTick is longer than the coarsest file time stamps in use (10 ms).
const clockTick = 20 * time.Millisecond

// sum is the SHA-256 of what r gives.
func sum(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		n, err := r.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
}

// fileState changes whenever a file's bytes are changed.
type fileState struct {
	Device   uint64    `json:"device"`
	Inode    uint64    `json:"inode"`
	Size     int64     `json:"size_bytes"`
	Modified time.Time `json:"modified"` // in UTC, so that == compares it
	Changed  time.Time `json:"changed"`
}

func stateOf(f *os.File) (fileState, error) {
	info, err := f.Stat()
	if err != nil {
		return fileState{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileState{}, errors.New("the file system tells no inode")
	}
	return fileState{
		Device: uint64(st.Dev), Inode: st.Ino, Size: st.Size, //nolint:unconvert // differs between platforms
		Modified: time.Unix(st.Mtim.Unix()).UTC(), Changed: time.Unix(st.Ctim.Unix()).UTC(),
	}, nil
}

// fact is the note that files in these states have these digests.
type fact struct {
	Files map[string]knownFile `json:"files"`
}

const factDoc document.Kind[fact] = "image-verified/1"

type knownFile struct {
	State  fileState `json:"state"`
	SHA256 string    `json:"sha256"`
}

func (s *Store) factPath(id muster.ImageID) string {
	return filepath.Join(s.dir, "verified", id.Hex()+".json")
}

func (s *Store) fact(id muster.ImageID) fact {
	var f fact
	data, err := os.ReadFile(s.factPath(id))
	if err == nil {
		f, err = factDoc.Decode(s.factPath(id), data)
	}
	if err != nil {
		return fact{} // nothing is known: the bytes are read
	}
	return f
}

func (s *Store) known(m *muster.Image, f muster.ImageFile, now fileState) bool {
	k, ok := s.fact(m.ID).Files[f.Name]
	return ok && k.State == now && k.SHA256 == f.SHA256
}

func (s *Store) allKnown(m *muster.Image, states map[string]fileState) bool {
	for _, f := range m.Files {
		if !s.known(m, f, states[f.Name]) {
			return false
		}
	}
	return true
}

func (s *Store) remember(m *muster.Image, states map[string]fileState) {
	f := fact{Files: map[string]knownFile{}}
	for _, file := range m.Files {
		f.Files[file.Name] = knownFile{State: states[file.Name], SHA256: file.SHA256}
	}
	data, err := factDoc.Encode(&f)
	if err == nil {
		err = atomicfile.Replace(s.factPath(m.ID), data, 0o600)
	}
	if err != nil {
		s.log.Warn("saving image verification failed", "image", m.ID.Short(), "error", err)
	}
}

// rememberSound notes a just published image, whose digests were taken from the
// bytes as they were written.
func (s *Store) rememberSound(m *muster.Image) {
	if err := s.check(m, readAlways); err != nil {
		s.log.Error("image verification failed", "image", m.ID.Short(), "error", err)
	}
}

func (s *Store) forget(id muster.ImageID) {
	if err := os.Remove(s.factPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("removing stale image verification failed", "image", id.Short(), "error", err)
	}
}
