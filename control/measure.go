package control

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Measure begins a measurement of a ready cluster, or ends the one under way.
func (s *Service) Measure(ctx context.Context, who muster.Actor, ref string, r wire.MeasureRequest) (wire.MeasureReply, error) {
	var out wire.MeasureReply
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		if err := tx.MayChange(c); err != nil {
			return err
		}
		text := "its speed is measured, asked for by " + who.Name
		if r.Stop {
			text, err = "the benchmark run was ended by "+who.Name, s.stopMeasurement(&c, who)
		} else {
			err = s.beginMeasurement(tx, &c, who, r)
		}
		if err != nil {
			return err
		}
		out = wire.MeasureReply{Cluster: c.ID, Name: c.Name, Measurement: *c.Measurement}
		return tx.PutCluster(c, text)
	})
	return out, err
}

func (s *Service) stopMeasurement(c *muster.Cluster, who muster.Actor) error {
	m := c.Measurement
	if m == nil || !m.Phase.Open() {
		return muster.Errorf(muster.EConflict, "cluster %s is not being measured", c.Name).Because(muster.ReasonNotBeingMeasured).WithHint("see 'muster certificate list %s' for what was", c.Name)
	}
	ended := *m
	ended.Phase, ended.Ended, ended.ETA = muster.MeasurementFailed, s.Clock.Now(), time.Time{}
	ended.Reason = muster.Errorf(muster.EConflict, "it was ended by %s", who.Name).Because(muster.ReasonMeasurementEnded)
	c.Measurement = &ended
	return nil
}

func (s *Service) beginMeasurement(tx *store.Tx, c *muster.Cluster, who muster.Actor, r wire.MeasureRequest) error {
	level := muster.Validation(cmp.Or(r.Level, string(muster.ValidateQuick)))
	if level != muster.ValidateQuick && level != muster.ValidateFull {
		return muster.Errorf(muster.EInvalid, "level cannot be %q", r.Level).Because(muster.ReasonBadValue).WithHint("write quick or full")
	}
	all, err := tx.Nodes(c.ID)
	if err != nil {
		return err
	}
	what, budget, err := whatToRun(r)
	if err != nil {
		return err
	}
	files, err := filesToWrite(r, level)
	if err != nil {
		return err
	}
	names, err := namesToMeasure(*c, all, r.Nodes)
	if err != nil {
		return err
	}
	nodes := muster.ToMeasure(all, names)
	if err := s.holds(tx, nodes, files); err != nil {
		return err
	}
	if err := s.mayMeasure(*c, all, nodes, r.Force); err != nil {
		return err
	}
	c.Measurement = &muster.Measurement{
		ID: muster.NewMeasurementID(), Level: level, Trigger: muster.TriggerRequest, By: who.Name, Nodes: names, Of: muster.DigestOfNodes(nodes),
		Reserve: reserve(*c, nodes, r.Force), What: what, Budget: muster.Duration(budget), Files: files, Seed: rand.Uint64(), Phase: muster.MeasurementWanted, Wanted: s.Clock.Now(),
	}
	return nil
}

// Bounds of how long HPL may take, and what is usual.
const (
	hplLeast = 30 * time.Second
	hplUsual = 5 * time.Minute
	hplMost  = 24 * time.Hour
)

// whatToRun reads what a request wants to have run, and for how long.
func whatToRun(r wire.MeasureRequest) (what string, budget time.Duration, err error) {
	switch {
	case r.What == "" && r.For != "":
		return "", 0, muster.Errorf(muster.EInvalid, "for says how long hpl may take; the probe takes what its level needs").Because(muster.ReasonContradiction).WithHint("leave it out, or write what: hpl")
	case r.What == "":
		return "", 0, nil
	case r.What != muster.MeasuresHPL:
		return "", 0, muster.Errorf(muster.EInvalid, "what cannot be %q", r.What).Because(muster.ReasonBadValue).WithHint("write hpl, or leave it out")
	case r.For == "":
		return r.What, hplUsual, nil
	}
	if budget, err = spec.ParseDuration(r.For); err != nil {
		return "", 0, err
	}
	if budget < hplLeast || budget > hplMost {
		return "", 0, muster.Errorf(muster.EInvalid, "hpl cannot run for %s", r.For).Because(muster.ReasonOutOfRange).WithHint("write a time from 30s to 24h")
	}
	return r.What, budget, nil
}

// filesMost is the most that may be written to files.
const filesMost = 1 << 50

// filesToWrite reads how much is to be written to files.
func filesToWrite(r wire.MeasureRequest, level muster.Validation) (int64, error) {
	switch {
	case r.Files == "":
		return 0, nil
	case r.What != "" || level != muster.ValidateFull:
		return 0, muster.Errorf(muster.EInvalid, "files are measured by level full only").Because(muster.ReasonContradiction).WithHint("leave files out, or write level: full")
	case r.Files == "memory":
		return muster.FilesBeyondMemory, nil
	}
	n, err := spec.ParseBytes(r.Files)
	if err != nil || n < 1<<20 || n > filesMost {
		return 0, muster.Errorf(muster.EInvalid, "files cannot be %.40q", r.Files).Because(muster.ReasonBadValue).WithHint("write a size from 1MiB to 1PiB, such as 64GiB, or memory")
	}
	return n, nil
}

