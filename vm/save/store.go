package save

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Store keeps saved states: the memory of tenants. Its directory is the server's alone, and lies outside of every volume. What
// is written there is encrypted, in blocks that are authentic each and in their order, for a key that only
// the server has.
type Store struct {
	Dir string
	// Quota is how many bytes all states together may have. 0: no bound.
	Quota int64

	mu       sync.Mutex
	promised map[string]int64 // by the beginning of the names of states that are to be written
}

// spare is what a save leaves free of the file system, in bytes.
const spare = 256 << 20

// NewKey is the key of one pause. Who forgets it has erased what was written for it.
func NewKey() (*age.X25519Identity, error) { return age.GenerateX25519Identity() }

const (
	suffix  = ".state"
	partial = ".part"
)

func (s *Store) path(name string) (string, error) {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,127}$`).MatchString(name) {
		return "", fmt.Errorf("%.32q cannot be the name of a state", name)
	}
	return filepath.Join(s.Dir, name+suffix), nil
}

// Used is how many bytes there are of states, those that are being written among them.
func (s *Store) Used() (int64, error) { return s.usedBy("") }

// usedBy is Used for states whose names begin so.
func (s *Store) usedBy(prefix string) (int64, error) {
	list, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	var sum int64
	for _, e := range list {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), prefix) {
			sum += info.Size()
		}
	}
	return sum, err
}

// Promise is Room for states whose names begin so, and keeps that room for them until Settle. A promise for the same names
// takes the place of an older one.
func (s *Store) Promise(prefix string, need int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.promised, prefix)
	if err := s.room(need); err != nil {
		return err
	}
	if s.promised == nil {
		s.promised = map[string]int64{}
	}
	s.promised[prefix] = need
	return nil
}

// Settle ends a promise: what was to be written is, or will not be.
func (s *Store) Settle(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.promised, prefix)
}

// Room refuses a save of machines that have so many bytes of memory together: a state has all of it, at most.
func (s *Store) Room(need int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room(need)
}

// room is Room; the mutex is held.
func (s *Store) room(need int64) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	used, err := s.Used()
	if err != nil {
		return err
	}
	var coming int64 // of promises to others, what is not written yet
	for prefix, bytes := range s.promised {
		there, err := s.usedBy(prefix)
		if err != nil {
			return err
		}
		coming += max(0, bytes-there)
	}
	if s.Quota > 0 && used+coming+need > s.Quota {
		return muster.Errorf(muster.EConflict, "saved states may have %s together; %s are in use or promised, and %s would come", plaintext.Bytes(s.Quota), plaintext.Bytes(used+coming), plaintext.Bytes(need)).
			Because(muster.ReasonNoRoomForState).WithHint("resume or delete a saved cluster, or write --on-pause requeue")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.Dir, &st); err != nil {
		return err
	}
	if free := int64(st.Bavail) * st.Bsize; free < coming+need+spare {
		return muster.Errorf(muster.EConflict, "the file system of saved states has %s free; %s are needed", plaintext.Bytes(free), plaintext.Bytes(coming+need+spare)).
			Because(muster.ReasonNoRoomForState).WithHint("make room there, or write --on-pause requeue")
	}
	return nil
}

// Write writes a state, in place of one of that name. It is kept only if whole, asked when all was read, returns nil.
func (s *Store) Write(name string, to age.Recipient, from io.Reader, whole func() error) (State, error) {
	path, err := s.path(name)
	if err != nil {
		return State{}, err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return State{}, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return State{}, err
	}
	f, err := os.OpenFile(path+partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return State{}, err
	}
	defer func() { _ = os.Remove(path + partial) }()
	defer f.Close()
	sum := sha256.New()
	sealed, err := age.Encrypt(io.MultiWriter(f, sum), to)
	if err != nil {
		return State{}, err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{sealed}, from, make([]byte, 1<<20)); err != nil {
		return State{}, fmt.Errorf("write state %s: %w", name, err)
	}
	if err := errors.Join(sealed.Close(), whole(), f.Sync()); err != nil {
		return State{}, fmt.Errorf("write state %s: %w", name, err)
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return State{}, err
	}
	if err := os.Rename(path+partial, path); err != nil {
		return State{}, err
	}
	return State{SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size}, syncDir(s.Dir)
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Verify reports whether a state is there as it was written.
func (s *Store) Verify(name string, is State) error {
	f, err := s.open(name, is)
	if err == nil {
		_ = f.Close()
	}
	return err
}

// open opens a state that is as it was written.
func (s *Store) open(name string, is State) (*os.File, error) {
	path, err := s.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	bad := func(err error) (*os.File, error) {
		_ = f.Close()
		return nil, err
	}
	if st, err := f.Stat(); err != nil || st.Size() != is.Size {
		return bad(errors.Join(muster.Errorf(muster.ECorrupt, "state %s is not as long as it was written", name).Because(muster.ReasonStateDamaged), err))
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return bad(err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != is.SHA256 {
		return bad(muster.Errorf(muster.ECorrupt, "state %s is not what was written", name).Because(muster.ReasonStateDamaged))
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return bad(err)
	}
	return f, nil
}

// Read writes what was saved to a writer, once all of it was found to be as it was written.
func (s *Store) Read(name string, is State, key age.Identity, to io.Writer) error {
	f, err := s.open(name, is)
	if err != nil {
		return err
	}
	defer f.Close()
	plain, err := age.Decrypt(f, key)
	if err != nil {
		return muster.Errorf(muster.ECorrupt, "state %s cannot be read with the key of its pause", name).Because(muster.ReasonStateDamaged).Wrap(err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, plain, make([]byte, 1<<20))
	return err
}

// Receipt is the proof that a state was erased.
type Receipt struct {
	Name  string             `json:"name"`
	Bytes int64              `json:"bytes"` // that there were
	At    time.Time          `json:"at"`
	Steps []muster.CleanStep `json:"steps"`
}

// Erase erases a state and what is left of a write that was cut short. Without the key of its pause, which its owner
// forgets, what a disk may still have of it is noise.
func (s *Store) Erase(name string, now time.Time) (Receipt, error) {
	r := Receipt{Name: name, At: now}
	path, err := s.path(name)
	if err != nil {
		return r, err
	}
	for _, p := range []string{path, path + partial} {
		if st, err := os.Lstat(p); err == nil {
			r.Bytes += st.Size()
		}
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
	}
	if r.Bytes > 0 {
		if err := syncDir(s.Dir); err != nil {
			return r, err
		}
	}
	list, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	gone := true
	for _, e := range list {
		gone = gone && strings.TrimSuffix(e.Name(), partial) != name+suffix
	}
	r.Steps = []muster.CleanStep{{What: "state", Check: "no file of it is in the directory of states", OK: gone}}
	if !gone {
		return r, fmt.Errorf("state %s is still there", name)
	}
	return r, nil
}
