package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// IdleBenchmarks says when machines that nobody uses are measured by themselves.
type IdleBenchmarks struct {
	// Every is after how long a machine is measured again. 0: never.
	Every time.Duration
	// After is how long a machine must have been free. 0: ten minutes.
	After time.Duration
	// Host is the computer that a machine is a part of; "" if it is one of its own.
	// What is measured there would slow down whoever uses another part. Nil: all
	// that are parts of the server's host.
	Host func(muster.Machine) string
}

// host is the default of IdleBenchmarks.Host.
func (s *Service) host(m muster.Machine) string {
	if s.Providers.Of(m.Provider).SharesHost {
		return s.Instance
	}
	return ""
}

// Those who own what Muster makes for itself: nobody can be called so.
const idleOwner = "system"

// Machines that are measured together: enough to tell a slow one from the others,
// and seldom one by itself.
const (
	idleTogether = 8
	idleLeast    = 4
	// idleAgain is how soon a machine is tried again whose measurement came to nothing:
	// because somebody wanted it, or because it cannot be measured.
	idleAgain = 6 * time.Hour
	// idleShare is for how many machines of the site one cluster more may measure
	// at the same time.
	idleShare = 1000
)

// RunIdleBenchmarks measures machines that nobody uses and that were not measured for
// long, a few at a time, and gives back those of earlier calls if anybody waits for
// machines. It is to be called every minute or so, by one caller.
func (s *Service) RunIdleBenchmarks(ctx context.Context) error {
	if s.policy.Load().IdleBenchmarks.Every <= 0 {
		return nil
	}
	var site idleSite
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		site, err = s.lookAtIdle(tx)
		return err
	})
	if err != nil {
		return err
	}
	for _, c := range site.over {
		if _, err := s.DeleteCluster(ctx, muster.System(), string(c)); err != nil {
			return err
		}
	}
	if len(site.chosen) == 0 {
		return nil
	}
	if s.tried == nil {
		s.tried = map[muster.MachineID]time.Time{}
	}
	for _, m := range site.chosen {
		s.tried[m.ID] = s.Clock.Now()
	}
	return s.beginBenchmark(ctx, site.chosen)
}

// idleSite is what is to be done about idle machines.
type idleSite struct {
	over   []muster.ClusterID // to be given back now
	chosen []muster.Machine   // to be measured now
}

// beforePromise is how long before a promise is due nobody measures idle machines any more.
const beforePromise = 2 * time.Minute

func (s *Service) lookAtIdle(tx *store.Tx) (idleSite, error) {
	var out idleSite
	living, err := tx.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		return out, err
	}
	waits, measuring := false, 0
	for _, c := range living {
		switch {
		case c.Benchmark && c.Phase == muster.ClusterFailed:
			out.over = append(out.over, c.ID)
		case c.Benchmark && c.Phase.HoldsMachines():
			measuring++
		case c.Promise != nil && c.Phase == muster.ClusterReserved:
			take := c.Promise.Start.Add(-time.Duration(c.Promise.Lead) - beforePromise)
			waits = waits || !s.Clock.Now().Before(take)
		case c.Phase == muster.ClusterQueued, hasCondition(c.Conditions, muster.ConditionWaitingForSpare):
			waits = true
		}
	}
	if waits {
		for _, c := range living {
			if c.Benchmark && c.Phase != muster.ClusterDeleting && !slices.Contains(out.over, c.ID) {
				out.over = append(out.over, c.ID)
			}
		}
		return out, nil
	}
	machines, err := tx.Site()
	if err != nil || measuring > len(machines)/idleShare {
		return out, err
	}
	last, err := tx.LastMeasured()
	if err != nil {
		return out, err
	}
	out.chosen = s.chooseBenchmark(machines, last)
	return out, nil
}

func hasCondition(list []muster.Condition, code muster.ConditionCode) bool {
	return slices.ContainsFunc(list, func(c muster.Condition) bool { return c.Code == code })
}

// notDisturbed: who is disturbed is measured again, to see whether it still is.
func notDisturbed(c muster.Condition) bool { return c.Code != muster.ConditionDisturbed }

