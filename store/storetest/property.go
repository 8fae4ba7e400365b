package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"pgregory.net/rapid"
)

// testProperty does random things, allowed and not, by random people, and
// compares the store with what the audit says and with invariant 1.
func testProperty(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	addPeople(t, db)
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		machines := []muster.MachineID{}
		for i := range 3 {
			machines = append(machines, muster.MachineID(fmt.Sprintf("r%d-m%d", round, i)))
		}
		Free(t, db, machines...)
		h := &history{db: db, round: round, machines: machines}
		if lines := audits(t, db, root(), store.AuditFilter{}); len(lines) > 0 {
			h.after = lines[len(lines)-1].Seq - int64(3*len(machines)) // with the lines of Free
		}
		r.Repeat(map[string]func(*rapid.T){
			"create":  h.create,
			"cluster": h.cluster,
			"node":    h.node,
			"machine": h.machine,
			"":        h.verify,
		})
		h.hidden(r)
	})
}

type history struct {
	db       *store.DB
	round    int
	after    int64 // Seq of the last line before this round
	machines []muster.MachineID
	clusters []muster.Cluster
}

func actor(r *rapid.T) muster.Actor {
	return rapid.SampledFrom([]muster.Actor{alice(), bob(), carol(), root(), muster.System()}).Draw(r, "actor")
}

// attempt runs an Update whose refusal is fine, as long as it is a refusal.
func (h *history) attempt(r *rapid.T, who muster.Actor, fn func(*store.Tx) error) {
	err := h.db.Update(context.Background(), who, fn)
	switch muster.CodeOf(err) {
	case "", muster.ENotFound, muster.EConflict, muster.EForbidden:
	default:
		r.Fatalf("%v", err)
	}
}

func (h *history) create(r *rapid.T) {
	owner := rapid.SampledFrom([]muster.Actor{alice(), bob(), carol()}).Draw(r, "owner")
	c := NewCluster(fmt.Sprintf("r%d-%s", h.round, rapid.SampledFrom([]string{"a", "b"}).Draw(r, "name")), owner.Name, owner.Projects[0])
	c.Phase = rapid.SampledFrom([]muster.ClusterPhase{muster.ClusterQueued, muster.ClusterBuilding}).Draw(r, "phase")
	ids := rapid.SliceOfN(rapid.SampledFrom(h.machines), 0, 3).Draw(r, "machines")
	h.attempt(r, actor(r), func(tx *store.Tx) error { return Place(tx, c, ids...) })
	h.clusters = append(h.clusters, c)
}

func (h *history) pick(r *rapid.T) muster.ClusterID {
	if len(h.clusters) == 0 {
		r.Skip("no cluster yet")
	}
	return rapid.SampledFrom(h.clusters).Draw(r, "cluster").ID
}

func (h *history) cluster(r *rapid.T) {
	id, who := h.pick(r), actor(r)
	next := rapid.SampledFrom(muster.ClusterPhases()).Draw(r, "next")
	h.attempt(r, who, func(tx *store.Tx) error {
		c, err := tx.Cluster(id)
		if err != nil {
			return err
		}
		c.Phase = next
		return tx.PutCluster(c, "")
	})
}

func (h *history) node(r *rapid.T) {
	id, who := h.pick(r), actor(r)
	next := rapid.SampledFrom(muster.NodePhases()).Draw(r, "next")
	name := rapid.SampledFrom([]string{"n01", "n02", "n03"}).Draw(r, "name")
	machine := rapid.SampledFrom(append([]muster.MachineID{"", "keep"}, h.machines...)).Draw(r, "machine")
	h.attempt(r, who, func(tx *store.Tx) error {
		n, err := tx.Node(id, name)
		if muster.CodeOf(err) == muster.ENotFound {
			n = muster.Node{Cluster: id, Name: name}
		} else if err != nil {
			return err
		}
		n.Phase = next
		if machine != "keep" {
			n.Machine = machine
		}
		return tx.PutNode(n, "")
	})
}

func (h *history) machine(r *rapid.T) {
	id, who := rapid.SampledFrom(h.machines).Draw(r, "machine"), actor(r)
	next := rapid.SampledFrom(muster.MachinePhases()).Draw(r, "next")
	var cluster muster.ClusterID
	var node string
	if next.Held() && len(h.clusters) > 0 && rapid.Bool().Draw(r, "move") {
		cluster, node = h.pick(r), rapid.SampledFrom([]string{"n01", "n02", "n03"}).Draw(r, "node")
	}
	h.attempt(r, who, func(tx *store.Tx) error {
		m, err := tx.Machine(id)
		if err != nil {
			return err
		}
		m.Phase = next
		if !next.Held() {
			m.Cluster, m.Node = "", ""
		} else if cluster != "" {
			m.Cluster, m.Node = cluster, node
		}
		return tx.PutMachine(m, "")
	})
}

