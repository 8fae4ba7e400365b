package control

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/control/limit"
	"github.com/muster-hpc/muster/control/place"
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// sizes are what a new size comes to.
type sizes struct {
	to, logins       int // nodes and login nodes wanted
	leaving          []muster.Node
	grow, growLogins int // how many more there must be
}

// sizes judges the new size of a cluster that is at rest.
func (sc *scaler) sizes() (sizes, error) {
	var z sizes
	z.to, z.logins = sc.target(sc.have, sc.logins)
	if sc.r.Remove != "" {
		chosen, err := sc.chosen()
		if err != nil {
			return z, err
		}
		z.leaving = chosen
		for _, n := range chosen {
			if n.Role == muster.RoleLogin {
				z.logins--
			} else {
				z.to--
			}
		}
		if sc.r.Logins != nil && z.logins != *sc.r.Logins {
			return z, muster.Errorf(muster.EInvalid, "the set removes login nodes, and logins asks for %d", *sc.r.Logins).Because(muster.ReasonContradiction).WithHint("give one of them")
		}
	} else {
		z.leaving = slices.Concat(sc.leavers(muster.RoleCompute, sc.have-z.to), sc.leavers(muster.RoleLogin, sc.logins-z.logins))
	}
	if err := sc.sensible(z.to); err != nil {
		return z, err
	}
	z.grow, z.growLogins = max(0, z.to-sc.have), max(0, z.logins-sc.logins)
	switch {
	case sc.r.Now && len(z.leaving) == 0:
		return z, muster.Errorf(muster.EInvalid, "now is for nodes that leave, and none does").Because(muster.ReasonContradiction).WithHint("leave it out")
	case sc.r.Some && z.grow+z.growLogins == 0:
		return z, muster.Errorf(muster.EInvalid, "some is for nodes that come, and none does").Because(muster.ReasonContradiction).WithHint("leave it out")
	case z.grow+z.growLogins > 0 && len(z.leaving) > 0:
		return z, muster.Errorf(muster.EInvalid, "nodes would come and others would leave in one change").Because(muster.ReasonContradiction).WithHint("make two changes of it")
	}
	return z, nil
}

// begin starts a change of a cluster that is at rest.
func (sc *scaler) begin() error {
	change := muster.Scaling{From: sc.have, Now: sc.r.Now, Some: sc.r.Some, By: sc.tx.Actor().Name, Started: sc.s.Clock.Now()}
	z, err := sc.sizes()
	if err != nil {
		return err
	}
	to, logins, leaving, grow, growLogins := z.to, z.logins, z.leaving, z.grow, z.growLogins
	joining, err := sc.join(&change, z)
	if err != nil {
		return err
	}
	if grow > 0 {
		to = sc.have // with some, fewer may have been found
		for _, n := range joining {
			if n.Role == muster.RoleCompute {
				to++
			}
		}
	}
	if growLogins > 0 {
		logins = sc.logins + len(joining) - (to - sc.have)
	}
	if sc.r.Remove == "" || len(leaving) > 0 {
		if err := sc.leave(&change, leaving); err != nil {
			return err
		}
	}
	change.To = to
	sc.out = wire.Scaled{Status: "scaling", From: sc.have, To: to, Joining: change.Joining, Leaving: change.Leaving}
	if len(joining)+len(leaving) == 0 {
		sc.out.Status = "unchanged"
		if sc.c.Spec.Nodes == to && sc.c.Spec.Logins == logins {
			return nil
		}
		return sc.resize(to, logins, nil, fmt.Sprintf("%s are what is wanted now", plaintext.Count(to, "node")))
	}
	return sc.resize(to, logins, &change, describe(sc.have, to, change))
}

// describe tells people of a change.
func describe(from, to int, c muster.Scaling) string {
	text := fmt.Sprintf("scaling from %d to %s", from, plaintext.Count(to, "node"))
	if from == to {
		text = "scaling its login nodes"
	}
	if len(c.Joining) > 0 {
		text += ": " + fold(c.Joining) + verb(c.Joining, " joins", " join")
	}
	if len(c.Leaving) > 0 {
		text += ": " + fold(c.Leaving) + verb(c.Leaving, " leaves", " leave")
		if c.Now {
			text += " now; " + verb(c.Leaving, "its", "their") + " jobs are queued again"
		}
	}
	return text
}

