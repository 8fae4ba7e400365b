package measure

import (
	"context"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
	"github.com/muster-hpc/muster/store"
)

// subject is what is measured: it does not change while it is.
type subject struct {
	m        muster.Measurement
	cluster  muster.Cluster
	nodes    []muster.Node
	machines []muster.Machine // of the nodes, in their order
	places   []analysis.Place
	// providers are what these machines can do.
	providers muster.Providers
	targets   analysis.Targets
	// neighbours counts, for each node, the machines of others that were in use
	// on its host.
	neighbours []int
	head       muster.MachineID
	launcher   string // node whose agent makes the launches: the first one
}

// load reads what is to be measured.
func (j *job) load(ctx context.Context) (*subject, error) {
	s := &subject{targets: *j.r.targets.Load(), providers: j.r.c.Providers}
	err := j.r.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		var err error
		if s.cluster, err = tx.Cluster(j.cluster); err != nil {
			return err
		}
		if s.cluster.Measurement == nil || s.cluster.Measurement.ID != j.id {
			return errStale
		}
		s.m = *s.cluster.Measurement
		all, err := tx.Nodes(j.cluster)
		if err != nil {
			return err
		}
		for _, n := range all {
			if n.Head {
				s.head = n.Machine
			}
		}
		s.nodes = muster.ToMeasure(all, s.m.Nodes)
		for _, n := range s.nodes {
			if s.launcher == "" { // files of a program are where its first rank is
				s.launcher = n.Name
			}
			m, err := tx.Machine(n.Machine)
			if err != nil {
				return err
			}
			s.machines = append(s.machines, m)
			s.places = append(s.places, j.r.place(m))
		}
		if err := j.r.stand(tx, s); err != nil {
			return err
		}
		if s.neighbours, err = j.countNeighbours(tx, s.places); err != nil {
			return err
		}
		return s.current(tx)
	})
	if muster.CodeOf(err) == muster.ENotFound {
		err = errStale
	}
	if err == nil && (len(s.nodes) == 0 || s.launcher == "") {
		err = muster.Errorf(muster.EConflict, "there is nothing to measure: no node is up").Because(muster.ReasonNotReady).WithHint("ask again when the cluster is ready")
	}
	return s, err
}

// place is where a machine is. Those that are cut from this server's host share it.
func (r *Runner) place(m muster.Machine) analysis.Place {
	p := analysis.Place{Rack: m.Facts.Rack}
	if r.c.Providers.Of(m.Provider).SharesHost {
		p.Host = r.c.Issuer
	}
	return p
}

// stand fills in what the machines of the nodes stand in.
func (r *Runner) stand(tx *store.Tx, s *subject) error {
	if r.c.Stands == nil {
		return nil
	}
	stands, known, err := r.c.Stands(tx, s.machines)
	if err != nil || !known {
		return err
	}
	for i, m := range s.machines {
		s.places[i].Path = analysis.PathOf(stands(m.ID))
	}
	return nil
}

// countNeighbours counts the machines of other clusters on the hosts of ours.
func (j *job) countNeighbours(tx *store.Tx, places []analysis.Place) ([]int, error) {
	out := make([]int, len(places))
	if !slices.ContainsFunc(places, func(p analysis.Place) bool { return p.Host != "" }) {
		return out, nil // each is its own host
	}
	held, err := tx.Machines(store.MachineFilter{Phases: []muster.MachinePhase{muster.MachineAllocated, muster.MachineActive}})
	if err != nil {
		return nil, err
	}
	on := map[string]int{}
	for _, m := range held {
		if host := j.r.place(m).Host; host != "" && m.Cluster != j.cluster {
			on[host]++
		}
	}
	for i, p := range places {
		out[i] = on[p.Host]
	}
	return out, nil
}

// recount counts the neighbours once more: who came meanwhile shared the hosts, too.
func (j *job) recount(ctx context.Context, s *subject) error {
	return j.r.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		now, err := j.countNeighbours(tx, s.places)
		for i, n := range now {
			s.neighbours[i] = max(s.neighbours[i], n)
		}
		return err
	})
}

// current reports whether the measurement is still wanted, and of these nodes.
func (s *subject) current(tx *store.Tx) error {
	c, err := tx.Cluster(s.cluster.ID)
	if err != nil {
		return err
	}
	if m := c.Measurement; m == nil || m.ID != s.m.ID || !m.Phase.Open() || c.Phase == muster.ClusterDeleting || c.Phase == muster.ClusterFailed {
		return errStale
	}
	all, err := tx.Nodes(s.cluster.ID)
	if err != nil {
		return err
	}
	now := muster.ToMeasure(all, s.m.Nodes)
	if muster.DigestOfNodes(now) == s.m.Of {
		return nil
	}
	for _, was := range s.nodes {
		i := slices.IndexFunc(now, func(n muster.Node) bool { return n.Name == was.Name })
		if i < 0 || now[i].Attempt != was.Attempt || now[i].Machine != was.Machine {
			return muster.Errorf(muster.EConflict, "%s was lost or booted again while it was measured", was.Name).Because(muster.ReasonChangedMeanwhile).WithHint("measure again when all nodes are ready")
		}
	}
	return muster.Errorf(muster.EConflict, "the cluster changed while it was measured").Because(muster.ReasonChangedMeanwhile).WithHint("measure again when all nodes are ready")
}

// names of the nodes, in their order.
func (s *subject) names() []string {
	list := make([]string, len(s.nodes))
	for i, n := range s.nodes {
		list[i] = n.Name
	}
	return list
}

// validated are the nodes as package analysis knows them.
func (s *subject) validated() []analysis.Node {
	list := make([]analysis.Node, len(s.nodes))
	for i, n := range s.nodes {
		list[i] = analysis.Node{Name: n.Name, Class: s.machines[i].Facts.Class, Place: s.places[i]}
	}
	return list
}
