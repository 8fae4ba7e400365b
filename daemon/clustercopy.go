package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/store"
)

// clusterCopy is what the store knows of one cluster, written beside the store: when that
// is lost, clusters whose machines run can be adopted by it. It holds the cluster's secrets,
// as the store does.
type clusterCopy struct {
	Instance string    `json:"instance"`
	Epoch    int64     `json:"epoch"`
	At       time.Time `json:"at"`

	Cluster  muster.Cluster    `json:"cluster"`
	Nodes    []muster.Node     `json:"nodes"`
	Machines []muster.Machine  `json:"machines"`
	Users    []muster.User     `json:"users"`
	Volumes  []muster.Volume   `json:"volumes"`
	Secrets  map[string][]byte `json:"secrets"`
}

const copyDoc document.Kind[clusterCopy] = "cluster-copy/1"

const (
	// copyEvery is how old a copy may be. A large one is written less often.
	copyEvery      = time.Second
	copyEveryLarge = 20 * time.Second
	largeCluster   = 500
)

// copiesDir is where copies are, in a state directory.
const copiesDir = "clusters"

func copyPath(dir string, id muster.ClusterID) string {
	return filepath.Join(dir, copiesDir, string(id)+".json")
}

// copies are what is known of the copies of clusters.
type copies struct {
	s     *Server
	dirty map[muster.ClusterID]bool
	done  map[muster.ClusterID]copied
}

type copied struct {
	at    time.Time
	large bool
}

// keepCopies writes copies of clusters that change, until ctx ends, and removes those of
// clusters that are deleted.
func (s *Server) keepCopies(ctx context.Context) error {
	feed := s.db.Subscribe(4096)
	defer feed.Close()
	if err := os.MkdirAll(s.state.path(copiesDir), 0o700); err != nil {
		return err
	}
	c := copies{s: s, dirty: map[muster.ClusterID]bool{}, done: map[muster.ClusterID]copied{}}
	c.all(ctx)
	tick := time.NewTicker(copyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.write(context.WithoutCancel(ctx), true)
			return nil
		case a, ok := <-feed.C:
			if !ok {
				return nil
			}
			if feed.Lost() {
				c.all(ctx)
			}
			if a.Cluster != "" {
				c.dirty[a.Cluster] = true
			}
		case <-tick.C:
			c.write(ctx, false)
		}
	}
}

// all copies every living cluster, and removes copies of those that are deleted. One of
// a cluster that the store does not know is left: nobody knows more of it.
func (c *copies) all(ctx context.Context) {
	err := c.s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.Clusters(store.ClusterFilter{Living: true})
		for _, cluster := range list {
			c.dirty[cluster.ID] = true
		}
		if err != nil {
			return err
		}
		files, err := filepath.Glob(copyPath(c.s.cfg.State, "*"))
		for _, f := range files {
			id := muster.ClusterID(strings.TrimSuffix(filepath.Base(f), ".json"))
			old, err := tx.Cluster(id)
			switch {
			case muster.CodeOf(err) == muster.ENotFound:
			case err != nil:
				return err
			case old.Phase == muster.ClusterDeleted:
				c.dirty[id] = true
			}
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		c.s.log.Warn("listing clusters failed: recovery copies may be stale", "error", err)
	}
}

// write writes those that are due, or all that have changed.
func (c *copies) write(ctx context.Context, all bool) {
	for id := range c.dirty {
		last := c.done[id]
		every := copyEvery
		if last.large {
			every = copyEveryLarge
		}
		if !all && time.Since(last.at) < every {
			continue
		}
		nodes, err := c.s.writeCopy(ctx, id)
		switch {
		case err != nil:
			c.s.log.Warn("writing recovery copy failed", "cluster", id, "error", err)
			c.done[id] = copied{time.Now(), true} // again, but not at once
			continue
		case nodes < 0:
			delete(c.done, id)
		default:
			c.done[id] = copied{time.Now(), nodes > largeCluster}
		}
		delete(c.dirty, id)
	}
}

// writeCopy copies one cluster, and reports how many nodes it has; -1: it is gone, and so is
// its copy.
func (s *Server) writeCopy(ctx context.Context, id muster.ClusterID) (nodes int, err error) {
	c := clusterCopy{Instance: s.instance, Epoch: s.epoch, At: s.cfg.Clock.Now().UTC()}
	err = s.db.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		if c.Cluster, err = tx.Cluster(id); err != nil {
			return err
		}
		if c.Nodes, err = tx.Nodes(id); err != nil {
			return err
		}
		if c.Machines, err = tx.Machines(store.MachineFilter{Cluster: id}); err != nil {
			return err
		}
		for _, name := range append([]string{c.Cluster.Owner}, c.Cluster.Spec.Users...) {
			u, err := tx.User(name)
			if err != nil && muster.CodeOf(err) != muster.ENotFound {
				return err
			}
			if err == nil {
				c.Users = append(c.Users, u)
			}
		}
		if c.Volumes, err = tx.Volumes(store.VolumeFilter{Cluster: id, Living: true}); err != nil {
			return err
		}
		c.Secrets, err = tx.Secrets(id)
		return err
	})
	switch {
	case muster.CodeOf(err) == muster.ENotFound, err == nil && c.Cluster.Phase == muster.ClusterDeleted:
		return -1, removeIfThere(copyPath(s.cfg.State, id))
	case err != nil:
		return 0, err
	}
	b, err := copyDoc.Encode(&c)
	if err != nil {
		return 0, err
	}
	return len(c.Nodes), atomicfile.Replace(copyPath(s.cfg.State, id), b, 0o600)
}

// readCopies reads the copies of a state directory. One that cannot be read is told of and
// left out.
func readCopies(dir string) (list []clusterCopy, bad []error) {
	files, err := filepath.Glob(copyPath(dir, "*"))
	if err != nil {
		return nil, []error{err}
	}
	for _, f := range files {
		c, err := readCopy(f)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		list = append(list, c)
	}
	return list, bad
}

func readCopy(f string) (clusterCopy, error) {
	var c clusterCopy
	b, err := os.ReadFile(f)
	if err == nil {
		c, err = copyDoc.Decode(f, b)
	}
	if err == nil && (string(c.Cluster.ID)+".json" != filepath.Base(f) || strings.ContainsAny(string(c.Cluster.ID), "/.")) {
		err = errors.New("it is not a copy of a cluster of that name")
	}
	if err != nil {
		return clusterCopy{}, muster.Errorf(muster.ECorrupt, "%s cannot be used: %v", f, err).Because(muster.ReasonBackupDamaged)
	}
	return c, nil
}

// abandonedImages are the images of clusters that have copies and are not in the records,
// with their names: their machines may run, and can be adopted.
func (s *Server) abandonedImages(ctx context.Context) (map[muster.ImageID][]string, error) {
	files, err := filepath.Glob(copyPath(s.cfg.State, "*"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	var unknown []string
	err = s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		for _, f := range files {
			_, err := tx.Cluster(muster.ClusterID(strings.TrimSuffix(filepath.Base(f), ".json")))
			switch {
			case muster.CodeOf(err) == muster.ENotFound:
				unknown = append(unknown, f)
			case err != nil:
				return err
			}
		}
		return nil
	})
	out := map[muster.ImageID][]string{}
	for _, f := range unknown {
		c, failed := readCopy(f)
		if failed != nil {
			return nil, failed // it may be any
		}
		if id := c.Cluster.Image; id != "" {
			out[id] = append(out[id], fmt.Sprintf("%s (%s, which is not in the records)", c.Cluster.Name, c.Cluster.ID))
		}
	}
	return out, err
}
