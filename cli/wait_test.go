package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
)

// become moves a cluster to phases.
func become(t *testing.T, s *controltest.Site, id string, phases ...muster.ClusterPhase) {
	t.Helper()
	err := s.Store.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
		c, err := tx.Cluster(muster.ClusterID(id))
		for _, p := range phases {
			if err != nil {
				return err
			}
			if p == muster.ClusterDeleted {
				return controltest.GiveBack(tx, c.ID)
			}
			if p == muster.ClusterPaused {
				c.Pause = &muster.Pause{By: "alice", OnPause: muster.PauseWait}
				err = release(tx, c.ID)
				if err != nil {
					return err
				}
			}
			c.Phase = p
			if p == muster.ClusterFailed {
				c.Reason = muster.Errorf(muster.ECorrupt, "the image is corrupt").Because(muster.ReasonCorrupt)
			}
			err = tx.PutCluster(c, "")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// release takes the machines of a cluster.
func release(tx *store.Tx, id muster.ClusterID) error {
	nodes, err := tx.Nodes(id)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		m, err := tx.Machine(n.Machine)
		if err != nil {
			return err
		}
		for _, p := range []muster.NodePhase{muster.NodeDraining, muster.NodeGone} {
			if n.Phase = p; p == muster.NodeGone {
				n.Machine = ""
			}
			if err := tx.PutNode(n, ""); err != nil {
				return err
			}
		}
		m.Phase, m.Cluster, m.Node = muster.MachineCleaning, "", ""
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
	}
	return nil
}

func TestWait(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	w := at(t, s)
	w.run("create", "cfd", "-n", "1", "--head", "shared").want(t, 0)
	id := idOf(t, w, "cfd")
	w.refused(8, muster.ReasonNotDoneYet, "wait", "cfd", "--timeout", "300ms").naming("cfd", "ready", "300ms")
	w.refused(3, muster.ReasonNoSuchCluster, "wait", "cdf")
	w.refused(3, muster.ReasonNoSuchCluster, "wait", "cdf", "--for", "deleted")
	w.refused(2, muster.ReasonBadValue, "wait", "cfd", "--for", "redy").naming("ready")
	w.refused(2, muster.ReasonBadValue, "wait", "cfd", "--for", "building").naming("paused")
	later := func(phases ...muster.ClusterPhase) chan result {
		done := make(chan result, 1)
		other := at(t, s)
		args := []string{"wait", "cfd", "--timeout", "1w"}
		if goal := phases[len(phases)-1]; goal != muster.ClusterReady {
			args = append(args, "--for", string(goal))
		}
		go func() { done <- other.run(args...) }()
		time.Sleep(300 * time.Millisecond)
		become(t, s, id, phases...)
		return done
	}
	r := <-later(muster.ClusterValidating, muster.ClusterReady)
	if r.want(t, 0, "(?m)^building", "(?m)^ready$"); strings.Count(r.out, "ready") > 2 {
		t.Error(r.out)
	}
	w.run("wait", "cfd", "-o", "json").want(t, 0, `"status": "ready"`)
	(<-later(muster.ClusterPausing, muster.ClusterPaused)).want(t, 0, "(?m)^paused$")
	w.refused(8, muster.ReasonNotDoneYet, "wait", "cfd", "--timeout", "10ms") // it was ready once, and is not now
	(<-later(muster.ClusterDeleting, muster.ClusterDeleted)).want(t, 0, "(?m)^deleted$")
	w.run("wait", "cfd", "--for", "deleted").want(t, 0, "deleted")
	w.run("wait", id, "--for", "deleted", "-o", "json").want(t, 0, `"status": "deleted"`)
	w.refused(4, muster.ReasonChangedMeanwhile, "wait", id).naming(id)

	w.run("create", "bad", "-n", "1", "--head", "shared").want(t, 0)
	become(t, s, idOf(t, w, "bad"), muster.ClusterFailed)
	w.refused(1, muster.ReasonCorrupt, "wait", "bad").naming("bad", "muster delete c-")
	w.run("wait", "bad", "--for", "failed").want(t, 0, "failed")
}

// Who follows a cluster is let go when it is gone, and reads so.
func TestEventsEndWithTheCluster(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	w := at(t, s)
	w.run("create", "cfd", "-n", "1", "--head", "shared").want(t, 0)
	id := idOf(t, w, "cfd")
	done := make(chan result, 2)
	go func() { done <- at(t, s).run("events", "-f", "cfd") }()
	go func() { done <- at(t, s).run("events", "-f", "cfd", "-o", "json") }()
	time.Sleep(200 * time.Millisecond)
	become(t, s, id, muster.ClusterDeleting, muster.ClusterDeleted)
	for range 2 {
		r := (<-done).want(t, 0)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		last := lines[len(lines)-1]
		if strings.HasPrefix(last, "{") && !strings.Contains(last, `"to":"deleted"`) || !strings.HasPrefix(last, "{") && last != "cluster cfd is deleted: no more events" {
			t.Errorf("the last line is %q", last)
		}
	}
	w.run("events", "-f", id).want(t, 0, "is deleted: no more events")
	w.run("events", "-f", id, "--after", "1000").want(t, 0)
}
