package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
)

// Store keeps small secrets under names. Load returns ENotFound for a name
// that was never saved. Save replaces the whole value or nothing.
type Store interface {
	Load(name string) ([]byte, error)
	Save(name string, value []byte) error
	Delete(name string) error
}

// Names in a Store.
const (
	fileCredential = "credential.pem" // private key, then certificate once joined
	fileConfig     = "config.json"    // configuration in force, secrets and all
	fileState      = "state.json"     // whose these are, and what was reached
	fileEpoch      = "epoch"          // the highest of a server that was obeyed
)

// maxStored bounds what Load reads: no file of ours is larger.
const maxStored = 16 << 20

// Dir is a Store in a directory that should lie on tmpfs. Files are only for
// its owner.
type Dir string

// Load reads a file.
func (d Dir) Load(name string) ([]byte, error) {
	b, err := readLimited(filepath.Join(string(d), name), maxStored)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, muster.Errorf(muster.ENotFound, "no %s in %s", name, string(d)).Wrap(err)
	}
	return b, err
}

// Save replaces a file. The directory does not outlive a crash of the machine.
func (d Dir) Save(name string, value []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	return atomicfile.ReplaceVolatile(filepath.Join(string(d), name), value, 0o600)
}

// Delete removes a file; one that is not there is fine.
func (d Dir) Delete(name string) error {
	err := os.Remove(filepath.Join(string(d), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Memory is a Store that lasts as long as the process, for agents that are
// embedded. The zero value is empty and ready.
type Memory struct {
	mu    sync.Mutex
	files map[string][]byte
}

// Load returns what was saved.
func (m *Memory) Load(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.files[name]
	if !ok {
		return nil, muster.Errorf(muster.ENotFound, "no %s", name)
	}
	return b, nil
}

// Save keeps value, which the caller no longer changes.
func (m *Memory) Save(name string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = map[string][]byte{}
	}
	m.files[name] = value
	return nil
}

// Delete forgets name.
func (m *Memory) Delete(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, name)
	return nil
}