func (sc *scaler) sensible(to int) error {
	switch {
	case to < 1 && sc.r.Remove != "":
		return muster.Errorf(muster.EInvalid, "cluster %s would have no node left to compute", sc.c.Name).Because(muster.ReasonNoNodeLeft).
			WithHint("keep one, or give all back: muster delete %s", sc.c.ID)
	case to < 1:
		return muster.Errorf(muster.EInvalid, "cluster %s has %s and cannot have %d", sc.c.Name, plaintext.Count(sc.have, "node"), to).Because(muster.ReasonNoNodeLeft).
			WithHint("keep one, or give all back: muster delete %s", sc.c.ID)
	case to > mostNodes:
		return muster.Errorf(muster.EInvalid, "%d nodes are not possible", to).Because(muster.ReasonOutOfRange).WithHint("a cluster has at most %d", mostNodes)
	}
	return nil
}

// chosen are the nodes that a set names.
func (sc *scaler) chosen() ([]muster.Node, error) {
	set, err := nodeset.Parse(sc.r.Remove)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "%s", err.Error()).Because(muster.ReasonBadSyntax).WithHint("write a set of nodes, such as n05 or n[05-08,11]").Wrap(err)
	}
	var out []muster.Node
	have := make([]string, 0, len(sc.nodes))
	for _, n := range sc.nodes {
		if !stays(n) {
			continue
		}
		have = append(have, n.Name)
		if !set.Contains(n.Name) {
			continue
		}
		if n.Head {
			return nil, muster.Errorf(muster.EInvalid, "%s is the head of cluster %s and cannot leave", n.Name, sc.c.Name).Because(muster.ReasonHeadStays).
				WithHint("leave it out of the set; without its head there is no cluster: muster delete %s", sc.c.ID)
		}
		out = append(out, n)
	}
	if set.Count() == len(out) && len(out) > 0 {
		return out, nil
	}
	known, err := nodeset.Of(have...)
	if err != nil {
		return nil, err
	}
	return nil, sc.strangers(set.Difference(known), have, known)
}

// strangers refuses a set with names that no node has.
func (sc *scaler) strangers(set nodeset.Set, have []string, known nodeset.Set) error {
	if set.Empty() {
		return muster.Errorf(muster.EInvalid, "the set of nodes is empty").Because(muster.ReasonRequired).WithHint("cluster %s has %s", sc.c.Name, known)
	}
	text := set.String()
	if len(text) > 80 {
		text = text[:80] + "..."
	}
	e := muster.Errorf(muster.ENotFound, "cluster %s has no node %s", sc.c.Name, text).Because(muster.ReasonNoSuchNode)
	for name := range set.All() {
		if hint := didYouMean(name, have); strings.HasPrefix(hint, "did you mean") {
			return e.WithHint("%s It has %s", hint, known)
		}
		break
	}
	return e.WithHint("it has %s", known)
}

