package control

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/series"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Top is the present state of what the actor may see: all clusters, or one
// with its nodes and jobs.
func (s *Service) Top(ctx context.Context, who muster.Actor, ref string) (wire.Top, error) {
	out := wire.Top{At: s.Clock.Now().UTC(), Clusters: []wire.TopCluster{}}
	cores, _, err := s.cores.get(ctx, s)
	if err != nil {
		return out, err
	}
	var present map[string]series.Present
	if s.Series != nil {
		present = s.Series.Present()
	}
	var nodes []muster.Node
	var one muster.Cluster
	var counts store.Counts
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		var err error
		counts, err = tx.Count()
		if err != nil {
			return err
		}
		var list []muster.Cluster
		if ref == "" {
			list, err = tx.Clusters(store.ClusterFilter{Living: true})
		} else {
			one, err = tx.FindCluster(ref)
			list = []muster.Cluster{one}
		}
		if err != nil {
			return err
		}
		if ref != "" {
			if nodes, err = tx.Nodes(one.ID); err != nil {
				return err
			}
		} else {
			out.Site = &wire.TopSite{Machines: counts.Machines}
		}
		for _, c := range list {
			_, _, nodes := hosts(counts.Nodes[c.ID])
			has, err := extentOf(tx, c.ID, cores[c.ID], nodes)
			if err != nil {
				return err
			}
			row := s.topCluster(c, counts, has, present[string(c.ID)])
			if out.Site != nil {
				out.Site.Up += row.Up
				out.Site.Down += row.Down
			}
			out.Clusters = append(out.Clusters, row)
		}
		return nil
	})
	if err == nil && out.Site != nil {
		out.Site.Machines, err = s.machinePhases(ctx, counts)
	}
	if err != nil || ref == "" {
		return out, err
	}
	return out, s.topNodes(ctx, who, one, nodes, &out)
}

func (s *Service) topCluster(c muster.Cluster, n store.Counts, has extent, p series.Present) wire.TopCluster {
	out := wire.TopCluster{
		ID: c.ID, Name: c.Name, Project: c.Project, Owner: c.Owner, Status: c.Phase, Users: len(c.Spec.Users), Expires: c.Expires,
		Cores: has.cores, CoresBusy: digits(p.CoresBusy), MemoryUsed: int64(p.MemoryUsed), MemoryTotal: int64(p.MemoryTotal),
	}
	if p.Nodes < has.machines { // not all have said how much they have
		out.MemoryTotal = max(out.MemoryTotal, has.memory)
	}
	if c.Phase == muster.ClusterDeleted { // what it used last is not what it uses
		out.Cores, out.CoresBusy, out.MemoryUsed, out.MemoryTotal = 0, 0, 0, 0
		return out
	}
	out.Up, out.Down, out.Nodes = hosts(n.Nodes[c.ID])
	if st := s.scheduler(n.Heads[c.ID]); st != nil {
		out.Jobs, out.Pending = st.Jobs, st.Queue
	}
	return out
}

func (s *Service) scheduler(head muster.MachineID) *wire.SchedulerState {
	if head == "" || s.Scheduler == nil {
		return nil
	}
	return s.Scheduler(head)
}

// rateTime is the time over which Top tells rates.
const rateTime = time.Minute

// topNodes adds the nodes of a cluster and its jobs.
func (s *Service) topNodes(ctx context.Context, who muster.Actor, c muster.Cluster, nodes []muster.Node, out *wire.Top) error {
	now := s.Clock.Now()
	r, err := s.readSeries(ctx, series.Query{Owner: string(c.ID), From: now.Add(-rateTime), To: now, Step: rateTime})
	if err != nil {
		return err
	}
	rates := map[string]*series.Entry{}
	for i := range r.Entries {
		rates[r.Entries[i].Name] = &r.Entries[i]
	}
	var state *wire.SchedulerState
	out.Nodes = []wire.TopNode{}
	return s.Store.View(ctx, who, func(tx *store.Tx) error {
		for _, n := range nodes {
			if n.Head {
				state = s.scheduler(n.Machine)
			}
		}
		for _, n := range nodes {
			if n.Phase == muster.NodeGone {
				continue
			}
			view, _, err := s.viewNode(tx, c.Spec.Shape, n)
			if err != nil {
				return err
			}
			row := wire.TopNode{Node: n.Name, Status: n.Phase, Machine: n.Machine, Cores: view.Cores, Memory: view.Memory, Usage: view.Usage, Seen: view.LastSeen}
			if state != nil {
				row.Scheduler = state.Nodes[n.Name]
			}
			if e := rates[n.Name]; e != nil {
				for column, to := range map[int]*float64{series.NetRx: &row.NetRx, series.NetTx: &row.NetTx, series.DiskRead: &row.DiskRead, series.DiskWrite: &row.DiskWrite} {
					mean, _, _ := e.Total(column)
					*to = digits(mean)
				}
			}
			out.Nodes = append(out.Nodes, row)
		}
		if state != nil {
			out.Jobs = state.List
		}
		return nil
	})
}
