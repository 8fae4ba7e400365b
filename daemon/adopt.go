package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/lockfile"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/provider/local"
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
// A store that knows a cluster as well as its copy and its machines do is left as it is.
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
		had = impliedSite(c.State)
	}
	if had == nil {
		return nil, muster.Errorf(muster.ENotFound, "%s does not say whose it is: %s is not there", c.State, st.path(siteFile)).Because(muster.ReasonNoState).
			WithHint("bring it back with `muster restore FILE --state %s`", c.State)
	}
	if now, err := authorityOf(c.State); err != nil || had.Authority != "" && now != had.Authority {
		return nil, muster.Errorf(muster.EConflict, "the keys of the site are lost, or others: its nodes would not believe this server").Because(muster.ReasonKeysMissing).
			WithHint("bring them back with `muster restore FILE --state %s`", c.State).Wrap(err)
	}
	plan, err := planAdoption(c.State, had.Instance)
	if err != nil {
		return nil, err
	}
	if yes {
		err = plan.carryOut(ctx, &c, st, *had)
	} else {
		err = plan.rehearse(ctx, &c, st, *had)
	}
	if err != nil {
		return nil, err
	}
	return plan.told(), nil
}

// impliedSite is what a directory that lost its site.json was, by the copies of its
// clusters and by what this host remembers; nil: nothing tells, or more than one thing.
func impliedSite(dir string) *site {
	names := instancesOf(dir, nil)
	if len(names) != 1 {
		return nil
	}
	s := site{Instance: names[0], Epoch: 1}
	copies, _ := readCopies(dir)
	for _, c := range copies {
		s.Epoch = max(s.Epoch, c.Epoch)
	}
	return &s
}

// adoption is what is adopted, as records.
type adoption struct {
	copies  []clusterCopy // of clusters that have a proven node; once in a store, of those that it took
	running map[muster.MachineID]local.Found
	noted   map[muster.MachineID]muster.ClusterID // what notes say of all that run
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
	noted := map[muster.MachineID]muster.ClusterID{}
	byCluster := map[muster.ClusterID][]local.Found{}
	for _, f := range running {
		if !f.Trial {
			noted[f.Machine] = f.Cluster
			byCluster[f.Cluster] = append(byCluster[f.Cluster], f)
		}
	}
	a.noted = noted
	claims := claimsOf(list, instance, noted)
	taken := map[muster.MachineID]bool{}
	for _, c := range list {
		if c.Instance != instance {
			a.notes = append(a.notes, fmt.Sprintf("the copy of %s is of another site", c.Cluster.ID))
			continue
		}
		proven := 0
		for _, f := range byCluster[c.Cluster.ID] {
			i := slices.IndexFunc(c.Nodes, func(n muster.Node) bool { return n.Machine == f.Machine && claims.won(n) })
			switch {
			case i < 0 || f.Attempt < c.Nodes[i].Attempt:
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
	claims = claimsOf(a.copies, instance, noted) // what is not adopted holds nothing
	for i := range a.copies {
		a.copies[i] = claims.strip(a.copies[i])
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
	if err := a.into(ctx, c, path, &had); err != nil {
		return err
	}
	return had.write(c.State)
}

// rehearse does with a copy of the store what carryOut would do with the store itself, so
// that nothing is promised that is not kept.
func (a *adoption) rehearse(ctx context.Context, c *Config, st *state, had site) (err error) {
	one, err := lockfile.Take(ctx, st.path(".backup.lock"))
	if err != nil {
		return muster.Errorf(muster.EConflict, "a backup or a restore of %s is under way", c.State).Because(muster.ReasonServerRunning).WithHint("wait for it").Wrap(err)
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	if err := removeStages(c.State); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(c.State, stagePrefix)
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "nothing can be tried in %s", c.State).Because(muster.ReasonDiskFull).WithHint("is its disk full?").Wrap(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	path := filepath.Join(stage, "muster.db")
	if from := st.path("muster.db"); !absent(from) {
		if err := store.Snapshot(ctx, from, path); err != nil {
			return err
		}
	}
	return a.into(ctx, c, path, &had)
}

// into writes the records into the store at path, which it makes if need be, and brings
// the site to its next epoch. What is told of the adoption is then what became of it.
func (a *adoption) into(ctx context.Context, c *Config, path string, at *site) (err error) {
	db, err := store.Open(ctx, path, store.Options{Clock: c.Clock, Log: c.Log, Headroom: store.Headroom})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	epoch, err := epochOf(ctx, db)
	if err != nil {
		return err
	}
	at.Epoch, at.Newer = max(epoch, at.highest())+1, newer{}
	var copies []clusterCopy
	notes := a.notes
	err = db.Update(ctx, muster.System(), func(tx *store.Tx) error {
		copies, a.notes = nil, slices.Clip(notes) // it may run again
		if err := errors.Join(tx.SetMeta(metaInstance, at.Instance), tx.BeginEpoch(at.Epoch)); err != nil {
			return err
		}
		for _, one := range a.copies {
			adopted, err := a.put(tx, &one, epoch)
			if err != nil {
				return fmt.Errorf("adopt %s: %w", one.Cluster.ID, err)
			}
			if adopted {
				copies = append(copies, one)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	a.copies = copies
	a.left, err = unknownMachines(ctx, db, c.State, at.Instance, at.Epoch)
	return err
}
