package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Limits of a cluster's size; requests have the same.
const (
	mostNodes  = 4000
	mostLogins = 32
)

// Scale begins to change the size of a ready cluster. Machines for all new
// nodes are taken in the transaction that records the new size, or none are.
// Leaving nodes get no new jobs from then on; they go once their jobs are done.
// While one change is under way only its own reversal is accepted, and undoes
// it. With code ENever or ENoCapacity the answer reports why there is no room.
func (s *Service) Scale(ctx context.Context, who muster.Actor, ref string, r wire.ScaleRequest) (wire.Scaled, *muster.Answer, error) {
	if err := checkScale(r); err != nil {
		return wire.Scaled{}, nil, err
	}
	var out wire.Scaled
	var answer *muster.Answer
	_, err := s.Allocator.Take(ctx, who, allocate.Taking{
		Demands: func(tx *store.Tx) ([]allocate.Demand, error) {
			answer = nil
			sc, err := s.scaler(tx, ref, r)
			if err != nil {
				return nil, err
			}
			return sc.demands()
		},
		Record: func(tx *store.Tx, demands []allocate.Demand, answers []muster.Answer) error {
			sc, err := s.scaler(tx, ref, r)
			if err != nil {
				return err
			}
			sc.demanded, sc.answers = demands, answers
			if sc.c.Scaling != nil {
				err = sc.again()
			} else {
				err = sc.begin()
			}
			answer = sc.answer
			if err != nil {
				return err
			}
			view, err := s.showOne(tx, sc.c)
			if err != nil {
				return err
			}
			sc.out.ID, sc.out.Name, sc.out.Generation, sc.out.Logins, sc.out.Cluster = sc.c.ID, sc.c.Name, sc.c.Generation, sc.c.Spec.Logins, &view
			out = sc.out
			return nil
		},
	})
	if err != nil {
		if muster.CodeOf(err) == muster.ENoCapacity {
			s.preemptBenchmarks(ctx, muster.Answer{Verdict: muster.VerdictQueued})
		}
		return wire.Scaled{}, answer, err
	}
	s.Changed(out.ID)
	return out, nil, nil
}

// checkScale judges a request by itself.
func checkScale(r wire.ScaleRequest) error {
	ways := 0
	for _, given := range []bool{r.Nodes != 0, r.Change != 0, r.Remove != ""} {
		if given {
			ways++
		}
	}
	var problems []muster.Problem
	problem := func(why muster.Reason, field, message, hint string) {
		problems = append(problems, muster.Problem{Field: field, Reason: why, Message: message, Hint: hint})
	}
	switch {
	case ways == 0 && r.Logins == nil:
		problem(muster.ReasonRequired, "nodes", "no new size is given", "say how many nodes there should be, such as 12, +2 or -2, or which should leave")
	case ways > 1:
		problem(muster.ReasonContradiction, "nodes", "nodes, change and remove say the same thing in three ways", "give one of them")
	}
	if r.Nodes < 0 || r.Nodes > mostNodes {
		problem(muster.ReasonOutOfRange, "nodes", fmt.Sprintf("%d nodes are not possible", r.Nodes), fmt.Sprintf("write 1 to %d", mostNodes))
	}
	if r.Change < -mostNodes || r.Change > mostNodes {
		problem(muster.ReasonOutOfRange, "change", fmt.Sprintf("%d nodes are not possible", r.Change), fmt.Sprintf("at most %d at once", mostNodes))
	}
	if r.Logins != nil && (*r.Logins < 0 || *r.Logins > mostLogins) {
		problem(muster.ReasonOutOfRange, "logins", fmt.Sprintf("%d login nodes are not possible", *r.Logins), fmt.Sprintf("write 0 to %d; the head is a login node too", mostLogins))
	}
	if r.Now && r.Some {
		problem(muster.ReasonContradiction, "some", "now is for nodes that leave, some for nodes that come", "give one of them")
	}
	switch len(problems) {
	case 0:
		return nil
	case 1:
		p := problems[0]
		return muster.Errorf(muster.EInvalid, "%s", p.Message).Because(p.Reason).WithHint("%s", p.Hint)
	}
	return muster.Errorf(muster.EInvalid, "the new size has problems").Because(muster.ReasonHasProblems).Listing(problems)
}

// scaler is one change of size in the making.
type scaler struct {
	s      *Service
	tx     *store.Tx
	sys    *store.Tx
	r      wire.ScaleRequest
	c      muster.Cluster
	nodes  []muster.Node // also those that are gone
	have   int           // compute nodes now
	logins int           // login nodes now
	answer *muster.Answer
	out    wire.Scaled
	// demanded and answers are what machines were asked for, and what there are.
	demanded []allocate.Demand
	answers  []muster.Answer
}

