package control_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

const hour = time.Hour

// scaleSite is a site with a ready cluster cfd of alice.
func scaleSite(t *testing.T, machines, nodes int, change func(*control.Config)) (*controltest.Site, muster.ClusterID) {
	t.Helper()
	s := controltest.Start(t, controltest.Options{Machines: machines, Control: change})
	s.User("alice", "bio")
	s.User("bob", "bio")
	s.User("carol", "chem")
	created, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: cfd; project: bio; nodes: "+string(rune('0'+nodes))+"; head: shared; users: [alice]; walltime: 8h"))
	if err != nil {
		t.Fatal(err)
	}
	system(t, s, func(tx *store.Tx) error { return controltest.Finish(tx, created.ID) })
	return s, created.ID
}

func system(t *testing.T, s *controltest.Site, f func(*store.Tx) error) {
	t.Helper()
	if err := s.Store.Update(t.Context(), muster.System(), f); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, s *controltest.Site, id muster.ClusterID) (c muster.Cluster, nodes map[string]muster.Node) {
	t.Helper()
	nodes = map[string]muster.Node{}
	system(t, s, func(tx *store.Tx) (err error) {
		if c, err = tx.Cluster(id); err != nil {
			return err
		}
		list, err := tx.Nodes(id)
		for _, n := range list {
			nodes[n.Name] = n
		}
		return err
	})
	return c, nodes
}

func actor(name string, projects ...string) muster.Actor {
	return muster.Actor{Name: name, Projects: projects}
}

// manager is one who manages their projects.
func manager(name string, projects ...string) muster.Actor {
	return muster.Actor{Name: name, Projects: projects, Managed: projects}
}

func TestScaleUp(t *testing.T) {
	t.Parallel()
	s, id := scaleSite(t, 6, 2, nil)
	out, _, err := s.Control.Scale(t.Context(), manager("bob", "bio"), "cfd", wire.ScaleRequest{Nodes: 4})
	if err != nil {
		t.Fatal(err)
	}
	if out.From != 2 || out.To != 4 || !slices.Equal(out.Joining, []string{"n03", "n04"}) || out.Status != "scaling" {
		t.Errorf("%+v", out)
	}
	c, nodes := load(t, s, id)
	if c.Spec.Nodes != 4 || c.Spec.Min != 4 || c.Generation != 2 || c.Scaling == nil || c.Scaling.By != "bob" || c.Scaling.Generation != 2 {
		t.Errorf("%+v", c)
	}
	n := nodes["n04"]
	if n.Phase != muster.NodeAssigned || !n.Hold || n.Index != 3 || n.Address.String() != "10.128.16.13" || n.Role != muster.RoleCompute {
		t.Errorf("%+v", n)
	}
	system(t, s, func(tx *store.Tx) error {
		for _, name := range []string{"n03", "n04"} {
			if _, err := tx.Secret(id, muster.SecretHostKey(name)); err != nil {
				t.Errorf("%s has no host key: %v", name, err)
			}
			m, err := tx.Machine(nodes[name].Machine)
			if err != nil || m.Phase != muster.MachineAllocated || m.Node != name {
				t.Errorf("%s: %+v %v", name, m, err)
			}
		}
		return nil
	})
	// The same again is no news; another size has to wait.
	if again, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Nodes: 4}); err != nil || again.Status != "scaling" || again.Generation != 2 {
		t.Errorf("%+v %v", again, err)
	}
	_, _, err = s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Nodes: 5})
	wantError(t, err, muster.EConflict, muster.ReasonBeingScaled, "from 2 to 4 nodes", "bob", "muster scale cfd 2")
	// Its reverse takes it back.
	back, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Change: -2})
	if err != nil || back.Status != "undoing" || !slices.Equal(back.Leaving, []string{"n03", "n04"}) {
		t.Fatalf("%+v %v", back, err)
	}
	if c, nodes = load(t, s, id); c.Spec.Nodes != 2 || c.Scaling.To != 2 || !nodes["n03"].Leave || nodes["n01"].Leave {
		t.Errorf("%+v", c)
	}
}