// verify holds after every step.
func (h *history) verify(r *rapid.T) {
	err := h.db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		filled := map[muster.MachineID]string{}
		phases := map[string]string{}
		for _, c := range h.clusters {
			got, err := tx.Cluster(c.ID)
			if muster.CodeOf(err) == muster.ENotFound {
				continue // its creation was refused
			}
			if err != nil {
				return err
			}
			phases["cluster "+string(c.ID)] = string(got.Phase)
			nodes, err := tx.Nodes(c.ID)
			if err != nil {
				return err
			}
			for _, n := range nodes {
				place := string(c.ID) + "/" + n.Name
				phases["node "+place] = string(n.Phase)
				if n.Machine == "" || n.Phase == muster.NodeGone {
					continue
				}
				if other, twice := filled[n.Machine]; twice {
					r.Fatalf("machine %s fills %s and %s", n.Machine, other, place)
				}
				filled[n.Machine] = place
			}
		}
		holds := map[string]muster.MachineID{}
		for _, id := range h.machines {
			m, err := tx.Machine(id)
			if err != nil {
				return err
			}
			phases["machine "+string(id)] = string(m.Phase)
			if m.Phase.Held() != (m.Cluster != "") {
				r.Fatalf("machine %s is %s in cluster %q", id, m.Phase, m.Cluster)
			}
			if m.Cluster == "" {
				continue
			}
			place := string(m.Cluster) + "/" + m.Node
			if other, twice := holds[place]; twice {
				r.Fatalf("%s is filled by %s and %s", place, id, other)
			}
			holds[place] = id
			if filled[id] != place {
				r.Fatalf("machine %s is held by %s but fills %q", id, place, filled[id])
			}
			if c, err := tx.Cluster(m.Cluster); err != nil || !c.Phase.HoldsMachines() {
				r.Fatalf("machine %s is held by a cluster that is %s (%v)", id, c.Phase, err)
			}
		}
		return h.replay(r, tx, phases)
	})
	if err != nil {
		r.Fatalf("%v", err)
	}
}

// replay walks the audit: every line goes on from where the last line about
// the same thing ended, and the last lines are the present.
func (h *history) replay(r *rapid.T, tx *store.Tx, phases map[string]string) error {
	lines, err := tx.Audits(store.AuditFilter{After: h.after})
	if err != nil {
		return err
	}
	at := map[string]string{}
	for i, a := range lines {
		if a.Seq != h.after+int64(i+1) {
			r.Fatalf("line %d has number %d", h.after+int64(i+1), a.Seq)
		}
		key := string(a.Kind) + " " + a.Object
		if a.Kind == muster.AuditNode {
			key = "node " + string(a.Cluster) + "/" + a.Object
		}
		if at[key] != a.From {
			r.Fatalf("%s goes from %q, but was %q", key, a.From, at[key])
		}
		at[key] = a.To
	}
	for key, phase := range phases {
		if at[key] != phase {
			r.Fatalf("%s is %q, the audit says %q", key, phase, at[key])
		}
	}
	return nil
}

// hidden checks that every person sees exactly what is theirs or their projects'.
func (h *history) hidden(r *rapid.T) {
	for _, who := range []muster.Actor{alice(), bob(), carol()} {
		err := h.db.View(context.Background(), who, func(tx *store.Tx) error {
			for _, c := range h.clusters {
				_, err := tx.Cluster(c.ID)
				mine := c.Owner == who.Name || who.In(c.Project)
				if err == nil && !mine {
					r.Fatalf("%s sees %s's cluster", who.Name, c.Owner)
				}
				if err != nil && muster.CodeOf(err) != muster.ENotFound {
					return err
				}
				list, err := tx.Machines(store.MachineFilter{Cluster: c.ID})
				if err != nil || len(list) > 0 && !mine {
					r.Fatalf("%s sees %d machines of %s's cluster, %v", who.Name, len(list), c.Owner, err)
				}
			}
			return nil
		})
		if err != nil {
			r.Fatalf("%v", err)
		}
	}
}
