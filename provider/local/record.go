package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
)

// record is what is remembered of a machine over a restart of the server. It
// is written before anything is made; whether the machine really runs is told
// by its control group alone.
type record struct {
	Machine muster.MachineID `json:"machine"`
	Index   int              `json:"index"`
	Attempt int64            `json:"attempt"`
	Epoch   int64            `json:"epoch,omitempty"` // of the records that had it started
	Cluster muster.ClusterID `json:"cluster,omitempty"`
	Image   string           `json:"image"` // path
	Egress  muster.Egress    `json:"egress,omitempty"`
	PID     int              `json:"pid,omitempty"`
	Started uint64           `json:"started,omitempty"` // start time of PID, see startTime
	Since   time.Time        `json:"since"`
	Error   string           `json:"error,omitempty"`
	// Trial: it runs for nobody, to be tried. No server takes that up again.
	Trial bool `json:"trial,omitempty"`
}

const recordDoc document.Kind[record] = "local-machine/1"

// runs notes the first process of a machine.
func (m *machine) runs(rec *record, pid int) error {
	started, err := startTime(pid)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	rec.PID, rec.Started = pid, started
	return nil
}

func (p *Provider) recordPath(id muster.MachineID) string {
	return filepath.Join(p.dir, string(id)+".json")
}

// save writes a record so that a reader sees the old or the new one. A crash
// of the host ends the machine too, so nothing is synced.
func (p *Provider) save(r *record) error {
	b, err := recordDoc.Encode(r)
	if err != nil {
		return err
	}
	return atomicfile.ReplaceVolatile(p.recordPath(r.Machine), b, 0o600)
}

func (p *Provider) forget(id muster.MachineID) error {
	err := os.Remove(p.recordPath(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// loadRecords reads every record. One that cannot be read says nothing: its
// machine is then known by its control group. One of another version is an error: what
// it says of its machine is true.
func (p *Provider) loadRecords() (map[muster.MachineID]*record, error) {
	out := map[muster.MachineID]*record{}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(p.dir, e.Name()))
		if err != nil {
			return nil, err
		}
		r, err := recordDoc.Decode(filepath.Join(p.dir, e.Name()), b)
		if muster.CodeOf(err) == muster.EConflict {
			return nil, err
		}
		if err != nil || string(r.Machine)+".json" != e.Name() {
			p.cfg.Log.Warn("reading machine record failed", "file", e.Name())
			continue
		}
		out[r.Machine] = &r
	}
	return out, nil
}
