package control

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Clusters lists what the actor may see, without nodes.
func (s *Service) Clusters(ctx context.Context, who muster.Actor, q wire.ClusterQuery) (wire.ClusterList, error) {
	out := wire.ClusterList{Clusters: []wire.Cluster{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Clusters(store.ClusterFilter{Project: q.Project, Owner: q.Owner, Living: !q.All, Limit: q.Size() + 1, After: q.After})
		if err != nil {
			return err
		}
		list, more := partOf(list, q.Page)
		if out.More, err = nextAfter(list, more, func(c muster.Cluster) (string, error) { return tx.ClusterCursor(c.ID) }); err != nil {
			return err
		}
		ids := make([]muster.ClusterID, len(list))
		for i, c := range list {
			ids[i] = c.ID
		}
		nodes, err := tx.NodesOf(ids...)
		if err != nil {
			return err
		}
		for _, c := range list {
			view, err := s.view(tx, c, nodes[c.ID])
			if err != nil {
				return err
			}
			out.Clusters = append(out.Clusters, view)
		}
		return nil
	})
	return out, err
}

// Cluster shows one cluster with its nodes.
func (s *Service) Cluster(ctx context.Context, who muster.Actor, ref string) (wire.Cluster, error) {
	var out wire.Cluster
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		out, err = s.showOne(tx, c)
		return err
	})
	return out, err
}

func (s *Service) showOne(tx *store.Tx, c muster.Cluster) (wire.Cluster, error) {
	nodes, err := tx.Nodes(c.ID)
	if err != nil {
		return wire.Cluster{}, err
	}
	out, err := s.view(tx, c, nodes)
	if err != nil {
		return out, err
	}
	if out.Volumes, err = mountsOf(tx, c); err != nil {
		return out, err
	}
	var machines []muster.Machine
	for _, n := range present(c, nodes) {
		view, m, err := s.viewNode(tx, c.Spec.Shape, n)
		if err != nil {
			return out, err
		}
		out.Oversubscribed = out.Oversubscribed || m.Facts.Oversubscribed
		out.Nodes = append(out.Nodes, view)
		if m.ID != "" {
			machines = append(machines, m)
		}
	}
	where, err := locations(tx, machines)
	if err != nil {
		return out, err
	}
	for i := range out.Nodes {
		if id := out.Nodes[i].Machine; id != "" {
			out.Nodes[i].Location = where(id)
		}
	}
	return out, nil
}

// present are the nodes that a cluster in use has: those that left it are of
// interest only while it is built, and once it is over.
func present(c muster.Cluster, nodes []muster.Node) []muster.Node {
	if c.Phase != muster.ClusterReady {
		return nodes
	}
	out := make([]muster.Node, 0, len(nodes))
	for _, n := range nodes {
		if n.Phase != muster.NodeGone {
			out = append(out, n)
		}
	}
	return out
}

// view is a cluster as a client sees it, without its nodes.
func (s *Service) view(tx *store.Tx, c muster.Cluster, nodes []muster.Node) (wire.Cluster, error) {
	out := wire.Cluster{
		ID: c.ID, Name: c.Name, Owner: c.Owner, Project: c.Project, Status: c.Phase,
		Reason: c.Reason, Spec: c.Spec, Image: c.Image, Class: c.Class, Egress: c.Spec.Egress,
		Conditions: c.Conditions, Users: slices.Clone(c.Spec.Users), NodeCount: c.Spec.TotalNodes(),
		Created: c.Created, PhaseSince: c.PhaseSince, Deadline: c.Deadline,
		Ready: c.Ready, Deleted: c.Deleted, Expires: c.Expires, Raised: c.Raised, Pause: c.Pause, Promise: c.PromiseAhead(),
		Generation: c.Generation, Measurement: c.Measurement, Scaling: c.Scaling, Ending: c.Ending, Notices: c.Notices, Lifted: c.Lifted,
	}
	open, err := s.openDoors(tx, c)
	if err != nil {
		return out, err
	}
	out.Doors = append([]muster.Door{}, open...)
	if c.Subnet.IsValid() {
		out.Subnet = c.Subnet.String()
	}
	if here := present(c, nodes); len(here) > 0 {
		out.NodeCount = len(here)
	}
	for _, n := range nodes {
		if n.Head {
			out.Head = n.Name
		}
		if n.Phase == muster.NodeReady {
			out.ReadyCount++
		}
	}
	switch c.Phase {
	case muster.ClusterQueued:
		position, err := tx.QueuePosition(c.ID)
		if err != nil {
			return out, err
		}
		out.Position = position
		if e, ok := s.Allocator.Estimate(c.ID); ok {
			out.Position, out.Overtaken, out.StartAt, out.StartSpread = e.Position, e.Overtaken, e.StartAt, muster.Duration(e.Spread)
		}
	case muster.ClusterReserved:
		out.StartAt = c.Promise.Start
	case muster.ClusterPaused:
		if c.Promise != nil {
			out.StartAt = c.Promise.Start
		} else if e, ok := s.Allocator.Estimate(c.ID); ok {
			out.Position, out.Overtaken, out.StartAt, out.StartSpread = e.Position, e.Overtaken, e.StartAt, muster.Duration(e.Spread)
		}
	case muster.ClusterBuilding, muster.ClusterValidating:
		out.ETA, out.ETASpread = c.ETA, c.ETASpread
	case muster.ClusterDeleting:
		out.ETA, out.ETASpread = c.ETA, c.ETASpread
	}
	out.StatusText = statusText(c, out, s.Clock.Now())
	s.deadlines(&out, c)
	return out, nil
}

func (s *Service) viewNode(tx *store.Tx, shape *muster.Shape, n muster.Node) (wire.Node, muster.Machine, error) {
	out := wire.Node{
		Name: n.Name, Role: n.Role, Head: n.Head, Status: n.Phase, Machine: n.Machine, Attempt: n.Attempt,
		Trust: n.Trust, Conditions: slices.Clone(n.Conditions), Stages: n.Stages, VM: n.VM, PhaseSince: n.PhaseSince, Deadline: n.Deadline,
		Hold: n.Hold, Leave: n.Leave, Down: n.Down, Repairs: n.Repairs,
	}
	for i := range out.Conditions {
		out.Conditions[i] = out.Conditions[i].WithWaiting()
	}
	if n.Address.IsValid() {
		out.Address = n.Address.String()
	}
	if n.Management.IsValid() {
		out.Management = n.Management.String()
	}
	if n.Machine == "" {
		return out, muster.Machine{}, nil
	}
	// Who sees the node may know what fills it, also a user of another project.
	m, err := tx.AsSystem().Machine(n.Machine)
	if muster.CodeOf(err) == muster.ENotFound {
		return out, m, nil
	}
	if err != nil {
		return out, m, err
	}
	f := m.Facts
	if shape != nil && n.Role == muster.RoleCompute {
		f = f.Shaped(shape)
	}
	out.Class, out.Rack, out.Memory, out.Cores = f.Class, f.Rack, f.Memory, f.Cores
	for _, nic := range m.Facts.NICs {
		if nic.MAC != "" {
			out.MACs = append(out.MACs, nic.MAC)
		}
	}
	if fills(m, n) {
		out.LastSeen = newer(m.LastSeen, s.Contacts.Answered(m.ID))
		if s.Agents != nil {
			if last := s.Agents.Usage(n.Machine, 1); len(last) > 0 {
				out.Usage = &last[len(last)-1]
			}
		}
	}
	return out, m, nil
}

func newer(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