func (s *Service) scaler(tx *store.Tx, ref string, r wire.ScaleRequest) (*scaler, error) {
	c, err := tx.FindCluster(ref)
	if err != nil {
		return nil, err
	}
	if err := tx.MayChange(c); err != nil {
		return nil, err
	}
	if err := inUse(c, "scaled"); err != nil {
		return nil, err
	}
	sc := &scaler{s: s, tx: tx, sys: tx.AsSystem(), r: r, c: c}
	if sc.nodes, err = tx.Nodes(c.ID); err != nil {
		return nil, err
	}
	for _, n := range sc.nodes {
		switch {
		case !stays(n):
		case n.Role == muster.RoleCompute:
			sc.have++
		case n.Role == muster.RoleLogin:
			sc.logins++
		}
	}
	return sc, nil
}

// stays reports whether a node belongs to the cluster and is not on its way out.
func stays(n muster.Node) bool {
	return n.Phase != muster.NodeGone && n.Phase != muster.NodeDraining
}

// inUse refuses what only a cluster that was handed over can do.
func inUse(c muster.Cluster, done string) error {
	e := muster.Errorf(muster.EConflict, "cluster %s is %s and cannot be %s", c.Name, c.Phase, done).Because(muster.ReasonWrongPhase)
	switch {
	case c.Phase == muster.ClusterReady && c.Ending.IsZero():
		return nil
	case c.Phase == muster.ClusterReady:
		return muster.Errorf(muster.EConflict, "the walltime of cluster %s is over: it is ending and cannot be %s", c.Name, done).Because(muster.ReasonWalltimeOver).
			WithHint("create a new one; its volumes are kept, see 'muster show %s'", c.ID)
	case c.Phase == muster.ClusterBuilding, c.Phase == muster.ClusterValidating, c.Phase == muster.ClusterQueued, c.Phase == muster.ClusterReserved:
		return e.WithHint("wait until it is ready: muster events -f %s", c.ID)
	}
	return e.WithHint("see 'muster show %s'", c.ID)
}

// target is how many compute and login nodes there should be, counted from
// base: from what the change under way comes to, if there is one.
func (sc *scaler) target(have, logins int) (int, int) {
	to := have
	switch {
	case sc.r.Nodes > 0:
		to = sc.r.Nodes
	case sc.r.Change != 0:
		to = have + sc.r.Change
	}
	if sc.r.Logins != nil {
		logins = *sc.r.Logins
	}
	return to, logins
}

// again answers a request while a change is under way: the same one is no
// news, the reverse undoes it, everything else has to wait.
func (sc *scaler) again() error {
	now := *sc.c.Scaling
	before := sc.c.Spec.Logins
	for _, n := range sc.nodes {
		if n.Role == muster.RoleLogin && slices.Contains(now.Joining, n.Name) {
			before--
		}
		if n.Role == muster.RoleLogin && slices.Contains(now.Leaving, n.Name) {
			before++
		}
	}
	to, logins := sc.target(now.To, sc.c.Spec.Logins)
	if sc.r.Logins == nil && to == now.From && now.From != now.To {
		logins = before
	}
	same := sc.r.Remove == "" || sc.leaveAlready(now)
	switch {
	case same && to == now.To && logins == sc.c.Spec.Logins && (!sc.r.Now || now.Now || len(now.Leaving) == 0):
		sc.out = wire.Scaled{Status: "scaling", From: now.From, To: now.To, Joining: now.Joining, Leaving: now.Leaving}
		return nil
	case same && to == now.To && logins == sc.c.Spec.Logins:
		return sc.hurry(now)
	case sc.r.Remove == "" && to == now.From && logins == before:
		return sc.undo(now, before)
	}
	text := fmt.Sprintf("cluster %s is being scaled from %d to %d nodes, asked for by %s", sc.c.Name, now.From, now.To, now.By)
	if now.From == now.To {
		text = fmt.Sprintf("cluster %s is being scaled from %d to %s, asked for by %s", sc.c.Name, before, plaintext.Count(sc.c.Spec.Logins, "login node"), now.By)
	}
	hint := fmt.Sprintf("wait for it: %s --wait; or undo it: %s", sc.command(now, now.To, before, sc.c.Spec.Logins), sc.command(now, now.From, sc.c.Spec.Logins, before))
	if len(now.Leaving) > 0 && !now.Now {
		hint += fmt.Sprintf("; or do not wait for jobs: %s --now", sc.command(now, now.To, before, sc.c.Spec.Logins))
	}
	return muster.Errorf(muster.EConflict, "%s", text).Because(muster.ReasonBeingScaled).WithHint("%s", hint)
}