// holds reports whether what is to be written to files fits where homes lie, with a fifth
// of what is free left to others.
func (s *Service) holds(tx *store.Tx, nodes []muster.Node, files int64) error {
	free := s.HomeFree()
	if free < 0 || files == 0 {
		return nil
	}
	if files == muster.FilesBeyondMemory {
		files = 0
		for _, n := range nodes {
			m, err := tx.Machine(n.Machine)
			if err != nil {
				return err
			}
			files += m.Facts.Memory + m.Facts.Memory/10
		}
	}
	if most := free / 5 * 4; files > most {
		return muster.Errorf(muster.EInvalid, "files of %.1f GiB do not fit: %.1f GiB are free where homes lie", float64(files)/(1<<30), float64(free)/(1<<30)).Because(muster.ReasonNotEnoughDisk).
			WithHint("write at most %.0f GiB to files", math.Floor(float64(most)/(1<<30)))
	}
	return nil
}

// namesToMeasure reads the set of nodes of a request; none: all of them.
func namesToMeasure(c muster.Cluster, all []muster.Node, set string) ([]string, error) {
	if set == "" {
		return nil, nil
	}
	names, err := nodeset.Expand(set)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "nodes is not a set of nodes: %v", err).Because(muster.ReasonBadSyntax).WithHint("write it like n[01-04] or n01,n03")
	}
	var have, bad []string
	for _, n := range all {
		if n.Role == muster.RoleCompute && n.Phase == muster.NodeReady {
			have = append(have, n.Name)
		}
	}
	for _, name := range names {
		if !slices.Contains(have, name) {
			bad = append(bad, name)
		}
	}
	if len(bad) > 0 {
		return nil, muster.Errorf(muster.EInvalid, "cluster %s has no such compute nodes that are ready: %s", c.Name, strings.Join(bad, ", ")).Because(muster.ReasonNoSuchNode).
			WithHint("it has %s", nodeset.Fold(have))
	}
	return names, nil
}

// mayMeasure reports why a cluster cannot be measured now.
func (s *Service) mayMeasure(c muster.Cluster, all, nodes []muster.Node, force bool) error {
	switch {
	case c.Phase != muster.ClusterReady || !c.Ending.IsZero():
		return inUse(c, "measured")
	case c.Measurement != nil && c.Measurement.Phase.Open():
		return muster.Errorf(muster.EConflict, "cluster %s is being measured already", c.Name).Because(muster.ReasonBeingMeasured).
			WithHint("wait with 'muster certificate run %s --attach', or end it with --stop", c.Name)
	case c.Scaling != nil:
		return muster.Errorf(muster.EConflict, "cluster %s changes its size", c.Name).Because(muster.ReasonBeingScaled).WithHint("ask again when that is done: muster events -f %s", c.Name)
	case len(nodes) == 0:
		return muster.Errorf(muster.EConflict, "no compute node of cluster %s is ready", c.Name).Because(muster.ReasonNotReady).WithHint("see 'muster show %s'", c.Name)
	}
	for _, n := range all {
		wanted := slices.ContainsFunc(nodes, func(m muster.Node) bool { return m.Name == n.Name })
		if wanted && n.Machine != "" && s.CanMeasure != nil && !s.CanMeasure(n.Machine) {
			return muster.Errorf(muster.EInvalid, "the image of cluster %s has nothing to measure with (%s says so)", c.Name, n.Name).Because(muster.ReasonImageLacks).
				WithHint("use the image hpc, or one that is made from it")
		}
		if n.Head && s.Scheduler != nil && !force {
			if busy := busyNodes(s.Scheduler(n.Machine), nodes); len(busy) > 0 {
				hint := "wait until they are done (that is known here within ten seconds), or say --force"
				if len(busy) < len(nodes) {
					hint = "measure the others with --nodes, wait until the jobs are done (that is known here within ten seconds), or say --force"
				}
				return muster.Errorf(muster.EConflict, "jobs run on %s of cluster %s: they would be slowed down, and the figures would be wrong", nodeset.Fold(busy), c.Name).Because(muster.ReasonJobsRun).WithHint("%s", hint)
			}
		}
	}
	return nil
}

// busyNodes are those on which a job runs, as far as their scheduler has said.
func busyNodes(state *wire.SchedulerState, nodes []muster.Node) []string {
	var busy []string
	if state == nil {
		return nil
	}
	for _, n := range nodes {
		switch strings.TrimRight(strings.ToLower(state.Nodes[n.Name]), "*") {
		case "mixed", "allocated", "completing", "draining":
			busy = append(busy, n.Name)
		}
	}
	return busy
}

// reserve are the nodes to which the scheduler gives no jobs while they are measured:
// all of them, unless it is to be beside jobs.
func reserve(c muster.Cluster, nodes []muster.Node, force bool) []string {
	if force || c.Spec.Scheduler != muster.SchedulerSlurm {
		return nil
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return names
}
