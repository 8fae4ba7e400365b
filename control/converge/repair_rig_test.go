package converge_test

import (
	"bufio"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// anySpare gives a lost node the first free machine that did not fail under its cluster.
type anySpare struct{ tx *store.Tx }

func (s anySpare) Free(muster.Cluster, muster.Node) (time.Time, error) { return time.Time{}, nil }

func (s anySpare) Choose(c muster.Cluster, _ []muster.Node, _ muster.Node, not []muster.MachineID) (muster.Machine, string, error) {
	free, err := s.tx.Machines(store.MachineFilter{Phases: []muster.MachinePhase{muster.MachineFree}})
	if err != nil {
		return muster.Machine{}, "", err
	}
	why := "every machine is taken"
	for _, m := range free {
		switch {
		case m.FailedUnder(c.ID):
			why = "1 failed under this cluster before"
		case !slices.Contains(not, m.ID) && (len(m.Conditions) == 0 || m.IsDoubtful()):
			return m, "", nil
		}
	}
	return muster.Machine{}, why, nil
}

// probe asks a machine past its agent.
func (s *server) probe(ctx context.Context, m muster.Machine) error {
	conn, err := s.fake.Dial(ctx, m.ID, 22)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	said := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(conn).ReadString('\n')
		said <- err
	}()
	select {
	case err := <-said:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.rig.clock.After(2 * time.Second):
		return context.DeadlineExceeded
	}
}

// lively is a rig whose lost machines are noticed and replaced.
func lively(tb testing.TB, r *rig) *rig {
	tb.Helper()
	r.repairs = true
	r.interval = 3 * time.Second
	r.limits.Boot, r.limits.Configure, r.limits.Shortest = 30*time.Second, 60*time.Second, 30*time.Second
	r.limits.Together = 1 // what went off is condemned at once
	r.limits.RetryMin, r.limits.OffRetry = time.Second, 5*time.Second
	return r
}

// nodeNamed is a node of a cluster.
func (s *server) nodeNamed(id muster.ClusterID, name string) muster.Node {
	_, nodes, _ := s.get(id)
	for _, n := range nodes {
		if n.Name == name {
			return n
		}
	}
	return muster.Node{}
}

// conditionsOf are the codes of the cluster's conditions.
func (s *server) conditionsOf(id muster.ClusterID) string {
	c, _, _ := s.get(id)
	var out []string
	for _, x := range c.Conditions {
		out = append(out, string(x.Code))
	}
	return strings.Join(out, " ")
}

func (s *server) put(m muster.Machine) {
	s.rig.tb.Helper()
	if err := s.db.Update(context.Background(), muster.System(), func(tx *store.Tx) error { return tx.PutMachine(m, "asked") }); err != nil {
		s.rig.tb.Fatal(err)
	}
}
