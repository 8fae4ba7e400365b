package nfs

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
)

// ownRecord are the clusters that have servers of their own.
type ownRecord struct {
	Servers map[muster.ClusterID]ownServer `json:"servers"`
}

// ownServer is that of one cluster.
type ownServer struct {
	Port uint16 `json:"port"` // stays: it is in the memory of machines that are saved
	// Held: it does not run, since its machines stand still.
	Held bool `json:"held,omitempty"`
	// At is where its nodes were when it was held last.
	At map[string]netip.Addr `json:"at,omitempty"`
}

const ownDoc document.Kind[ownRecord] = "volume-servers/1"

func readOwn(path string) (ownRecord, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ownRecord{Servers: map[muster.ClusterID]ownServer{}}, nil
	}
	if err != nil {
		return ownRecord{}, err
	}
	return parseOwn(path, b)
}

func parseOwn(path string, b []byte) (ownRecord, error) {
	r, err := ownDoc.Decode(path, b)
	if err != nil {
		return ownRecord{}, err
	}
	had := map[uint16]muster.ClusterID{}
	for id, s := range r.Servers {
		other, taken := had[s.Port]
		switch {
		case !nameForm.MatchString(string(id)):
			return ownRecord{}, fmt.Errorf("%s: %.80q is not the ID of a cluster", path, id)
		case s.Port == 0 || taken:
			return ownRecord{}, fmt.Errorf("%s: cluster %s has port %d, and so has %q", path, id, s.Port, other)
		}
		had[s.Port] = id
	}
	if r.Servers == nil {
		r.Servers = map[muster.ClusterID]ownServer{}
	}
	return r, nil
}

func (r ownRecord) write(path string) error {
	b, err := ownDoc.Encode(&r)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, append(b, '\n'), 0o600)
}

// free is the first port that no cluster has; 0: all are taken.
func (r ownRecord) free(first, last uint16) uint16 {
	taken := map[uint16]bool{}
	for _, s := range r.Servers {
		taken[s.Port] = true
	}
	for p := first; p <= last && p != 0; p++ {
		if !taken[p] {
			return p
		}
	}
	return 0
}
