package daemon_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/raced"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

var (
	yearSeed = flag.Uint64("year-seed", 0, "seed of the pretended year; 0: another one each time")
	yearDays = flag.Int("year-days", 0, "days of the pretended year; 0: all of them, 30 with -short, 15 with the race detector")
)

// TestYear lives through a year of a site of 200 machines in pretended time:
// clusters come in all sizes, grow, shrink, get more time and go, machines fail
// in every way, administrators take them out and bring them back, the power
// goes, the server is restarted and killed. All the time, and at the end, the
// invariants hold.
func TestYear(t *testing.T) {
	seed, days := *yearSeed, *yearDays
	if seed == 0 {
		seed = rand.Uint64()
	}
	if days == 0 {
		switch days = 365; {
		case raced.Enabled:
			days = 15
		case testing.Short():
			days = 30
		}
	}
	t.Logf("to repeat it: go test ./daemon -run TestYear -year-seed %d -year-days %d", seed, days)
	dir := t.TempDir()
	if d, err := os.MkdirTemp("/dev/shm", "muster-year"); err == nil {
		dir = d // a disk of memory: what is tested here is not the disk
		t.Cleanup(func() { _ = os.RemoveAll(d) })
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a server lives in it all the time
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	began := time.Now()
	var l *life
	synctest.Test(t, func(t *testing.T) {
		l = newLife(t, dir, seed, 200)
		l.run(time.Duration(days) * 24 * time.Hour)
		l.end()
	})
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	t.Logf("%d days in %.1f s, %.1f CPU seconds: %v", days, time.Since(began).Seconds(),
		time.Duration(after.Utime.Nano()-before.Utime.Nano()+after.Stime.Nano()-before.Stime.Nano()).Seconds(), l.counts)
}

// life is what happens to a site.
type life struct {
	*yearSite
	r      *rand.Rand
	admin  muster.Actor
	counts map[string]int
	names  int
	total  int
	used   time.Duration // of the processor, at the last look
	last   time.Time
}

func newLife(t *testing.T, dir string, seed uint64, machines int) *life {
	y := newYearSite(t, dir)
	y.world = fake.New(fake.Options{
		Machines: machines, Classes: 2, Seed: seed, BootMin: 20 * time.Second, BootMax: 90 * time.Second,
		CleanTime: 30 * time.Second, FenceTime: 2 * time.Second, TestTime: 2 * time.Minute,
		Rates: fake.Rates{Refuse: 0.005, Hang: 0.005, Die: 0.01, Fail: 0.005, Clean: 0.005, Test: 0.3, Crash: 1.0 / (180 * 24)},
		Link:  func(m *fake.Machine, _ provider.Boot) fake.Link { return y.connect(m) },
	})
	l := &life{yearSite: y, r: rand.New(rand.NewPCG(seed, 7)), admin: muster.Actor{Name: "root", Admin: true}, counts: map[string]int{}, total: machines}
	l.start()
	for _, name := range []string{"alice", "bob", "carol"} {
		if _, err := l.srv.control.PutUser(context.Background(), l.admin, wire.UserRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(10 * time.Minute)
	l.check()
	return l
}

// run lets so much time pass, with everything that happens in it.
func (l *life) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !l.t.Failed(); {
		time.Sleep(time.Duration(l.r.ExpFloat64() * float64(200*time.Minute)))
		l.happen()
		l.check()
		l.costs()
	}
}

// costs reports a time in which much was done: somebody looks again and again
// at what does not change.
func (l *life) costs() {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	used := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if l.used != 0 && used-l.used > 2*time.Second {
		l.t.Logf("%s: %.1f CPU seconds since %s", time.Now(), (used - l.used).Seconds(), l.last)
		told := 0
		for _, c := range l.clusters() {
			l.view(func(tx *store.Tx) error {
				nodes, err := tx.Nodes(c.ID)
				for _, n := range nodes {
					if (n.Phase != muster.NodeReady && n.Phase != muster.NodeGone || len(n.Conditions) > 0) && told < 5 {
						told++
						l.t.Logf("  %s %s %v: node %s %s on %s: %v", c.ID, c.Phase, c.Conditions, n.Name, n.Phase, n.Machine, n.Conditions)
					}
				}
				return err
			})
		}
	}
	l.used, l.last = used, time.Now()
}

// happen has one thing happen.
func (l *life) happen() {
	n := l.r.IntN(1000)
	for _, e := range []struct {
		what  string
		often int
		do    func() error
	}{
		{"create", 300, l.create},
		{"delete", 60, l.remove},
		{"scale", 160, l.scale},
		{"extend", 60, l.extend},
		{"reboot", 100, func() error { return l.leave("reboot") }},
		{"poweroff", 10, func() error { return l.leave("poweroff") }},
		{"hang", 60, func() error { return l.trouble(fake.TroubleHang) }},
		{"cut", 40, func() error { return l.trouble(fake.TroubleCut) }},
		{"agent", 40, func() error { return l.trouble(fake.TroubleAgent) }},
		{"bad", 40, l.bad},
		{"hide", 10, l.hide},
		{"intent", 80, l.intent},
		{"slow", 5, l.slow},
		{"restart", 20, l.restart},
		{"kill", 10, l.kill},
		{"power", 3, l.power},
	} {
		if n -= e.often; n >= 0 {
			continue
		}
		err := e.do()
		switch muster.CodeOf(err) {
		case "":
			l.counts[e.what]++
		case muster.EInternal, muster.ECorrupt:
			l.t.Errorf("%s: %s: %v", time.Now(), e.what, err)
		default:
			l.counts[e.what+" refused"]++
		}
		return
	}
}

func (l *life) create() error {
	l.names++
	nodes := 1 + int(min(l.r.ExpFloat64()*6, 40))
	spec := map[string]any{
		"name": fmt.Sprintf("c%d", l.names), "nodes": nodes, "image": "hpc", "users": []string{[]string{"alice", "bob", "carol"}[l.r.IntN(3)]},
		"head": []string{"shared", "separate"}[l.r.IntN(2)], "walltime": fmt.Sprintf("%dh", 2+int(l.r.ExpFloat64()*200)),
	}
	if l.r.IntN(4) == 0 {
		spec["min"] = 1 + l.r.IntN(nodes)
	}
	body, _ := json.Marshal(spec)
	_, err := l.srv.control.CreateCluster(context.Background(), l.admin, wire.CreateCall{Body: body, Format: "json"})
	return err
}

// some is one of the clusters in a phase; "" when there is none.
func (l *life) some(phases ...muster.ClusterPhase) (c muster.Cluster) {
	list := l.clusters(phases...)
	if len(list) > 0 {
		c = list[l.r.IntN(len(list))]
	}
	return c
}

func (l *life) clusters(phases ...muster.ClusterPhase) (list []muster.Cluster) {
	l.view(func(tx *store.Tx) (err error) {
		list, err = tx.Clusters(store.ClusterFilter{Phases: phases, Living: true})
		return err
	})
	return list
}

func (l *life) view(f func(tx *store.Tx) error) {
	if err := l.srv.db.View(context.Background(), muster.System(), f); err != nil && muster.CodeOf(err) != muster.EUnavailable {
		l.t.Fatal(err)
	}
}

func (l *life) remove() error {
	c := l.some()
	if c.ID == "" {
		return nil
	}
	_, err := l.srv.control.DeleteCluster(context.Background(), l.admin, string(c.ID))
	return err
}

func (l *life) scale() error {
	c := l.some(muster.ClusterReady)
	if c.ID == "" {
		return nil
	}
	change := 1 + l.r.IntN(6)
	if l.r.IntN(2) == 0 {
		change = -min(change, c.Spec.Nodes-1)
	}
	if change == 0 {
		return nil
	}
	_, _, err := l.srv.control.Scale(context.Background(), l.admin, string(c.ID), wire.ScaleRequest{Change: change, Now: l.r.IntN(3) == 0, Some: l.r.IntN(4) == 0})
	return err
}

func (l *life) extend() error {
	c := l.some(muster.ClusterReady)
	if c.ID == "" {
		return nil
	}
	_, err := l.srv.control.Extend(context.Background(), l.admin, string(c.ID), wire.ExtendRequest{By: fmt.Sprintf("%dh", 1+l.r.IntN(48))})
	return err
}

// victim is a machine that runs; "" when none does.
func (l *life) victim() muster.MachineID {
	running := l.world.Running()
	list := make([]muster.MachineID, 0, len(running))
	for id := range running {
		list = append(list, id)
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	return list[l.r.IntN(len(list))]
}

func (l *life) leave(how string) error {
	if id := l.victim(); id != "" {
		l.world.Leave(id, how)
	}
	return nil
}

// trouble ails one machine, or a few of them; some troubles end by themselves.
func (l *life) trouble(t fake.Trouble) error {
	for range 1 + l.r.IntN(10)/8 {
		id := l.victim()
		if id == "" {
			return nil
		}
		l.ail(id, t)
		if l.r.IntN(3) == 0 || t == fake.TroubleAgent {
			time.AfterFunc(time.Duration(l.r.ExpFloat64()*float64(time.Minute)), func() { l.ail(id, fake.TroubleNone) })
		}
	}
	return nil
}

func (l *life) machine() muster.MachineID {
	return muster.MachineID(fmt.Sprintf("fake-%04d", 1+l.r.IntN(l.total)))
}

func (l *life) bad() error {
	id := l.machine()
	switch l.r.IntN(4) {
	case 0:
		l.world.FailFences(id, 1+l.r.IntN(3))
	case 1:
		l.world.FailTests(id, 1+l.r.IntN(3))
	case 2:
		l.world.Break(id, []fake.Fault{fake.FaultRefuse, fake.FaultHang, fake.FaultDie, fake.FaultFail}[l.r.IntN(4)])
	case 3:
		l.world.Kill(id)
	}
	return nil
}

func (l *life) hide() error {
	id := l.machine()
	l.world.Hide(id, true)
	time.AfterFunc(time.Duration(l.r.ExpFloat64()*float64(24*time.Hour)), func() { l.world.Hide(id, false) })
	return nil
}

func (l *life) intent() error {
	what := []wire.MachineAction{wire.MachineDrain, wire.MachineMaintenance, wire.MachineTest, wire.MachineUndrain, wire.MachineUndrain, wire.MachineUndrain, wire.MachineUndrain}[l.r.IntN(7)]
	id := l.machine()
	if what == wire.MachineUndrain { // of those that need it
		l.view(func(tx *store.Tx) error {
			list, err := tx.Machines(store.MachineFilter{})
			list = slices.DeleteFunc(list, func(m muster.Machine) bool {
				return m.Intent == muster.IntentNone && m.Phase != muster.MachineMaintenance && m.Phase != muster.MachineQuarantined
			})
			if len(list) > 0 {
				id = list[l.r.IntN(len(list))].ID
			}
			return err
		})
	} else if l.r.IntN(40) == 0 && l.counts["retired"] < l.total/20 {
		what = wire.MachineRetire
		l.counts["retired"]++
	}
	_, err := l.srv.control.ChangeMachines(context.Background(), l.admin, string(id), what, wire.MachineChange{Why: "it is that day"})
	return err
}

func (l *life) slow() error {
	l.world.Slow(time.Duration(l.r.IntN(20)) * time.Second)
	l.world.FailCalls(0.3)
	time.AfterFunc(time.Duration(l.r.ExpFloat64()*float64(time.Hour)), func() { l.world.Slow(0); l.world.FailCalls(0) })
	return nil
}

func (l *life) restart() error {
	l.stop()
	time.Sleep(time.Duration(l.r.ExpFloat64() * float64(5*time.Minute)))
	l.start()
	return nil
}

// kill ends the server in the middle of a commit soon.
func (l *life) kill() error {
	l.fault.Store(1 + l.r.Int64N(40))
	for range 60 {
		if l.fault.Load() == 0 {
			break
		}
		time.Sleep(time.Minute)
	}
	return l.restart()
}

func (l *life) power() error {
	l.world.PowerCut()
	server := l.r.IntN(2) == 0
	if server {
		l.stop()
	}
	time.Sleep(time.Duration(l.r.ExpFloat64() * float64(30*time.Minute)))
	l.world.PowerBack()
	if server {
		l.start()
	}
	return nil
}

// check checks what must hold at every moment.
func (l *life) check() {
	synctest.Wait()
	dirty := map[muster.MachineID]bool{}
	for _, id := range l.world.Dirty() {
		dirty[id] = true
	}
	l.view(func(tx *store.Tx) error {
		machines, err := tx.Site()
		if err != nil {
			return err
		}
		fills := map[string]muster.MachineID{}
		for _, m := range machines {
			if m.Phase == muster.MachineFree && (dirty[m.ID] || m.LastClean == nil || !m.LastClean.Verified) {
				l.t.Errorf("%s: machine %s is free and not clean", time.Now(), m.ID)
			}
			if m.Cluster != "" {
				key := string(m.Cluster) + "/" + m.Node
				if other := fills[key]; other != "" {
					l.t.Errorf("%s: %s and %s both fill %s", time.Now(), other, m.ID, key)
				}
				fills[key] = m.ID
			}
		}
		clusters, err := tx.Clusters(store.ClusterFilter{Living: true})
		if err != nil {
			return err
		}
		for _, c := range clusters {
			nodes, err := tx.Nodes(c.ID)
			if err != nil {
				return err
			}
			compute := 0
			for _, n := range nodes {
				if n.Machine != "" && n.Phase != muster.NodeGone && n.Phase != muster.NodeDraining && fills[string(c.ID)+"/"+n.Name] != n.Machine {
					l.t.Errorf("%s: node %s of %s (%s) thinks that it has %s, which %q fills", time.Now(), n.Name, c.ID, n.Phase, n.Machine, fills[string(c.ID)+"/"+n.Name])
				}
				if n.Role == muster.RoleCompute && n.Phase != muster.NodeGone && n.Phase != muster.NodeDraining {
					compute++
				}
			}
			least := c.Spec.Nodes
			if c.Spec.Min > 0 {
				least = min(least, c.Spec.Min)
			}
			if c.Phase == muster.ClusterReady && c.Scaling == nil && compute < least {
				l.t.Errorf("%s: cluster %s is ready with %d of %d nodes", time.Now(), c.ID, compute, least)
			}
		}
		return nil
	})
}

// end gives everything back, and checks that nothing is left.
func (l *life) end() {
	defer func() {
		l.stop()
		l.world.Close()
		l.leftovers()
	}()
	l.world.PowerBack()
	l.world.Slow(0)
	l.world.FailCalls(0)
	for i := range l.total {
		id := muster.MachineID(fmt.Sprintf("fake-%04d", i+1))
		l.world.Hide(id, false)
		l.world.FailFences(id, 0)
		l.ail(id, fake.TroubleNone)
	}
	for day := 0; day < 30 && len(l.clusters()) > 0; day++ {
		for _, c := range l.clusters() {
			if c.Phase != muster.ClusterDeleting {
				_, _ = l.srv.control.DeleteCluster(context.Background(), l.admin, string(c.ID))
			}
		}
		time.Sleep(24 * time.Hour)
		l.check()
	}
	time.Sleep(24 * time.Hour)
	l.check()
	for _, c := range l.clusters() {
		l.t.Errorf("cluster %s is left: %s %v; failing %v", c.ID, c.Phase, c.Conditions, l.srv.conv.Failing())
	}
	phases := map[muster.MachinePhase]int{}
	l.view(func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{})
		for _, m := range list {
			switch phases[m.Phase]++; m.Phase {
			case muster.MachineFree, muster.MachineQuarantined, muster.MachineRetired, muster.MachineMaintenance:
			default:
				l.t.Errorf("machine %s is left %s: intent %q, conditions %v", m.ID, m.Phase, m.Intent, m.Conditions)
			}
		}
		return err
	})
	for id := range l.world.Running() {
		l.t.Errorf("machine %s still runs", id)
	}
	if list, err := l.srv.fake.Networks(context.Background()); len(list) > 0 || err != nil {
		l.t.Errorf("networks are left: %v %v", list, err)
	}
	l.t.Logf("machines at the end: %v", phases)
}

// leftovers looks into the file for secrets of clusters that are gone.
func (l *life) leftovers() {
	db, err := sql.Open("sqlite", filepath.Join(l.dir, "muster.db"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"secrets", "joins"} {
		var n int
		if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil || n != 0 {
			l.t.Errorf("%d %s are left, %v", n, table, err)
		}
	}
}
