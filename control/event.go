package control

import (
	"context"
	"errors"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// page is how many lines of the past are read at once.
const page = 500

// Events returns the stream of what happened and happens, as far as the actor
// may see it: the audit after q.After, then what is committed from now on with
// the progress of boots in between. Nothing of the audit is missed or told
// twice.
func (s *Service) Events(ctx context.Context, who muster.Actor, q wire.EventQuery) (func(func(wire.Event) error) error, error) {
	var id muster.ClusterID
	if q.Cluster != "" {
		err := s.Store.View(ctx, who, func(tx *store.Tx) error {
			c, err := tx.FindCluster(q.Cluster)
			id = c.ID
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if q.Newest > 0 {
		err := s.Store.View(ctx, who, func(tx *store.Tx) error {
			lines, err := tx.Audits(store.AuditFilter{After: q.After, Cluster: id, Newest: q.Newest})
			if len(lines) > 0 {
				q.After = lines[0].Seq - 1
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	t := &eventStream{s: s, who: who, cluster: id, last: q.After}
	return func(send func(wire.Event) error) error {
		if q.Limit > 0 {
			return t.some(ctx, q, send)
		}
		if !q.Follow {
			return t.past(ctx, send)
		}
		return t.follow(ctx, send)
	}, nil
}

// eventStream is one stream.
type eventStream struct {
	s       *Service
	who     muster.Actor
	cluster muster.ClusterID
	last    int64 // sequence number of the last line handled
}

// errEnough ends a stream that has told as many events as were asked for.
var errEnough = errors.New("enough")

// some tells so many events.
func (t *eventStream) some(ctx context.Context, q wire.EventQuery, send func(wire.Event) error) error {
	left, tell := q.Limit, t.past
	if q.Follow {
		tell = t.follow
	}
	err := tell(ctx, func(e wire.Event) error {
		if err := send(e); err != nil {
			return err
		}
		if left--; left == 0 {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// past tells the audit from t.last on.
func (t *eventStream) past(ctx context.Context, send func(wire.Event) error) error {
	for {
		var lines []muster.Audit
		err := t.s.Store.View(ctx, t.who, func(tx *store.Tx) error {
			var err error
			lines, err = tx.Audits(store.AuditFilter{After: t.last, Cluster: t.cluster, Limit: page})
			return err
		})
		if err != nil {
			return err
		}
		for _, a := range lines {
			t.last = a.Seq
			if err := send(event(a)); err != nil {
				return err
			}
		}
		if len(lines) < page {
			return nil
		}
	}
}

func (t *eventStream) follow(ctx context.Context, send func(wire.Event) error) error {
	// Listen first, then read the past: what is committed in between comes
	// twice and is told once.
	feed := t.s.Store.Subscribe(1024)
	defer feed.Close()
	progress, leave := t.s.hub.listen()
	defer leave()
	if err := t.past(ctx, send); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a, open := <-feed.C:
			if !open {
				return muster.Errorf(muster.EUnavailable, "the server stops").Because(muster.ReasonServerStopping).WithHint("connect again")
			}
			if feed.Lost() {
				if err := t.past(ctx, send); err != nil {
					return err
				}
			}
			if a.Seq <= t.last || !t.concerns(a.Cluster) || !t.s.Store.CanSee(t.who, a) {
				continue
			}
			t.last = a.Seq
			if err := send(event(a)); err != nil {
				return err
			}
		case e := <-progress:
			if !t.concerns(e.Cluster) || !t.maySee(ctx, e.Cluster) {
				continue
			}
			if err := send(e); err != nil {
				return err
			}
		}
	}
}

func (t *eventStream) concerns(id muster.ClusterID) bool { return t.cluster == "" || t.cluster == id }

// maySee guards progress events, which carry no project. A stream of one
// cluster was checked when it began.
func (t *eventStream) maySee(ctx context.Context, id muster.ClusterID) bool {
	if t.who.Admin || (t.cluster != "" && t.cluster == id) {
		return true
	}
	if id == "" {
		return false
	}
	return t.s.Store.View(ctx, t.who, func(tx *store.Tx) error {
		_, err := tx.Cluster(id)
		return err
	}) == nil
}

func event(a muster.Audit) wire.Event {
	return wire.Event{Seq: a.Seq, At: a.At, Kind: a.Kind, Cluster: a.Cluster, Object: a.Object, From: a.From, To: a.To, Text: a.Text, Actor: a.Actor}
}
