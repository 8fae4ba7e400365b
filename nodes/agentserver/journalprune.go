package agentserver

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// PruneJournals removes the journals of clusters that are not to be kept, and
// forgets their nodes.
func (s *Server) PruneJournals(keep func(muster.ClusterID) bool) error {
	j := s.journal
	j.mu.Lock()
	known := map[muster.ClusterID]bool{}
	for k := range j.nodes {
		known[k.cluster] = true
	}
	j.mu.Unlock()
	for id := range known { // asked without the lock: it may take a while
		known[id] = keep(id)
	}
	j.mu.Lock()
	for k := range j.nodes {
		if kept, asked := known[k.cluster]; asked && !kept {
			delete(j.nodes, k)
		}
	}
	j.mu.Unlock()
	if j.dir == "" {
		return nil
	}
	dirs, err := os.ReadDir(j.dir)
	if err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return err
	}
	for _, d := range dirs {
		if d.Type() == fs.ModeDir && !keep(muster.ClusterID(d.Name())) {
			if err := os.RemoveAll(filepath.Join(j.dir, d.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// journalFresh is how lately a file must have grown to be spared by
// BoundJournals: somebody may be looking at it.
const journalFresh = 10 * time.Minute

// BoundJournals removes the oldest files of journals until all together have
// at most so many bytes.
func (s *Server) BoundJournals(most int64) error {
	if s.journal.dir == "" {
		return nil
	}
	type file struct {
		path string
		size int64
		at   time.Time
	}
	var list []file
	var sum int64
	err := filepath.WalkDir(s.journal.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went meanwhile
		}
		if err != nil {
			return err
		}
		list = append(list, file{path, info.Size(), info.ModTime()})
		sum += info.Size()
		return nil
	})
	if err != nil || sum <= most {
		return err
	}
	slices.SortFunc(list, func(a, b file) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.path, b.path)) })
	fresh := time.Now().Add(-journalFresh)
	for _, f := range list {
		if sum <= most {
			break
		}
		if filepath.Ext(f.path) == journalEnd && f.at.After(fresh) {
			continue
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		sum -= f.size
		_ = os.Remove(filepath.Dir(f.path)) // when it was the last one
	}
	return nil
}
