package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/provider/metal"
	"github.com/muster-hpc/muster/store"
)

// Adoption is what can be adopted of a state directory whose store is lost or old, or was.
type Adoption struct {
	Clusters []AdoptedCluster
	// Left are machines that run and that nothing proves to be a cluster's. The next
	// start names them, and touches nothing until they are ended.
	Left []string
	// Notes tell what could not be used, and what adoption cannot bring back.
	Notes []string
}

// AdoptedCluster is one cluster of an adoption.
type AdoptedCluster struct {
	ID     muster.ClusterID
	Name   string
	Owner  string
	Proven []string // nodes whose machine runs for them
	Absent []string // nodes whose machine does not run: it is started again, or replaced
}

// attemptJump is how far attempts go on above what the copy of a cluster knows, where no
// machine says more: no boot of before can have the number of a later one.
const attemptJump = 1000

// Adopt makes a store, or completes an old one, from the copies of clusters beside it and
// from what runs on this host. Only what a machine proves is adopted: its processes are in
// the control group of this site, and the note of that very boot, which only root of the
// host can write, names the cluster. A machine that two nodes could claim is neither's.
// Without yes nothing is changed.
//
// Errors: EConflict while a server runs, or when the keys of the site are lost.
func Adopt(ctx context.Context, dir string, yes bool) (_ *Adoption, err error) {
	c := Config{State: dir}
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	st, err := openState(ctx, c.State)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	had, err := readSite(c.State)
	if err != nil {
		return nil, err
	}
	if had == nil {
		return nil, muster.Errorf(muster.ENotFound, "%s does not say whose it is: %s is not there", c.State, st.path(siteFile)).
			WithHint("bring it back with `muster restore FILE --state %s`", c.State)
	}
	if now, err := authorityOf(c.State); err != nil || had.Authority != "" && now != had.Authority {
		return nil, muster.Errorf(muster.EConflict, "the keys of the site are lost, or others: its nodes would not believe this server").
			WithHint("bring them back with `muster restore FILE --state %s`", c.State).Wrap(err)
	}
	plan, err := planAdoption(c.State, had.Instance)
	if err != nil {
		return nil, err
	}
	if yes {
		err = plan.carryOut(ctx, &c, st, *had)
	}
	return plan.told(), err
}

// adoption is what is adopted, as records.
type adoption struct {
	copies  []clusterCopy // of clusters that have a proven node
	running map[muster.MachineID]local.Found
	left    []local.Found
	notes   []string
}

// planAdoption looks at what is there and changes nothing.
func planAdoption(dir, instance string) (*adoption, error) {
	running, err := local.FindRunning(dir, instance)
	if err != nil {
		return nil, err
	}
	list, bad := readCopies(dir)
	return adoptable(instance, running, list, bad), nil
}

// adoptable judges what runs by the copies. bad are those that cannot be read.
func adoptable(instance string, running []local.Found, list []clusterCopy, bad []error) *adoption {
	a := &adoption{running: map[muster.MachineID]local.Found{}}
	for _, err := range bad {
		a.notes = append(a.notes, err.Error())
	}
	claims := map[muster.MachineID]int{}
	for _, c := range list {
		for _, n := range c.Nodes {
			if n.Machine != "" && c.Instance == instance {
				claims[n.Machine]++
			}
		}
	}
	byCluster := map[muster.ClusterID][]local.Found{}
	for _, f := range running {
		if !f.Trial {
			byCluster[f.Cluster] = append(byCluster[f.Cluster], f)
		}
	}
	taken := map[muster.MachineID]bool{}
	for _, c := range list {
		if c.Instance != instance {
			a.notes = append(a.notes, fmt.Sprintf("the copy of %s is of another site", c.Cluster.ID))
			continue
		}
		proven := 0
		for _, f := range byCluster[c.Cluster.ID] {
			i := slices.IndexFunc(c.Nodes, func(n muster.Node) bool { return n.Machine == f.Machine })
			switch {
			case i < 0 || claims[f.Machine] != 1 || f.Attempt < c.Nodes[i].Attempt:
				continue
			case c.Nodes[i].Phase == muster.NodeFencing || c.Nodes[i].Phase == muster.NodeFenced || c.Nodes[i].Phase == muster.NodeGone:
				continue // it was given up before
			}
			a.running[f.Machine], taken[f.Machine] = f, true
			proven++
		}
		if proven == 0 {
			a.notes = append(a.notes, fmt.Sprintf("cluster %s (%s) is not adopted: none of its machines runs; its volumes stay on the disk", c.Cluster.Name, c.Cluster.ID))
			continue
		}
		a.copies = append(a.copies, c)
	}
	for _, f := range running {
		if !f.Trial && !taken[f.Machine] {
			a.left = append(a.left, f)
		}
	}
	a.notes = append(a.notes, "not brought back: projects and people without a cluster, tokens, history, certificates, what was measured, and records of bare machines; rights that were taken since a copy was written (a second before the end, at most) are there again")
	return a
}