// leavers chooses k nodes of a role to leave: those that lost their machine first,
// those that do nothing before those that run jobs, and then the last ones. Never
// the head.
func (sc *scaler) leavers(role muster.Role, k int) []muster.Node {
	if k <= 0 {
		return nil
	}
	state := sc.s.schedulerStates(sc.nodes)
	var list []muster.Node
	for _, n := range sc.nodes {
		if stays(n) && n.Role == role && !n.Head {
			list = append(list, n)
		}
	}
	busy := func(n muster.Node) int {
		switch {
		case n.Machine == "":
			return -1
		case n.Phase == muster.NodeReady && working(state[n.Name]):
			return 1
		}
		return 0
	}
	slices.SortFunc(list, func(a, b muster.Node) int {
		return cmp.Or(cmp.Compare(busy(a), busy(b)), cmp.Compare(b.Index, a.Index))
	})
	list = list[:min(k, len(list))]
	slices.SortFunc(list, func(a, b muster.Node) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

// working reports whether a node in this state of the scheduler runs jobs.
func working(state string) bool {
	state = strings.ToLower(state)
	for _, word := range []string{"mix", "alloc", "comp", "draining"} {
		if strings.HasPrefix(state, word) {
			return true
		}
	}
	return false
}

// schedulerStates is what the head of a cluster last said of every node; nil
// when it has not spoken.
func (s *Service) schedulerStates(nodes []muster.Node) map[string]string {
	if s.Scheduler == nil {
		return nil
	}
	for _, n := range nodes {
		if n.Head && n.Machine != "" {
			if state := s.Scheduler(n.Machine); state != nil {
				return state.Nodes
			}
		}
	}
	return nil
}

// leave marks the nodes that are to go.
func (sc *scaler) leave(change *muster.Scaling, list []muster.Node) error {
	for _, n := range list {
		n.Leave = true
		n.Down = n.Down || change.Now && n.Role == muster.RoleCompute
		text := "leaves when its jobs are done"
		if change.Now {
			text = "leaves now"
		}
		if err := sc.sys.PutNode(n, text); err != nil {
			return err
		}
		change.Leaving = append(change.Leaving, n.Name)
	}
	return nil
}

// demands are the machines that a change needs: for compute nodes, then for login nodes.
func (sc *scaler) demands() ([]allocate.Demand, error) {
	if sc.c.Scaling != nil {
		return nil, nil
	}
	z, err := sc.sizes()
	if err != nil || z.grow+z.growLogins == 0 {
		return nil, err
	}
	if err := sc.s.WritesAllowed(); err != nil {
		return nil, err
	}
	near, err := sc.sys.Machines(store.MachineFilter{Cluster: sc.c.ID})
	if err != nil {
		return nil, err
	}
	img, _ := sc.s.Config.Images.Resolve(string(sc.c.Image)) // nil: nothing is known of it
	var list []allocate.Demand
	if z.grow > 0 {
		list = append(list, allocate.Demand{
			Cluster: sc.c.ID, Purpose: allocate.Scale, Image: img, Near: near, Role: muster.RoleCompute,
			Spec: admit.MoreNodes(sc.c, near, z.grow, sc.r.Some),
		})
	}
	if z.growLogins > 0 {
		list = append(list, allocate.Demand{
			Cluster: sc.c.ID, Purpose: allocate.Scale, Image: img, Near: near, Role: muster.RoleLogin,
			Spec: admit.MoreLogins(sc.c, near, z.growLogins, sc.r.Some),
		})
	}
	return list, nil
}

// join takes machines for new nodes and records both.
func (sc *scaler) join(change *muster.Scaling, z sizes) ([]muster.Node, error) {
	left := map[muster.Role]int{muster.RoleCompute: z.grow, muster.RoleLogin: z.growLogins}
	var joined []muster.Node
	for i, d := range sc.demanded {
		if left[d.Role] != d.Spec.Nodes {
			return nil, allocate.Changed()
		}
		left[d.Role] = 0
		plan, err := sc.room(d, sc.answers[i])
		if err != nil {
			return nil, err
		}
		ask := limit.Ask{More: true, Walltime: time.Duration(sc.c.Spec.Walltime), From: sc.s.Clock.Now(), Until: sc.c.Expires}
		if err := sc.s.withinLimits(sc.tx, sc.c, &plan, &ask); err != nil {
			return nil, err
		}
		more, err := sc.place(plan, d.Role)
		if err != nil {
			return nil, err
		}
		joined = append(joined, more...)
	}
	if left[muster.RoleCompute]+left[muster.RoleLogin] > 0 {
		return nil, allocate.Changed()
	}
	for _, n := range joined {
		change.Joining = append(change.Joining, n.Name)
	}
	return joined, nil
}

// room is the plan of an answer, or why there is none.
func (sc *scaler) room(d allocate.Demand, answer muster.Answer) (muster.Plan, error) {
	refused := admit.Refusal(d.Spec, answer)
	if refused == nil && answer.Plan != nil {
		return *answer.Plan, nil
	}
	if refused == nil {
		refused = muster.Errorf(muster.ENoCapacity, "there is no room now").Because(muster.ReasonNoRoom)
	}
	kept, err := sc.s.Allocator.Kept(sc.sys, d)
	if err != nil {
		return muster.Plan{}, err
	}
	answer.Change = sc.remedies(answer, d, kept)
	refused.Hint = answer.Change[0]
	sc.answer = &answer
	return muster.Plan{}, refused
}

// remedies say what to ask for instead, and who has the machines.
func (sc *scaler) remedies(a muster.Answer, d allocate.Demand, kept *admit.Kept) []string {
	var list []string
	free, n := a.Free, d.Spec.Nodes
	switch {
	case d.Role == muster.RoleCompute && free > 0 && free < n:
		list = append(list, fmt.Sprintf("%s: muster scale %s +%d, or say --allow-partial to take what there is", fits(free), sc.c.Name, free))
	case free > 0 && free < n:
		list = append(list, fmt.Sprintf("%s: say --allow-partial to take what there is", fits(free)))
	}
	held := strings.Join(sc.holders(d.Near, kept), ", ")
	switch {
	case held == "" || a.Fits <= free: // waiting brings none
	case a.Fits >= n:
		list = append(list, "machines of this kind are held by "+held+": scale again when they are given back")
	case d.Role == muster.RoleCompute:
		list = append(list, fmt.Sprintf("machines of this kind are held by %s: when they are given back, at most: muster scale %s +%d", held, sc.c.Name, a.Fits))
	}
	if kept != nil && d.Role == muster.RoleCompute {
		within := muster.WithinSite
		if sc.c.Spec.Within == "" || sc.c.Spec.Within == muster.WithinSite {
			within = muster.WithinAnySite
		}
		list = append(list, fmt.Sprintf("its nodes stay in %s; a new cluster may be wider: muster create NAME --like %s -n %d --within %s --dry-run", kept.Where, sc.c.Name, sc.have+n, within))
	}
	if len(list) == 0 {
		list = append(list, "see 'muster machine list'")
	}
	return list
}

func fits(n int) string {
	if n == 1 {
		return "1 more fits now"
	}
	return fmt.Sprintf("%d more fit now", n)
}

// holders are the clusters that hold machines like those near, where the cluster may have
// them, as far as the caller may see them.
func (sc *scaler) holders(near []muster.Machine, kept *admit.Kept) []string {
	if len(near) == 0 {
		return nil
	}
	all, err := sc.tx.Machines(store.MachineFilter{}) // the caller's view: tenants of others are hidden
	if err != nil {
		return nil
	}
	count := map[muster.ClusterID]int{}
	others := 0
	for _, m := range all {
		like := m.Provider == near[0].Provider && (sc.c.Spec.Mixed || m.Facts.Class == sc.c.Class)
		switch {
		case !like || !m.Phase.Held() || m.Cluster == sc.c.ID || kept != nil && !kept.Has(&m):
		case m.Cluster == "":
			others++
		default:
			count[m.Cluster]++
		}
	}
	var out []string
	for id, n := range count {
		name := string(id)
		if c, err := sc.tx.Cluster(id); err == nil {
			name = c.Name
		}
		out = append(out, fmt.Sprintf("%s (%d)", name, n))
	}
	slices.Sort(out)
	if len(out) > 5 {
		out = append(out[:5], "...")
	}
	if others > 0 {
		out = append(out, fmt.Sprintf("others (%d)", others))
	}
	return out
}

// place records new nodes on their machines, held until all are ready.
func (sc *scaler) place(plan muster.Plan, role muster.Role) ([]muster.Node, error) {
	nodes := place.Spots(sc.nodes, role, len(plan.Assign))
	for i := range nodes {
		n := &nodes[i]
		n.Cluster, n.Role, n.Address = sc.c.ID, role, hostAddress(sc.c.Subnet, n.Index)
		if !sc.c.Subnet.Contains(n.Address) || !sc.c.Subnet.Contains(n.Address.Next()) {
			return nil, muster.Errorf(muster.ENever, "the network %s of cluster %s has no address left for %s", sc.c.Subnet, sc.c.Name, n.Name).Because(muster.ReasonNoNetwork).
				WithHint("make another cluster of the size you need")
		}
		n.Hold, n.Leave, n.Down = true, false, false
		n.Failures, n.Unconfigured, n.Conditions, n.Stages, n.VM, n.Trust = 0, nil, nil, nil, nil, ""
		n.NotBefore, n.Deadline = time.Time{}, time.Time{}
	}
	nodes, err := sc.s.Allocator.Assign(sc.tx, plan, nodes)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if err := sc.hostKey(n.Name); err != nil {
			return nil, err
		}
		sc.nodes = slices.DeleteFunc(sc.nodes, func(old muster.Node) bool { return old.Name == n.Name })
		sc.nodes = append(sc.nodes, n)
	}
	return nodes, nil
}

// hostKey makes the key by which a node is known, unless the name had one
// before: whoever knows the name goes on knowing it.
func (sc *scaler) hostKey(node string) error {
	name := muster.SecretHostKey(node)
	_, err := sc.sys.Secret(sc.c.ID, name)
	if muster.CodeOf(err) != muster.ENotFound {
		return err
	}
	key, _, err := pki.NewHostKey()
	if err != nil {
		return errors.Join(errors.New("no host key could be made"), err)
	}
	return sc.sys.PutSecret(sc.c.ID, name, []byte(key))
}
