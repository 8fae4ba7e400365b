package control

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

const (
	defaultLines = 200
	// lastWords is how long the lines of a cluster that was deleted may still
	// be on their way.
	lastWords = 300 * time.Millisecond
)

// Logs is the newest lines of the journals of a cluster's nodes, in time
// order. They survive the machines, and for some days the cluster.
func (s *Service) Logs(ctx context.Context, who muster.Actor, ref string, q wire.LogQuery) (wire.Logs, error) {
	c, nodes, err := s.logNodes(ctx, who, ref, &q)
	if err != nil {
		return wire.Logs{}, err
	}
	return wire.Logs{ID: c.ID, Status: c.Phase, Lines: s.logLines(c.ID, nodes, q)}, nil
}

// logNodes finds the nodes whose journals are wanted.
func (s *Service) logNodes(ctx context.Context, who muster.Actor, ref string, q *wire.LogQuery) (muster.Cluster, []muster.Node, error) {
	if q.Lines <= 0 {
		q.Lines = defaultLines
	}
	c, nodes, err := s.nodes(ctx, who, ref)
	if err != nil || q.Node == "" {
		return c, nodes, err
	}
	one, err := pickNode(c, nodes, q.Node)
	return c, []muster.Node{one}, err
}

func (s *Service) logLines(id muster.ClusterID, nodes []muster.Node, q wire.LogQuery) (out []wire.LogLine) {
	if s.Agents == nil {
		return nil
	}
	for _, n := range nodes {
		for _, line := range s.Agents.Lines(id, n.Name, q) {
			out = append(out, wire.LogLine{Node: n.Name, JournalLine: line})
		}
	}
	slices.SortStableFunc(out, func(a, b wire.LogLine) int { return a.At.Compare(b.At) })
	return out[max(0, len(out)-q.Lines):]
}

// FollowLogs returns a stream: the newest lines as of Logs, a step without a
// line, and then what comes, until the cluster is deleted.
func (s *Service) FollowLogs(ctx context.Context, who muster.Actor, ref string, q wire.LogQuery) (func(func(wire.LogStep) error) error, error) {
	c, nodes, err := s.logNodes(ctx, who, ref, &q)
	if err != nil {
		return nil, err
	}
	if q.Node != "" {
		q.Node = nodes[0].Name // "head" is a name, too
	}
	return func(send func(wire.LogStep) error) error {
		f := &logFollower{s: s, id: c.ID, nodes: nodes, q: q, send: send}
		return f.run(ctx)
	}, nil
}

// logFollower is one stream of journals.
type logFollower struct {
	s     *Service
	id    muster.ClusterID
	nodes []muster.Node
	q     wire.LogQuery
	send  func(wire.LogStep) error
	// early are lines that came while the past was read: they may be in both.
	early map[wire.LogLine]int
}

func (f *logFollower) run(ctx context.Context) error {
	// Who listens before the past is read misses nothing.
	feed := f.s.Store.Subscribe(1024)
	defer feed.Close()
	var lines <-chan wire.LogLine
	lost := func() int64 { return 0 }
	if f.s.Agents != nil {
		var leave func()
		lines, lost, leave = f.s.Agents.Follow(f.id)
		defer leave()
	}
	if err := f.past(); err != nil {
		return err
	}
	ended := f.deleted(ctx)
	overlap := time.After(5 * time.Second)
	for {
		if ended {
			return f.end(ctx, lines)
		}
		select {
		case <-overlap:
			f.early = nil
		case <-ctx.Done():
			return ctx.Err()
		case l := <-lines:
			if err := f.line(l, lost()); err != nil {
				return err
			}
		case a, open := <-feed.C:
			if !open {
				return muster.Errorf(muster.EUnavailable, "the server stops").Because(muster.ReasonServerStopping).WithHint("connect again")
			}
			ended = feed.Lost() && f.deleted(ctx) || a.Cluster == f.id && a.Kind == muster.AuditCluster && a.To == string(muster.ClusterDeleted)
		}
	}
}

// past reports what is there, and that it is told.
func (f *logFollower) past() error {
	f.early = map[wire.LogLine]int{}
	for _, l := range f.s.logLines(f.id, f.nodes, f.q) {
		f.early[logKey(l)]++
		if err := f.send(wire.LogStep{LogLine: &l}); err != nil {
			return err
		}
	}
	return f.send(wire.LogStep{})
}

// logKey makes lines comparable: as a key, a time is its zone too.
func logKey(l wire.LogLine) wire.LogLine {
	l.At = l.At.UTC().Round(0)
	return l
}

func (f *logFollower) line(l wire.LogLine, lost int64) error {
	if f.q.Node != "" && l.Node != f.q.Node || !f.q.Matches(l.JournalLine) {
		return nil
	}
	if f.early != nil {
		if key := logKey(l); f.early[key] > 0 {
			f.early[key]--
			return nil
		}
	}
	return f.send(wire.LogStep{LogLine: &l, Lost: lost})
}

// end reports what is still on its way, and that it is over.
func (f *logFollower) end(ctx context.Context, lines <-chan wire.LogLine) error {
	wait := time.After(lastWords)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case l := <-lines:
			if err := f.line(l, 0); err != nil {
				return err
			}
		case <-wait:
			return f.send(wire.LogStep{End: "the cluster is deleted"})
		}
	}
}

func (f *logFollower) deleted(ctx context.Context) bool {
	var c muster.Cluster
	err := f.s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		c, err = tx.Cluster(f.id)
		return err
	})
	return err == nil && c.Phase == muster.ClusterDeleted
}
