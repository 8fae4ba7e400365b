package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/vm/device"
)

// deviceNote is which devices of the host a machine has, or had: it is written before they are taken, and goes when they are
// given back to the host's drivers. The end of the host is not the end of what a tenant left on a disk, so it is synced.
type deviceNote struct {
	// Cluster is whose virtual machine had them last: until they are clean, nobody else's may.
	Cluster muster.ClusterID `json:"cluster,omitempty"`
	Devices []device.Held    `json:"devices"`
}

const deviceNoteDoc document.Kind[deviceNote] = "local-devices/1"

// deviceNoteName ends the name of a note. Names that end with .json are records of machines.
const deviceNoteName = ".devices"

func (p *Provider) deviceNotePath(id muster.MachineID) string {
	return filepath.Join(p.dir, string(id)+deviceNoteName)
}

// loadDeviceNote reads it; an empty one if there is none.
func (p *Provider) loadDeviceNote(id muster.MachineID) (*deviceNote, error) {
	path := p.deviceNotePath(id)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return &deviceNote{}, nil
	}
	if err != nil {
		return nil, err
	}
	n, err := deviceNoteDoc.Decode(path, b)
	return &n, err
}

// saveDeviceNote writes it, or removes one that says nothing.
func (p *Provider) saveDeviceNote(id muster.MachineID, n *deviceNote) error {
	path := p.deviceNotePath(id)
	if len(n.Devices) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return atomicfile.SyncDir(filepath.Dir(path))
	}
	b, err := deviceNoteDoc.Encode(n)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, b, 0o600)
}

// loadDeviceNotes reads those of all machines.
func (p *Provider) loadDeviceNotes() (map[muster.MachineID]*deviceNote, error) {
	list, err := os.ReadDir(p.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	notes := map[muster.MachineID]*deviceNote{}
	for _, e := range list {
		id, ok := strings.CutSuffix(e.Name(), deviceNoteName)
		if !ok {
			continue
		}
		n, err := p.loadDeviceNote(muster.MachineID(id))
		if err != nil {
			return nil, fmt.Errorf("read which devices machine %s has: %w", id, err)
		}
		notes[muster.MachineID(id)] = n
	}
	return notes, nil
}

// dirty reports whether something of a tenant's may be on a device.
func (n *deviceNote) dirty() bool {
	return slices.ContainsFunc(n.Devices, func(d device.Held) bool { return !d.Clean })
}
