package gateway_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
	"golang.org/x/crypto/ssh"
)

// right is something without which a session may not go on.
type right struct {
	end func(r *rig, id muster.ClusterID) error
	// by is whose sessions it ends: those that a key opened, those that a token did, or both.
	keys, tokens bool
	all          bool // also those of others
}

// rights are all that there are.
func rights() map[string]right {
	update := func(r *rig, f func(tx *store.Tx) error) error {
		return r.site.Store.Update(r.t.Context(), muster.System(), f)
	}
	unshare := func(r *rig, id muster.ClusterID) error {
		_, err := r.root.Share(r.t.Context(), string(id), wire.ShareRequest{Remove: []string{"alice"}})
		return err
	}
	return map[string]right{
		"key removed": {keys: true, end: func(r *rig, _ muster.ClusterID) error {
			_, err := r.root.RemoveKey(r.t.Context(), "alice", "test")
			return err
		}},
		"key expired": {keys: true, end: func(r *rig, _ muster.ClusterID) error {
			return update(r, func(tx *store.Tx) error {
				terms, err := tx.KeyTerms("alice")
				for fingerprint := range terms {
					err = errors.Join(err, tx.PutKeyTerms("alice", muster.SSHKey{Fingerprint: fingerprint, Expires: time.Now()}))
				}
				return err
			})
		}},
		"token revoked": {tokens: true, end: func(r *rig, _ muster.ClusterID) error {
			list, err := r.site.Client(r.tokens["alice"]).Tokens(r.t.Context(), "")
			if err != nil {
				return err
			}
			return r.root.RevokeToken(r.t.Context(), list[0].ID)
		}},
		"membership ended": {keys: true, tokens: true, end: unshare},
		"user removed": {keys: true, tokens: true, end: func(r *rig, id muster.ClusterID) error {
			if err := unshare(r, id); err != nil {
				return err
			}
			return r.root.RemoveUser(r.t.Context(), "alice")
		}},
		"cluster deleted": {keys: true, tokens: true, all: true, end: func(r *rig, id muster.ClusterID) error {
			_, err := r.root.DeleteCluster(r.t.Context(), string(id))
			return err
		}},
		"cluster paused": {keys: true, tokens: true, all: true, end: func(r *rig, id muster.ClusterID) error {
			return update(r, func(tx *store.Tx) error {
				c, err := tx.Cluster(id)
				if err != nil {
					return err
				}
				c.Phase, c.Pause = muster.ClusterPausing, &muster.Pause{}
				if err := tx.PutCluster(c, "test"); err != nil {
					return err
				}
				if err := giveBackNodes(tx, id); err != nil {
					return err
				}
				c.Phase = muster.ClusterPaused
				return tx.PutCluster(c, "test")
			})
		}},
		"doors closed by the owner": {keys: true, tokens: true, all: true, end: func(r *rig, id muster.ClusterID) error {
			_, err := r.root.SetDoors(r.t.Context(), string(id), wire.DoorsRequest{Doors: []string{"none"}})
			return err
		}},
		"doors closed by the project": {keys: true, tokens: true, all: true, end: func(r *rig, _ muster.ClusterID) error {
			return update(r, func(tx *store.Tx) error {
				return tx.PutProject(muster.Project{Name: "aero", Rights: muster.Rights{Doors: []muster.Door{muster.DoorNone}}}, "test")
			})
		}},
		"doors closed by the site": {keys: true, tokens: true, all: true, end: func(r *rig, _ muster.ClusterID) error {
			r.site.Control.SetPolicy(control.Policy{Doors: []muster.Door{muster.DoorNone}})
			return nil
		}},
	}
}

// Whatever ends a right ends the sessions that it opened, and lets in nobody new, at the doors at which a key is shown.
func TestRightsEndSessionsAtTheJumpAndThePlainDoor(t *testing.T) {
	t.Parallel()
	for name, right := range rights() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, gateway.Limits{})
			id := r.make("cfd", "bob", "alice")
			key, others := r.key("alice", ""), r.key("bob", "")
			var mine, bobs []<-chan struct{}
			for _, d := range doors() {
				mine = append(mine, r.open(d, "alice", key))
				bobs = append(bobs, r.open(d, "bob", others))
			}
			if err := right.end(r, id); err != nil {
				t.Fatal(err)
			}
			look := r.looks.done()
			if !right.keys {
				r.looked()
				for i, d := range doors() {
					if ended(mine[i]) {
						t.Errorf("%s: what a key opened ended", d)
					}
				}
				return
			}
			for i, d := range doors() {
				<-mine[i] // if it does not end, the test does not
				r.soon("alice", d, look)
			}
			r.until("the records", func() bool {
				list, err := r.root.GatewaySessions(t.Context(), wire.GatewayQuery{User: "alice"})
				return err == nil && len(list) == len(doors()) && !slices.ContainsFunc(list, func(x muster.GatewaySession) bool { return x.End != muster.GatewayEndRight || x.Text == "" })
			})
			for i, d := range doors() {
				if right.all {
					<-bobs[i]
				} else if ended(bobs[i]) {
					t.Errorf("%s: a session of another user ended, too", d)
				}
				r.keptOut(d, key, !right.tokens || name == "user removed")
			}
		})
	}
}