// told is the plan for people.
func (a *adoption) told() *Adoption {
	out := &Adoption{Notes: a.notes}
	for _, c := range a.copies {
		t := AdoptedCluster{ID: c.Cluster.ID, Name: c.Cluster.Name, Owner: c.Cluster.Owner}
		for _, n := range c.Nodes {
			if n.Phase == muster.NodeGone {
				continue
			}
			if _, ok := a.running[n.Machine]; ok {
				t.Proven = append(t.Proven, n.Name)
			} else {
				t.Absent = append(t.Absent, n.Name)
			}
		}
		out.Clusters = append(out.Clusters, t)
	}
	for _, f := range a.left {
		out.Left = append(out.Left, foundNames([]local.Found{f}))
	}
	slices.Sort(out.Left)
	return out
}

// carryOut writes the records, all of them or none, and begins a new epoch.
func (a *adoption) carryOut(ctx context.Context, c *Config, st *state, had site) error {
	path := st.path("muster.db")
	if absent(path) { // what is left of a lost one is none
		if err := errors.Join(removeIfThere(path+"-wal"), removeIfThere(path+"-shm"), removeIfThere(path)); err != nil {
			return err
		}
	}
	if err := metal.ForgetCleaned(st.path("metal")); err != nil {
		return err
	}
	db, err := store.Open(ctx, path, store.Options{Clock: c.Clock, Log: c.Log, Headroom: store.Headroom})
	if err != nil {
		return err
	}
	epoch, err := epochOf(ctx, db)
	if err == nil {
		had.Epoch, had.Newer = max(epoch, had.highest())+1, newer{}
		err = db.Update(ctx, muster.System(), func(tx *store.Tx) error {
			if err := errors.Join(tx.SetMeta(metaInstance, had.Instance), tx.BeginEpoch(had.Epoch)); err != nil {
				return err
			}
			for i := range a.copies {
				if err := a.put(tx, &a.copies[i]); err != nil {
					return fmt.Errorf("adopt %s: %w", a.copies[i].Cluster.ID, err)
				}
			}
			return nil
		})
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	return had.write(c.State)
}

// put writes the records of one cluster. They go the way that such records always go, in
// one transaction.
func (a *adoption) put(tx *store.Tx, c *clusterCopy) error {
	if _, err := tx.Cluster(c.Cluster.ID); muster.CodeOf(err) != muster.ENotFound {
		return err // an old store knows it: its word stands
	}
	const why = "adopted: its machines run, and the store was lost"
	for _, u := range c.Users {
		if _, err := tx.User(u.Name); muster.CodeOf(err) != muster.ENotFound {
			if err != nil {
				return err
			}
			continue
		}
		if err := tx.PutUser(u, why); err != nil {
			return err
		}
	}
	last := c.Cluster
	steps := way(muster.ClusterPhases(), muster.ClusterPhase.CanBecome, last.Phase)
	early := slices.IndexFunc(steps, muster.ClusterPhase.HoldsMachines)
	if early < 0 {
		early = len(steps) - 1
	}
	for i, phase := range steps {
		if i == early+1 {
			if err := a.putParts(tx, c, why); err != nil {
				return err
			}
		}
		last.Phase = phase
		if err := tx.PutCluster(last, why); err != nil {
			return err
		}
	}
	if early == len(steps)-1 {
		return a.putParts(tx, c, why)
	}
	return nil
}

// putParts writes the nodes, machines, volumes and secrets of a cluster.
func (a *adoption) putParts(tx *store.Tx, c *clusterCopy, why string) error {
	for name, value := range c.Secrets {
		if err := tx.PutSecret(c.Cluster.ID, name, value); err != nil {
			return err
		}
	}
	for _, v := range c.Volumes {
		for _, phase := range way(muster.VolumePhases(), muster.VolumePhase.CanBecome, v.Phase) {
			v.Phase = phase
			if err := tx.PutVolume(v, why); err != nil {
				return err
			}
		}
	}
	attempt := func(id muster.MachineID, known int64) int64 {
		if f, ok := a.running[id]; ok {
			return f.Attempt
		}
		return known + attemptJump
	}
	for _, n := range c.Nodes {
		n.Attempt = attempt(n.Machine, n.Attempt)
		for _, phase := range way(muster.NodePhases(), muster.NodePhase.CanBecome, n.Phase) {
			n.Phase = phase
			if err := tx.PutNode(n, why); err != nil {
				return err
			}
		}
	}
	for _, m := range c.Machines {
		m.Attempt = attempt(m.ID, m.Attempt)
		steps := way(muster.MachinePhases(), muster.MachinePhase.CanBecome, m.Phase)
		cluster, node := m.Cluster, m.Node
		for _, phase := range steps {
			m.Phase, m.Cluster, m.Node = phase, "", ""
			if phase.Held() {
				m.Cluster, m.Node = cluster, node
			}
			if err := tx.PutMachine(m, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// way is the shortest way of phases that a table allows, from none to one.
func way[P comparable](all []P, can func(P, P) bool, to P) []P {
	var none P
	before := map[P]P{}
	for at := []P{none}; len(at) > 0; {
		var next []P
		for _, p := range at {
			for _, q := range all {
				if _, seen := before[q]; seen || q == p || !can(p, q) {
					continue
				}
				before[q] = p
				if q == to {
					var out []P
					for ; q != none; q = before[q] {
						out = append(out, q)
					}
					slices.Reverse(out)
					return out
				}
				next = append(next, q)
			}
		}
		at = next
	}
	return nil
}