// wantError wants an error of a code and a reason, with these names and values in it.
func wantError(t *testing.T, err error, code muster.Code, why muster.Reason, parts ...string) {
	t.Helper()
	if muster.CodeOf(err) != code || muster.ReasonOf(err) != why {
		t.Errorf("%v is %s, %s, and not %s, %s", err, muster.CodeOf(err), muster.ReasonOf(err), code, why)
		return
	}
	e, _ := err.(*muster.Error) //nolint:errorlint // as the API sees it
	if e == nil {
		t.Errorf("%T", err)
		return
	}
	text := e.Message + "\n" + e.Hint
	for _, p := range e.Problems {
		text += "\n" + p.String()
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

func TestScaleIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s, id := scaleSite(t, 5, 2, nil)
	before, _ := load(t, s, id)
	_, answer, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Nodes: 6})
	wantError(t, err, muster.ENever, muster.ReasonNeverFits, "4 machines needed, 3 fit", "muster scale cfd +3")
	if answer == nil || answer.Free != 3 {
		t.Errorf("%+v", answer)
	}
	if after, nodes := load(t, s, id); after.Generation != before.Generation || len(nodes) != 2 {
		t.Errorf("%+v", after)
	}
	if _, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: other; project: bio; nodes: 2; head: shared; users: [alice]")); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Control.Scale(t.Context(), manager("bob", "bio"), "cfd", wire.ScaleRequest{Change: 2, Logins: ptr(1)})
	wantError(t, err, muster.ENoCapacity, muster.ReasonNoRoom, "2 machines needed, 1 is free", "--allow-partial")
	out, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Change: 3, Some: true})
	if err != nil || out.To != 3 || len(out.Joining) != 1 {
		t.Errorf("%+v %v", out, err)
	}
	if c, _ := load(t, s, id); c.Spec.Nodes != 3 || !c.Scaling.Some {
		t.Errorf("%+v", c)
	}
}

func ptr(n int) *int { return &n }

// Who holds the machines is told to those who may know it.
func TestScaleTellsWhoHoldsMachines(t *testing.T) {
	t.Parallel()
	s, _ := scaleSite(t, 5, 2, nil)
	if _, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: secret; project: chem; nodes: 3; head: shared; users: [carol]")); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Change: 1})
	wantError(t, err, muster.ENoCapacity, muster.ReasonNoRoom, "held by secret (3)")
	_, answer, err := s.Control.Scale(t.Context(), manager("bob", "bio"), "cfd", wire.ScaleRequest{Change: 1})
	wantError(t, err, muster.ENoCapacity, muster.ReasonNoRoom)
	if text := strings.Join(answer.Change, " ") + err.Error(); strings.Contains(text, "secret") {
		t.Errorf("%s", text)
	}
}

func TestScaleDown(t *testing.T) {
	t.Parallel()
	busy := map[string]string{"n01": "idle", "n02": "idle", "n03": "idle", "n04": "mixed"}
	s, id := scaleSite(t, 4, 4, func(c *control.Config) {
		c.Scheduler = func(muster.MachineID) *wire.SchedulerState { return &wire.SchedulerState{Up: true, Nodes: busy} }
	})
	for _, c := range []struct {
		r     wire.ScaleRequest
		code  muster.Code
		why   muster.Reason
		parts []string
	}{
		{wire.ScaleRequest{}, muster.EInvalid, muster.ReasonRequired, nil},
		{wire.ScaleRequest{Nodes: 2, Change: 2}, muster.EInvalid, muster.ReasonContradiction, nil},
		{wire.ScaleRequest{Nodes: -2, Logins: ptr(99)}, muster.EInvalid, muster.ReasonHasProblems, []string{"-2 nodes", "99 login nodes"}},
		{wire.ScaleRequest{Change: -4}, muster.EInvalid, muster.ReasonNoNodeLeft, []string{"muster delete c-"}},
		{wire.ScaleRequest{Remove: "n[01-02]"}, muster.EInvalid, muster.ReasonHeadStays, []string{"n01"}},
		{wire.ScaleRequest{Remove: "n[04-06]"}, muster.ENotFound, muster.ReasonNoSuchNode, []string{"n[05-06]", "n[01-04]"}},
		{wire.ScaleRequest{Remove: "m03"}, muster.ENotFound, muster.ReasonNoSuchNode, []string{"n03"}},
		{wire.ScaleRequest{Remove: "n[1-999999999]"}, muster.ENotFound, muster.ReasonNoSuchNode, nil},
		{wire.ScaleRequest{Remove: "n[3"}, muster.EInvalid, muster.ReasonBadSyntax, []string{"n[05-08"}},
		{wire.ScaleRequest{Remove: ","}, muster.EInvalid, muster.ReasonRequired, nil},
		{wire.ScaleRequest{Nodes: 3, Some: true}, muster.EInvalid, muster.ReasonContradiction, []string{"some"}},
		{wire.ScaleRequest{Nodes: 4, Now: true}, muster.EInvalid, muster.ReasonContradiction, []string{"now"}},
		{wire.ScaleRequest{Nodes: 3, Logins: ptr(1)}, muster.EInvalid, muster.ReasonContradiction, nil},
	} {
		_, _, err := s.Control.Scale(t.Context(), root(), "cfd", c.r)
		wantError(t, err, c.code, c.why, c.parts...)
	}
	// Idle ones go first, from the end; the head never.
	out, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Change: -2})
	if err != nil || !slices.Equal(out.Leaving, []string{"n02", "n03"}) {
		t.Fatalf("%+v %v", out, err)
	}
	if _, nodes := load(t, s, id); !nodes["n02"].Leave || nodes["n02"].Down || nodes["n04"].Leave {
		t.Errorf("%+v", nodes)
	}
	back, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Nodes: 4})
	if err != nil || back.Status != "undoing" {
		t.Fatalf("%+v %v", back, err)
	}
	if c, nodes := load(t, s, id); nodes["n02"].Leave || c.Scaling != nil || c.Spec.Nodes != 4 {
		t.Errorf("%+v", c)
	}
	if _, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Remove: "n04,n03"}); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Remove: "n02"})
	wantError(t, err, muster.EConflict, muster.ReasonBeingScaled, "from 4 to 2 nodes", "muster scale cfd 2 --wait", "muster scale cfd 4", "muster scale cfd 2 --now")
	// The same again is no news.
	if again, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Remove: "n[03-04]"}); err != nil || again.Status != "scaling" {
		t.Fatalf("%+v %v", again, err)
	}
	// In a hurry after all, by the names: then it is too late to keep them.
	hurry, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Remove: "n[03-04]", Now: true})
	if err != nil || hurry.Status != "scaling" {
		t.Fatalf("%+v %v", hurry, err)
	}
	if c, nodes := load(t, s, id); !nodes["n04"].Down || !c.Scaling.Now {
		t.Errorf("%+v", nodes["n04"])
	}
	_, _, err = s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Nodes: 4})
	wantError(t, err, muster.EConflict, muster.ReasonTooLate, "n[03-04]")
}