// chooseBenchmark picks machines of one class that may be measured: those first that were
// not measured for the longest time, and with them others of the class, so that there
// is something to compare them with. None of them was measured lately: none is chosen.
func (s *Service) chooseBenchmark(machines []muster.Machine, last map[muster.MachineID]time.Time) []muster.Machine {
	now := s.Clock.Now()
	idle := s.policy.Load().IdleBenchmarks
	after := cmp.Or(idle.After, 10*time.Minute)
	used := map[string]bool{}
	for _, m := range machines {
		if h := idle.Host(m); h != "" && m.Phase.Held() {
			used[h] = true
		}
	}
	var free []muster.Machine
	for _, m := range machines {
		f := m.Facts
		if m.Phase != muster.MachineFree || m.Intent != muster.IntentNone || slices.ContainsFunc(m.Conditions, notDisturbed) || f.Oversubscribed || f.Service || used[idle.Host(m)] || now.Sub(m.PhaseSince) < after || now.Sub(s.tried[m.ID]) < idleAgain {
			continue
		}
		free = append(free, m)
	}
	slices.SortFunc(free, func(a, b muster.Machine) int {
		return cmp.Or(last[a.ID].Compare(last[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	due := func(m muster.Machine) bool { return now.Sub(last[m.ID]) >= idle.Every }
	if len(free) == 0 || !due(free[0]) {
		return nil
	}
	var chosen []muster.Machine
	for _, m := range free {
		alike := m.Facts.Class == free[0].Facts.Class && m.Provider == free[0].Provider
		if alike && len(chosen) < idleTogether && (due(m) || len(chosen) < idleLeast) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// beginBenchmark makes a cluster of these machines, which is measured and then ends. Where
// that cannot be, nothing happens.
func (s *Service) beginBenchmark(ctx context.Context, machines []muster.Machine) error {
	id := muster.NewClusterID()
	no := false
	name := "idle-" + string(id)[len(id)-6:]
	sp, problems := spec.Validate(wire.Request{
		Name: name, Nodes: len(machines), Project: idleOwner, Head: string(muster.HeadShared), Scheduler: string(muster.SchedulerNone), Users: []string{"idle"},
		Validate: string(muster.ValidateQuick), Egress: string(muster.EgressNone), Retain: "0", Queue: &no,
		Machine: wire.MachineConstraints{Class: machines[0].Facts.Class, Provider: machines[0].Provider},
	}, s.policy.Load().Defaults)
	if len(problems) > 0 {
		return spec.Error(problems)
	}
	sp.Users = nil // a request needs one; here nobody logs in
	img, err := s.Config.Images.Resolve(sp.Image)
	if err != nil {
		s.Log.Debug("idle benchmark skipped: no image", "image", sp.Image, "error", err)
		return nil
	}
	w := parsedRequest{spec: sp, image: img, owner: idleOwner}
	keys, err := newSecrets(w)
	if err != nil {
		return err
	}
	only := make([]muster.MachineID, len(machines))
	for i, m := range machines {
		only[i] = m.ID
	}
	demand := allocate.Demand{Cluster: id, Purpose: allocate.Benchmark, Spec: sp, Image: img, Only: only}
	answers, err := s.Allocator.Take(ctx, muster.System(), allocate.Taking{
		Ahead: []admit.Waiting{}, Now: true,
		Demands: func(*store.Tx) ([]allocate.Demand, error) { return []allocate.Demand{demand}, nil },
		Record: func(tx *store.Tx, _ []allocate.Demand, answers []muster.Answer) error {
			c := s.newCluster(id, w)
			c.Benchmark = true
			if err := s.assign(tx, &c, img, *answers[0].Plan, keys, "made to measure idle machines"); err != nil {
				return err
			}
			return s.takeVolumes(tx, c)
		},
	})
	if err == nil && answers[0].Verdict != muster.VerdictNow {
		s.Log.Debug("idle benchmark skipped", "reason", admit.Refusal(sp, answers[0]))
		return nil
	}
	if err == nil {
		s.Changed(id)
	}
	return err
}

// preemptBenchmarks ends the measurement of idle machines for somebody who needs machines: all of
// it if they have to wait, otherwise where it would slow theirs down. It reports whether
// anything was ended.
func (s *Service) preemptBenchmarks(ctx context.Context, a muster.Answer) bool {
	idle := s.policy.Load().IdleBenchmarks
	if idle.Every <= 0 {
		return false
	}
	var over []muster.ClusterID
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		living, err := tx.Clusters(store.ClusterFilter{Living: true})
		if err != nil {
			return err
		}
		living = slices.DeleteFunc(living, func(c muster.Cluster) bool {
			return !c.Benchmark || !c.Phase.HoldsMachines() || c.Phase == muster.ClusterDeleting
		})
		if len(living) == 0 {
			return nil
		}
		hosts := map[string]bool{}
		if a.Plan != nil {
			for _, n := range a.Plan.Assign {
				m, err := tx.Machine(n.Machine)
				if err != nil {
					return err
				}
				hosts[idle.Host(m)] = true
			}
		}
		for _, c := range living {
			beside := a.Verdict != muster.VerdictNow
			if !beside {
				machines, err := tx.Machines(store.MachineFilter{Cluster: c.ID})
				if err != nil {
					return err
				}
				beside = slices.ContainsFunc(machines, func(m muster.Machine) bool {
					return idle.Host(m) != "" && hosts[idle.Host(m)]
				})
			}
			if beside {
				over = append(over, c.ID)
			}
		}
		return nil
	})
	for _, id := range over {
		if err == nil {
			_, err = s.DeleteCluster(ctx, muster.System(), string(id))
		}
	}
	if err != nil {
		s.Log.Warn("releasing benchmarked machines failed", "error", err)
	}
	return len(over) > 0
}
