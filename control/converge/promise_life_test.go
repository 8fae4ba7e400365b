package converge_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// ask makes a cluster as people do.
func (s *server) ask(nodes int, name string, walltime time.Duration, start time.Time) (wire.Created, error) {
	text := fmt.Sprintf("name: %s\nnodes: %d\nhead: shared\nimage: raw\nscheduler: none\nusers: [alice]\nwalltime: %s\n", name, nodes, walltime)
	if !start.IsZero() {
		text += "start: " + start.UTC().Format(time.RFC3339) + "\n"
	}
	return s.control.CreateCluster(context.Background(), administrator(), wire.CreateCall{Body: []byte(text), Format: "yaml"})
}

// A promised cluster starts at its time though the server is killed again and again around
// it, though the tenant before stays until the last moment, and though a machine fails its
// cleaning then: others take its place. Where none can, its people are told of another time.
// No machine is ever in two hands.
func TestPromiseWhileTheServerIsKilled(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() || raced.Enabled {
		rounds = 3
	}
	first := rand.Uint64N(1 << 32)
	t.Logf("seed %d", first)
	for round := range uint64(rounds) {
		t.Run("", func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				chance := rand.New(rand.NewPCG(first, round))
				const machines = 4
				nodes := 3 + int(round%2) // of all of them, one that is lost is missing
				breaks := round%4 < 2
				r := newRig(t, fake.Options{Machines: machines, Seed: chance.Uint64(), BootMax: time.Second, CleanTime: 100 * time.Millisecond})
				r.limits = quickLimits()
				r.limits.CleanTries, r.limits.TestsMost = 2, 1
				r.calendar = true
				s := r.start()
				s.untilFree(machines)
				story := &crashStory{t: t, seed: first}

				before, err := s.ask(machines, "before", time.Hour, time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				s.untilPhase(before.ID, muster.ClusterReady)
				at := r.clock.Now().Add(85 * time.Minute).Truncate(time.Second)
				promised, err := s.ask(nodes, "promised", time.Hour, at)
				if err != nil || promised.Status != string(muster.ClusterReserved) {
					t.Fatalf("%+v, %v", promised.Answer, err)
				}
				if breaks { // what the last tenant leaves cannot be cleaned
					_, list, _ := s.get(before.ID)
					bad := list[chance.IntN(len(list))].Machine
					r.world.FailCleans(bad, 1000)
					r.world.FailTests(bad, -1)
				}
				time.Sleep(time.Duration(55+chance.IntN(25)) * time.Minute)
				for range 2 + chance.IntN(4) {
					r.stop()
					k := newKiller(int64(1 + chance.IntN(60)))
					r.fault = k.fault
					r.wrap = func(s *server, p provider.Provider) provider.Provider { return mortal{p, k, s} }
					if _, err := r.tryStart(); err == nil {
						k.wait(time.Duration(chance.IntN(5)) * time.Minute)
					}
				}
				r.stop()
				r.fault, r.wrap = nil, nil
				s = r.start()
				due := at
				if up := r.clock.Now(); up.After(due) { // no server was there at its time
					due = up
				}
				look := func() muster.Cluster {
					_ = s.db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
						list, err := tx.Clusters(store.ClusterFilter{})
						all, err2 := tx.Machines(store.MachineFilter{})
						if err == nil && err2 == nil {
							story.invariants(list, all, tx)
						}
						return nil
					})
					c, _, err := s.get(promised.ID)
					if err != nil {
						t.Fatal(err)
					}
					return c
				}
				c := look()
				for c.Phase != muster.ClusterReady && r.clock.Now().Before(at.Add(20*time.Minute)) {
					time.Sleep(5 * time.Second)
					c = look()
				}
				switch lost := breaks && nodes == machines; {
				case !lost && (c.Phase != muster.ClusterReady || !c.Expires.Equal(at.Add(time.Hour))):
					t.Errorf("round %d: %s until %s, promised for %s: %+v %v %+v", round, c.Phase, c.Expires, at, c.Promise, c.Conditions, s.machines())
				case !lost && r.clock.Now().After(due.Add(3*time.Minute)):
					t.Errorf("round %d: ready at %s, promised for %s, and there was a server from %s on", round, r.clock.Now(), at, due)
				case lost && (c.Phase == muster.ClusterReady || !slices.ContainsFunc(c.Notices, func(n muster.Notice) bool { return n.Code == muster.NoticePromise })):
					t.Errorf("round %d: %s, and nobody was told: %+v %v", round, c.Phase, c.Promise, c.Conditions)
				}
			})
		})
	}
}