// A node that lost its machine leaves before one that works.
func TestScaleDownTakesWhatIsLostFirst(t *testing.T) {
	t.Parallel()
	s, id := scaleSite(t, 4, 4, nil)
	system(t, s, func(tx *store.Tx) error {
		n, err := tx.Node(id, "n02")
		if err != nil {
			return err
		}
		m, err := tx.Machine(n.Machine)
		if err != nil {
			return err
		}
		for _, p := range []muster.NodePhase{muster.NodeFencing, muster.NodeFenced} {
			if n.Phase = p; p == muster.NodeFenced {
				n.Machine = ""
				m.Phase, m.Cluster, m.Node, m.Attempt = muster.MachineSuspect, "", "", 0
			}
			if err := tx.PutNode(n, ""); err != nil {
				return err
			}
		}
		return tx.PutMachine(m, "")
	})
	out, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Change: -1})
	if err != nil || !slices.Equal(out.Leaving, []string{"n02"}) {
		t.Fatalf("%+v %v", out, err)
	}
}

// What is said of a change of login nodes speaks of login nodes, and the
// commands it names do what it says.
func TestScaleLoginsTwice(t *testing.T) {
	t.Parallel()
	s, id := scaleSite(t, 6, 2, nil)
	if _, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Logins: ptr(2)}); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Nodes: 3})
	wantError(t, err, muster.EConflict, muster.ReasonBeingScaled, "from 0 to 2 login nodes", "muster scale cfd --login-nodes 2 --wait", "muster scale cfd --login-nodes 0")
	if same, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Nodes: 2}); err != nil || same.Status != "scaling" {
		t.Errorf("%+v %v", same, err)
	}
	back, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Logins: ptr(0)})
	if err != nil || back.Status != "undoing" {
		t.Errorf("%+v %v", back, err)
	}
	if c, _ := load(t, s, id); c.Spec.Logins != 0 {
		t.Errorf("%+v", c)
	}
}

