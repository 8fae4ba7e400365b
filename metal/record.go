package metal

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/wire"
)

// record is what must be known of a boot after a crash of this program or of the
// whole host: a machine that was switched on comes back with its number, and a task
// that was given to one program must be given to no other.
type record struct {
	Machine muster.MachineID `json:"machine"`
	Number  string           `json:"number"`
	Kind    wire.BootKind    `json:"kind"`
	Attempt int64            `json:"attempt"`
	For     string           `json:"for,omitempty"`
	As      string           `json:"as,omitempty"`
	Image   muster.ImageID   `json:"image,omitempty"`
	Egress  muster.Egress    `json:"egress,omitempty"`
	// Args are arguments of its kernel in this boot alone.
	Args    []string             `json:"args,omitempty"`
	Payload json.RawMessage      `json:"payload,omitempty"`
	Step    Step                 `json:"step"`
	Since   time.Time            `json:"since"`
	Changed time.Time            `json:"changed"`
	Key     []byte               `json:"key,omitempty"` // public, of the program that has the order
	Trust   muster.Trust         `json:"trust,omitempty"`
	Failure *wire.BootFailure    `json:"failure,omitempty"`
	Done    *wire.BootTaskResult `json:"done,omitempty"`
}

const recordDoc document.Kind[record] = "metal-boot/1"

// files keeps records, each in a file of its own.
type files struct{ dir string }

func (f files) path(id muster.MachineID) string { return filepath.Join(f.dir, string(id)+".json") }

// save replaces a record so that after a crash there is the old one or the new one.
func (f files) save(r *record) error {
	b, err := recordDoc.Encode(r)
	if err != nil {
		return err
	}
	fail := func(err error) error {
		return muster.Errorf(muster.EUnavailable, "what machine %s is to boot cannot be written down", r.Machine).
			WithHint("see whether the disk with the state directory is full").Wrap(err)
	}
	if err := atomicfile.Replace(f.path(r.Machine), b, 0o600); err != nil {
		return fail(err)
	}
	return nil
}

// remove forgets a machine's record.
func (f files) remove(id muster.MachineID) error {
	err := os.Remove(f.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = atomicfile.SyncDir(f.dir)
	}
	return err
}

// load reads all records. One that cannot be read is told of and left out: its
// machine is then as one of which nothing is known, and is started anew. One of another
// version is an error: its machine may run a tenant's image.
func (f files) load() (list []*record, damaged []string, err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			_ = os.Remove(filepath.Join(f.dir, e.Name())) // a write that a crash cut short
			continue
		}
		b, err := os.ReadFile(filepath.Join(f.dir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		r, err := recordDoc.Decode(filepath.Join(f.dir, e.Name()), b)
		if muster.CodeOf(err) == muster.EConflict {
			return nil, nil, err
		}
		if err != nil || string(r.Machine) != name || r.Number == "" {
			damaged = append(damaged, e.Name())
			continue
		}
		list = append(list, &r)
	}
	return list, damaged, nil
}
