package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// followChanges has committed changes reach what is kept in memory: the
// configurations of nodes, and what their agents said.
func (s *Server) followChanges(ctx context.Context, feed *store.Feed) error {
	defer feed.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case a, ok := <-feed.C:
			if !ok {
				return nil
			}
			if feed.Lost() {
				s.configs.DropAll()
				s.configsChanged(ctx, "")
				s.exports.LeftUnheard(ctx)
				s.licences.changed()
			}
			s.changed(ctx, a)
		}
	}
}

func (s *Server) changed(ctx context.Context, a muster.Audit) {
	switch a.Kind {
	case muster.AuditUser:
		s.configsChanged(ctx, a.Object)
	case muster.AuditTopology:
		s.configsChanged(ctx, "")
	case muster.AuditProject:
		s.licences.changed()
		s.configsChanged(ctx, "")
	case muster.AuditRegistration:
		if s.metal != nil {
			s.metal.provider.Registered()
			s.converge.WakeProvider(s.metal.provider.Name())
		}
	case muster.AuditCluster, muster.AuditNode:
		if a.Reconfigures {
			s.configChanged(a.Cluster)
		}
		if a.Kind == muster.AuditCluster && (a.To == string(muster.ClusterDeleted) || a.To == string(muster.ClusterFailed)) {
			s.configs.Drop(a.Cluster)
			s.agents.ForgetCluster(a.Cluster)
			s.runUse.Forget(a.Cluster)
			s.licences.changed()
		}
	case muster.AuditMachine:
		if a.Cluster != "" && a.From == a.To { // its facts may have changed
			s.configChanged(a.Cluster)
		}
		if muster.MachinePhase(a.From).Held() && !muster.MachinePhase(a.To).Held() {
			s.agents.Forget(muster.MachineID(a.Object))
			s.exports.Left(ctx, muster.MachineID(a.Object))
		}
	}
}

// configChanged tells the agents of a cluster that their configuration may be
// newer. Whoever asks from now on is answered from the records.
func (s *Server) configChanged(id muster.ClusterID) {
	s.configs.Drop(id)
	s.agents.ConfigChanged(id)
}

// configsChanged does the same for the clusters that a user may log in to, or
// for all of them. A cluster made since is configured from newer records.
func (s *Server) configsChanged(ctx context.Context, user string) {
	var list []muster.Cluster
	err := s.db.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		list, err = tx.Clusters(store.ClusterFilter{Living: true})
		return err
	})
	if err != nil {
		s.configs.DropAll() // told or not, whoever asks gets what is true
		s.log.Warn("listing clusters failed", "error", err)
		return
	}
	for _, c := range list {
		if user == "" || slices.Contains(c.Spec.Users, user) {
			s.configChanged(c.ID)
		}
	}
}

// Journals of a deleted cluster are kept for a week: long enough to ask why it
// went as it did.
const (
	journalsKept = 7 * 24 * time.Hour
	pruneEvery   = 10 * time.Minute
)

// prune removes what nobody will ask for any more, now and every few minutes.
func (s *Server) prune(ctx context.Context) error {
	if err := s.control.FailSaves(ctx); err != nil {
		s.log.Warn("recording interrupted savings failed", "error", err)
	}
	if err := s.control.CloseLostRuns(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn("closing runs of programs on deleted clusters failed", "error", err)
	}
	for {
		if err := s.control.PruneSaved(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("removing unused images failed", "error", err)
		}
		if _, err := s.images.Prune(ctx, *s.keep.Load(), s.control.ImageUsers()); err != nil && ctx.Err() == nil {
			s.log.Warn("removing unused images failed", "error", err)
		}
		if err := s.control.PruneVersions(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("removing old image contents failed", "error", err)
		}
		if err := s.agents.PruneJournals(func(id muster.ClusterID) bool { return s.keepsJournal(ctx, id) }); err != nil {
			s.log.Warn("removing old journals failed", "error", err)
		}
		if err := s.agents.BoundJournals(s.cfg.JournalBytes); err != nil {
			s.log.Warn("limiting journal size failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.cfg.Clock.After(pruneEvery):
		}
	}
}

// keepsJournal reports whether the journals of a cluster are kept. When in doubt
// they are.
func (s *Server) keepsJournal(ctx context.Context, id muster.ClusterID) bool {
	var c muster.Cluster
	err := s.db.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		c, err = tx.Cluster(id)
		return err
	})
	if err != nil {
		return muster.CodeOf(err) != muster.ENotFound
	}
	return c.Phase != muster.ClusterDeleted || s.cfg.Clock.Now().Before(c.Deleted.Add(journalsKept))
}