// The same at the straight door, through the kernel and by splice. What a token opened does not end with a key.
func TestRightsEndSessionsAtTheStraightDoor(t *testing.T) {
	t.Parallel()
	for name, right := range rights() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, r *straightRig) {
				id := r.make("cfd", "bob", "alice")
				_ = r.key("alice", "")
				mine, bobs := r.must("alice"), r.must("bob")
				if err := right.end(r.rig, id); err != nil {
					t.Fatal(err)
				}
				look := r.looks.done()
				if !right.tokens {
					r.looked()
					if !echoes(mine, 1000) {
						t.Error("what a token opened ended")
					}
					return
				}
				<-over(mine) // if it does not end, the test does not
				r.soon("alice", muster.DoorStraight, look)
				r.until("the record", func() bool {
					list, err := r.root.GatewaySessions(t.Context(), wire.GatewayQuery{User: "alice"})
					return err == nil && len(list) == 1 && list[0].End == muster.GatewayEndRight && list[0].Text != ""
				})
				if right.all {
					<-over(bobs)
				} else if !echoes(bobs, 1000) {
					t.Error("another user's ended, too")
				}
				if _, err := r.connect("alice"); err == nil {
					t.Error("a ticket is had still")
				} else if text, hint := muster.Explain(err); strings.HasPrefix(name, "doors") && !strings.Contains(text, "the straight door of cluster cfd is closed") || hint == "" {
					t.Errorf("%q: %q", text, hint)
				}
			})
		})
	}
}

// The same of what a key opened at the straight door, which does not end with a token.
func TestRightsEndSessionsByKeyAtTheStraightDoor(t *testing.T) {
	t.Parallel()
	for name, right := range rights() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newStraight(t, false)
			id := r.make("cfd", "bob", "alice")
			key := r.key("alice", "")
			mine, err := r.say(r.ticketByKey(key, "ticket cfd").Secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := right.end(r.rig, id); err != nil {
				t.Fatal(err)
			}
			look := r.looks.done()
			if !right.keys {
				r.looked()
				if !echoes(mine, 1000) {
					t.Error("what a key opened ended")
				}
				return
			}
			<-over(mine) // if it does not end, the test does not
			r.soon("alice", muster.DoorStraight, look)
			r.until("the record", func() bool { x := r.newest(); return x.End == muster.GatewayEndRight && x.Text != "" })
			c, err := r.dial("alice", key)
			if err != nil {
				return
			}
			defer c.Close()
			if out, complaint, status := r.askOn(c, "ticket cfd"); out != "" || complaint == "" || status == 0 {
				t.Errorf("a ticket is had still: %q, %q, status %d", out, complaint, status)
			}
		})
	}
}

// keptOut checks that alice does not come to cfd: either her key lets her in no more, or the door
// leads nowhere.
func (r *rig) keptOut(d muster.Door, key ssh.Signer, byKey bool) {
	r.t.Helper()
	name := "alice"
	if d == muster.DoorPlain {
		name = "cfd+alice"
	}
	c, err := r.dial(name, key)
	switch {
	case byKey && err == nil:
		r.t.Errorf("%s: the key lets in", d)
		return
	case byKey:
		return
	case err != nil:
		r.t.Fatal(err)
	}
	defer c.Close()
	if d == muster.DoorPlain {
		_ = r.nowhere(name, key)
	} else if _, err := c.Dial("tcp", "cfd:22"); err == nil {
		r.t.Error("the jump door leads there still")
	}
}

// giveBackNodes frees the machines of a cluster.
func giveBackNodes(tx *store.Tx, id muster.ClusterID) error {
	nodes, err := tx.Nodes(id)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		m, err := tx.Machine(n.Machine)
		if err != nil {
			return err
		}
		n.Phase = muster.NodeDraining
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		n.Phase, n.Machine = muster.NodeGone, ""
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		m.Phase, m.Cluster, m.Node = muster.MachineCleaning, "", ""
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
	}
	return nil
}