// command is what asks for so many nodes and login nodes while a change is
// under way, which had another number of login nodes if it changes that.
func (sc *scaler) command(now muster.Scaling, nodes, other, logins int) string {
	text := "muster scale " + sc.c.Name
	if now.From != now.To {
		text += fmt.Sprintf(" %d", nodes)
	}
	if other != logins {
		text += fmt.Sprintf(" --login-nodes %d", logins)
	}
	return text
}

// leaveAlready reports whether the nodes to remove are the very ones that leave.
func (sc *scaler) leaveAlready(now muster.Scaling) bool {
	set, err := nodeset.Parse(sc.r.Remove)
	if err != nil || set.Count() != len(now.Leaving) {
		return false
	}
	return !slices.ContainsFunc(now.Leaving, func(name string) bool { return !set.Contains(name) })
}

// hurry turns a change that waits for jobs into one that does not.
func (sc *scaler) hurry(now muster.Scaling) error {
	for _, n := range sc.named(now.Leaving) {
		if !stays(n) {
			continue
		}
		n.Down = n.Role == muster.RoleCompute
		if err := sc.sys.PutNode(n, "leaves now; its jobs are queued again"); err != nil {
			return err
		}
	}
	now.Started = sc.s.Clock.Now()
	now.Now, now.By = true, sc.tx.Actor().Name
	sc.out = wire.Scaled{Status: "scaling", From: now.From, To: now.To, Leaving: now.Leaving}
	return sc.put(now, countThose(now.Leaving)+verb(now.Leaving, " leaves", " leave")+" now, without waiting for jobs")
}

// undo reverses the change under way. Nodes that came leave again; nodes that
// were to leave stay, unless they are being given back already.
func (sc *scaler) undo(now muster.Scaling, logins int) error {
	if len(now.Leaving) > 0 {
		for _, n := range sc.named(now.Leaving) {
			if !stays(n) || n.Down {
				return muster.Errorf(muster.EConflict, "%s already: it is too late to take that back", fold(now.Leaving)+verb(now.Leaving, " leaves", " leave")).Because(muster.ReasonTooLate).
					WithHint("wait until they are gone, then scale up again: %s", sc.command(now, now.From, sc.c.Spec.Logins, logins))
			}
			n.Leave = false
			if err := sc.sys.PutNode(n, "stays after all"); err != nil {
				return err
			}
		}
		sc.out = wire.Scaled{Status: "undoing", From: now.To, To: now.From}
		return sc.resize(now.From, logins, nil, fmt.Sprintf("stays at %s: the change was taken back", plaintext.Count(now.From, "node")))
	}
	for _, n := range sc.named(now.Joining) {
		n.Leave = true
		if err := sc.sys.PutNode(n, "leaves again: the change was taken back"); err != nil {
			return err
		}
	}
	back := muster.Scaling{From: now.To, To: now.From, Leaving: now.Joining, Now: sc.r.Now, By: sc.tx.Actor().Name, Started: sc.s.Clock.Now()}
	sc.out = wire.Scaled{Status: "undoing", From: back.From, To: back.To, Leaving: back.Leaving}
	return sc.resize(now.From, logins, &back, fmt.Sprintf("back to %s: the change was taken back", plaintext.Count(now.From, "node")))
}

// named are the nodes of that name.
func (sc *scaler) named(names []string) []muster.Node {
	var out []muster.Node
	for _, n := range sc.nodes {
		if slices.Contains(names, n.Name) {
			out = append(out, n)
		}
	}
	return out
}

// resize records the new spec and the change that leads to it; nil when there
// is nothing left to do.
func (sc *scaler) resize(nodes, logins int, change *muster.Scaling, text string) error {
	c := &sc.c
	if c.Spec.Min >= c.Spec.Nodes || c.Spec.Min > nodes {
		c.Spec.Min = nodes
	}
	c.Spec.Nodes, c.Spec.Logins = nodes, logins
	c.Generation++
	c.Scaling = nil
	c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions), func(d muster.Condition) bool {
		return d.Code == muster.ConditionScaleFailed || d.Code == muster.ConditionShort || d.Code == muster.ConditionScaling
	})
	if change != nil {
		change.Generation = c.Generation
		return sc.put(*change, text)
	}
	return sc.tx.PutCluster(*c, text)
}

func (sc *scaler) put(change muster.Scaling, text string) error {
	sc.c.Scaling = &change
	return sc.tx.PutCluster(sc.c, text)
}