// A name that was given back comes again, with its place and its key.
func TestScaleReusesNames(t *testing.T) {
	t.Parallel()
	s, id := scaleSite(t, 4, 3, nil)
	var key []byte
	system(t, s, func(tx *store.Tx) (err error) {
		key, err = tx.Secret(id, muster.SecretHostKey("n02"))
		return err
	})
	_, nodes := load(t, s, id)
	old := nodes["n02"]
	system(t, s, func(tx *store.Tx) error {
		m, err := tx.Machine(old.Machine)
		if err != nil {
			return err
		}
		n := old
		n.Phase, n.Attempt = muster.NodeDraining, 7
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		n.Phase = muster.NodeGone
		m.Phase, m.Cluster, m.Node = muster.MachineCleaning, "", ""
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
		return tx.PutNode(n, "")
	})
	out, _, err := s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Nodes: 3})
	if err != nil || !slices.Equal(out.Joining, []string{"n02"}) || out.From != 2 {
		t.Fatalf("%+v %v", out, err)
	}
	_, nodes = load(t, s, id)
	if n := nodes["n02"]; n.Address != old.Address || n.Index != old.Index || n.Attempt != 7 || n.Machine == old.Machine || !n.Hold {
		t.Errorf("%+v", n)
	}
	system(t, s, func(tx *store.Tx) error {
		again, err := tx.Secret(id, muster.SecretHostKey("n02"))
		if string(again) != string(key) {
			t.Error("another host key")
		}
		return err
	})
}

