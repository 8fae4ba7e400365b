package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/place"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Server describes the server and the caller.
func (s *Service) Server(ctx context.Context, who muster.Actor) (wire.Server, error) {
	out := wire.Server{Version: s.Version, API: "v1", Started: s.started, Instance: s.Instance, You: who.Name, Admin: who.Admin, ReadOnly: who.ReadOnly, Projects: who.Projects, Listen: s.Listen(), Epoch: s.Epoch}
	if err := s.Superseded(); err != nil {
		out.Superseded = err.Error()
	}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		clusters, err := tx.Clusters(store.ClusterFilter{Living: true})
		if err != nil {
			return err
		}
		machines, err := tx.Machines(store.MachineFilter{})
		if err != nil {
			return err
		}
		out.Clusters = len(clusters)
		held := place.HeldParts(machines)
		var answer, free []*muster.Facts
		for i := range machines {
			m := &machines[i]
			if !s.answers(*m, newer(m.LastSeen, s.Contacts.Answered(m.ID))) {
				continue
			}
			answer = append(answer, &m.Facts)
			if m.Phase == muster.MachineFree && m.Intent == muster.IntentNone && !slices.ContainsFunc(m.Facts.Parts, func(p string) bool { return held[p] }) {
				free = append(free, &m.Facts)
			}
			out.Oversubscribed = out.Oversubscribed || m.Facts.Oversubscribed
		}
		out.Machines, out.Free = atOnce(answer), atOnce(free)
		return nil
	})
	return out, err
}

// atOnce is how many machines can be in use at once: of those that share a part, one.
func atOnce(machines []*muster.Facts) int {
	return int(muster.AtOnce(machines, func(*muster.Facts) int64 { return 1 }))
}

// Health reports how the parts of the server are. It shows nothing of the site.
func (s *Service) Health(ctx context.Context) wire.Health {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out := wire.Health{Status: "ok", Version: s.Version}
	database := wire.HealthPart{Name: "database", OK: true}
	if err := s.Store.View(ctx, muster.System(), func(*store.Tx) error { return nil }); err != nil {
		database.OK, database.Text = false, "it cannot be read"
	} else if stats := s.Store.Stats(); stats.LastError != nil && s.Clock.Now().Sub(stats.LastErrorAt) < time.Minute {
		// The message alone: what it wraps names files, and is in the log.
		why := "see the server's log"
		var known *muster.Error
		if errors.As(stats.LastError, &known) {
			why = known.Message
		}
		database.OK, database.Text = false, fmt.Sprintf("%s ago: %s", s.Clock.Now().Sub(stats.LastErrorAt).Round(time.Second), why)
	}
	out.Checks = append(out.Checks, database)
	if err := s.WritesAllowed(); err != nil {
		disk := wire.HealthPart{Name: "disk", Text: "full or nearly so: no clusters are made"}
		out.Checks = append(out.Checks, disk)
	}
	for _, check := range s.Config.Health {
		out.Checks = append(out.Checks, check(ctx))
	}
	for _, c := range out.Checks {
		if !c.OK {
			out.Status = "degraded"
		}
	}
	return out
}