// Only those who may change a cluster do; for others it is not there.
func TestWhoMayChangeACluster(t *testing.T) {
	t.Parallel()
	s, id := scaleSite(t, 4, 2, nil)
	stranger := actor("carol", "chem")
	_, _, err := s.Control.Scale(t.Context(), stranger, "cfd", wire.ScaleRequest{Nodes: 3})
	wantError(t, err, muster.ENotFound, muster.ReasonNoSuchCluster)
	_, err = s.Control.Extend(t.Context(), stranger, string(id), wire.ExtendRequest{By: "1h"})
	wantError(t, err, muster.ENotFound, muster.ReasonNoSuchCluster)
	_, err = s.Control.Share(t.Context(), stranger, "cfd", wire.ShareRequest{Add: []string{"carol"}})
	wantError(t, err, muster.ENotFound, muster.ReasonNoSuchCluster)
	if c, _ := load(t, s, id); c.Generation != 1 {
		t.Errorf("%+v", c)
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	s, id := scaleSite(t, 4, 1, nil)
	share := func(who muster.Actor, r wire.ShareRequest) (wire.Shared, error) {
		return s.Control.Share(t.Context(), who, "cfd", r)
	}
	alice := actor("alice", "bio")
	out, err := share(alice, wire.ShareRequest{Add: []string{"bob", "alice"}})
	if err != nil || !slices.Equal(out.Users, []string{"alice", "bob"}) || !slices.Equal(out.Added, []string{"bob"}) {
		t.Fatalf("%+v %v", out, err)
	}
	if c, _ := load(t, s, id); !slices.Equal(c.Spec.Users, []string{"alice", "bob"}) || c.Generation != 2 {
		t.Errorf("%+v", c)
	}
	// People of other projects look like people who do not exist.
	_, hidden := share(alice, wire.ShareRequest{Add: []string{"carol"}})
	wantError(t, hidden, muster.EInvalid, muster.ReasonNoSuchUser, "project bio", "carol")
	_, absent := share(alice, wire.ShareRequest{Add: []string{"dora"}})
	if strings.ReplaceAll(absent.Error(), "dora", "carol") != hidden.Error() {
		t.Errorf("%v\n%v", hidden, absent)
	}
	// Every problem at once.
	_, err = share(alice, wire.ShareRequest{Add: []string{"carol", "Not A Name"}, Remove: []string{"alice", "bib"}})
	wantError(t, err, muster.EInvalid, muster.ReasonHasProblems, "add[0]", "add[1]", "remove[0]", "cfd", "bob")
	_, err = share(alice, wire.ShareRequest{})
	wantError(t, err, muster.EInvalid, muster.ReasonRequired)
	_, err = share(alice, wire.ShareRequest{Add: []string{"bob"}, Remove: []string{"bob"}})
	wantError(t, err, muster.EInvalid, muster.ReasonContradiction, "bob")
	if c, _ := load(t, s, id); c.Generation != 2 {
		t.Errorf("%+v", c.Spec.Users)
	}
	// An administrator may bring anybody, also somebody new.
	out, err = share(root(), wire.ShareRequest{Add: []string{"carol", "dora"}})
	if err != nil || len(out.Notices) != 2 || !strings.Contains(out.Notices[0], "carol") {
		t.Errorf("%+v %v", out, err)
	}
	out, err = share(alice, wire.ShareRequest{Remove: []string{"bob", "carol"}})
	if err != nil || !slices.Equal(out.Users, []string{"alice", "dora"}) {
		t.Errorf("%+v %v", out, err)
	}
	if out, err = share(alice, wire.ShareRequest{Project: true}); err != nil || !slices.Equal(out.Added, []string{"bob"}) {
		t.Errorf("%+v %v", out, err)
	}
	// Who was taken out may not log in.
	if _, err = share(alice, wire.ShareRequest{Remove: []string{"bob"}}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Control.Tunnel(t.Context(), actor("bob", "bio"), "cfd", "")
	wantError(t, err, muster.EForbidden, muster.ReasonNoAccess)
}

func TestExtend(t *testing.T) {
	t.Parallel()
	s, id := scaleSite(t, 4, 1, func(c *control.Config) { c.MaxWalltime = 12 * hour })
	extend := func(by string) (wire.Extended, error) {
		return s.Control.Extend(t.Context(), actor("alice", "bio"), "cfd", wire.ExtendRequest{By: by})
	}
	c, _ := load(t, s, id)
	c.Expires = c.Created.Add(8 * hour)
	c.Conditions = []muster.Condition{{Code: "walltime", Text: "ends"}}
	system(t, s, func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	out, err := extend("1h30m")
	if err != nil || !out.Expires.Equal(c.Expires.Add(hour+hour/2)) || out.Walltime != muster.Duration(9*hour+hour/2) {
		t.Errorf("%+v %v", out, err)
	}
	c, _ = load(t, s, id)
	if len(c.Notices) != 1 || c.Notices[0].Code != "extended" || c.Generation != 2 || len(c.Conditions) != 0 {
		t.Errorf("%+v", c)
	}
	for by, why := range map[string]muster.Reason{
		"5h": muster.ReasonWalltimeTooLong, "": muster.ReasonRequired, "-1h": muster.ReasonBadValue, "90": muster.ReasonBadValue,
		"0s": muster.ReasonRequired, "200000w": muster.ReasonOutOfRange,
	} {
		_, err := extend(by)
		wantError(t, err, muster.EInvalid, why)
	}
	// While it is paused, its clock stands: what is left then grows.
	running := c
	c.Expires, c.Pause = time.Time{}, &muster.Pause{Left: muster.Duration(2 * hour)}
	system(t, s, func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	if out, err = extend("30m"); err != nil || out.Walltime != muster.Duration(10*hour) {
		t.Errorf("%+v %v", out, err)
	}
	if c, _ = load(t, s, id); c.Pause.Left != muster.Duration(2*hour+hour/2) {
		t.Errorf("%v are left", c.Pause.Left)
	}
	c.Pause, c.Expires = nil, running.Expires
	// It would keep its machines while it stands still: nobody promises a time after its end.
	system(t, s, func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	_, err = s.Control.Pause(t.Context(), actor("alice", "bio"), "cfd", wire.PauseRequest{OnPause: "freeze", Until: c.Expires.Add(time.Minute).Format(time.RFC3339)})
	wantError(t, err, muster.EInvalid, muster.ReasonOutOfRange)
	c.Ending = c.Expires
	system(t, s, func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	_, err = extend("1h")
	wantError(t, err, muster.EConflict, muster.ReasonWalltimeOver)
	_, _, err = s.Control.Scale(t.Context(), root(), "cfd", wire.ScaleRequest{Nodes: 2})
	wantError(t, err, muster.EConflict, muster.ReasonWalltimeOver)
	system(t, s, func(tx *store.Tx) error {
		c.Phase = muster.ClusterDeleting
		return tx.PutCluster(c, "")
	})
	_, err = extend("1h")
	wantError(t, err, muster.EConflict, muster.ReasonWrongPhase)
	_, _, err = s.Control.Scale(t.Context(), root(), string(id), wire.ScaleRequest{Nodes: 2})
	wantError(t, err, muster.EConflict, muster.ReasonWrongPhase, "deleting")
}

// A site's longest walltime holds for every request.
func TestMaxWalltime(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Control: func(c *control.Config) { c.MaxWalltime = 12 * hour }})
	s.User("alice", "bio")
	out, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: a; nodes: 1; head: shared; users: [alice]"))
	if err != nil || out.Spec.Walltime != muster.Duration(12*hour) || !slices.ContainsFunc(out.Answer.Notices, func(n string) bool { return strings.Contains(n, "12h") }) {
		t.Errorf("%+v %v", out, err)
	}
	_, err = s.Control.CreateCluster(t.Context(), root(), yaml("name: b; nodes: 1; head: shared; users: [alice]; walltime: 13h"))
	wantError(t, err, muster.EInvalid, muster.ReasonWalltimeTooLong, "walltime", "12h")
}
