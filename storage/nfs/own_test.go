package nfs

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// ownSite is a site whose cluster one (m-1 and m-2 at 127.0.0.11 and .12) has a home, and mounts what others may mount, too.
type ownSite struct {
	*site
	*Exports
	told   *toldExports
	one    muster.Cluster
	mounts []volume.Mount
	at     OwnConfig
}

func newOwnSite(t *testing.T) *ownSite {
	t.Helper()
	o := &ownSite{site: newSite(t)}
	var clusters []muster.Cluster
	o.Exports, o.told, clusters = exportSite(t)
	o.one = clusters[0]
	o.c.Address = func(id muster.MachineID) (netip.Addr, bool) {
		return netip.MustParseAddr("127.0.0.1" + string(id[2:])), true
	}
	first := freePort(t)
	o.at = OwnConfig{
		At:       Config{Dir: filepath.Join(o.site.cfg.Dir, OwnDir), Address: o.site.cfg.Address, Port: first},
		LastPort: first + 20, Wants: func(c muster.Cluster) bool { return c.ID == o.one.ID },
	}
	o.begin(t)
	home, shared := o.volume(t, "hers"), o.volume(t, "everybody's")
	for e, id := range map[*Export]muster.ClusterID{&home: o.one.ID, &shared: ""} {
		o.mounts = append(o.mounts, volume.Mount{NFS: &wire.Mount{}, Export: &volume.Export{Name: e.Name, Path: e.Path, Cluster: id}})
	}
	slices.SortFunc(o.mounts, func(a, _ volume.Mount) int {
		if a.Export.Cluster != "" {
			return -1
		}
		return 1
	})
	return o
}

// begin is what a server does when it starts.
func (o *ownSite) begin(t *testing.T) {
	t.Helper()
	if o.c.Own != nil {
		o.c.Own.Close()
	}
	own, err := OpenOwn(o.at)
	if err != nil {
		t.Fatal(err)
	}
	o.c.Own = own
	t.Cleanup(own.Close)
}

func (o *ownSite) port(t *testing.T) netip.AddrPort {
	t.Helper()
	o.c.Own.mu.Lock()
	defer o.c.Own.mu.Unlock()
	return netip.AddrPortFrom(o.site.cfg.Address, o.c.Own.record.Servers[o.one.ID].Port)
}

// served holds that the cluster's own server serves its home, or that none is there.
func (o *ownSite) served(t *testing.T, when string, want bool) {
	t.Helper()
	c, err := dialNFS(o.port(t), alice, true, 0)
	if err == nil {
		defer c.close()
		_, err = c.walk(o.mounts[0].Export.Name, "secret")
		if _, e := c.walk(o.mounts[1].Export.Name); e == nil {
			t.Errorf("%s: its own server serves what others mount, too", when)
		}
	}
	if (err == nil) != want {
		t.Errorf("%s: served: %v, want %v: %v", when, err == nil, want, err)
	}
}

// A cluster's server serves what is its own and nothing else; it is held, also by the next server of Muster, until it is to serve
// again; and nothing is left of it when its cluster ends.
func TestOwn(t *testing.T) {
	t.Parallel()
	o := newOwnSite(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	open := func() { t.Helper(); must(o.Exports.Open(t.Context(), o.one, o.mounts)) }
	if o.KeepsLocks(o.one.ID) {
		t.Error("it has a server before it has a volume")
	}
	own, err := o.Exports.Mount(t.Context(), o.one, *o.mounts[0].Export, "/home", false)
	must(err)
	if want := "port=" + o.port(t).String()[len("127.0.0.1:"):]; own.Source != "127.0.0.1:/"+o.mounts[0].Export.Name || !slices.Contains(strings.Split(own.Options, ","), want) {
		t.Errorf("%+v, want %s", own, want)
	}
	common, err := o.Exports.Mount(t.Context(), o.one, *o.mounts[1].Export, "/data", false)
	must(err)
	if common.Source != o.mounts[1].Export.Name { // as the common one says it
		t.Errorf("what others mount, too, is mounted from %+v", common)
	}
	open()
	o.served(t, "opened", true)
	if got := o.told.open(); len(got) != 1 || got[0] != o.mounts[1].Export.Name+" 127.0.0.11 127.0.0.12" {
		t.Errorf("the common server serves %q", got)
	}
	if !o.KeepsLocks(o.one.ID) {
		t.Error("it has no server of its own")
	}

	must(o.Exports.Hold(t.Context(), o.one.ID, false))
	o.served(t, "held", false)
	open()
	o.served(t, "held, and opened again", false)
	o.begin(t)
	must(o.Exports.set(t.Context(), o.c.Own.all()...))
	open()
	must(o.Exports.Hold(t.Context(), o.one.ID, true))
	o.served(t, "held, and the next server", false)
	must(o.Exports.Serve(t.Context(), o.one.ID, true))
	o.served(t, "serves again", true)
	pid := o.c.Own.of(o.one.ID).child.pid
	must(o.Exports.Serve(t.Context(), o.one.ID, true))
	must(o.Exports.Serve(t.Context(), o.one.ID, false))
	if now := o.c.Own.of(o.one.ID).child.pid; now != pid {
		t.Error("it is started anew, a moment later")
	}
	o.begin(t) // nobody knows for how long it has served
	open()
	must(o.Exports.Serve(t.Context(), o.one.ID, false))
	if now := o.c.Own.of(o.one.ID).child.pid; now != pid {
		t.Error("it is started anew while machines run")
	}
	must(o.Exports.Serve(t.Context(), o.one.ID, true))
	if now := o.c.Own.of(o.one.ID).child.pid; now == pid {
		t.Error("machines that stand may come too late: it is not started anew")
	}
	o.served(t, "started anew", true)

	// Killed, it is started again; held, it is not.
	done := make(chan error, 1)
	go func() { done <- o.c.Own.Run(t.Context()) }()
	s := o.c.Own.of(o.one.ID)
	s.mu.Lock()
	pid = s.child.pid
	err = s.child.stop(0)
	s.mu.Unlock()
	must(err)
	(&site{Server: s}).waitFor(t, func() bool { return s.child != nil && s.child.pid != pid && s.child.alive() })

	// Nobody is there any more: nothing runs, and who comes next waits for nobody.
	for _, id := range []muster.MachineID{"m-1", "m-2"} {
		leaves(t, o.Exports, id)
		o.Exports.Left(t.Context(), id)
	}
	o.served(t, "all have left", false)
	if left, _ := filepath.Glob(filepath.Join(s.path(recoveryName), "*", "*", "*")); len(left) > 0 {
		t.Errorf("it would wait for %q", left)
	}
	must(o.Exports.Hold(t.Context(), o.one.ID, false)) // it ends while it is paused
	must(o.Over(t.Context(), o.one.ID))
	if _, err := os.Stat(filepath.Join(o.at.At.Dir, string(o.one.ID))); !os.IsNotExist(err) {
		t.Errorf("it is over, and there is its directory: %v", err)
	}
	if o.KeepsLocks(o.one.ID) || len(o.c.Own.record.Servers) > 0 {
		t.Error("it is over, and has a server")
	}
}

// A cluster whose machines were started mounts its volumes from where they were then; one that is deleted while nobody
// looks has no server afterwards; and who takes the site away takes these servers, too.
func TestOwnOfWhom(t *testing.T) {
	t.Parallel()
	o := newOwnSite(t)
	change := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := o.c.Store.Update(t.Context(), muster.System(), f); err != nil {
			t.Fatal(err)
		}
	}
	attempt := func(n int64) {
		change(func(tx *store.Tx) error {
			node, err := tx.Node(o.one.ID, "n01")
			if err != nil {
				return err
			}
			node.Attempt = n
			return tx.PutNode(node, "")
		})
	}
	mount := func() bool {
		t.Helper()
		if _, err := o.Exports.Mount(t.Context(), o.one, *o.mounts[0].Export, "/home", false); err != nil {
			t.Fatal(err)
		}
		return o.KeepsLocks(o.one.ID)
	}
	attempt(1)
	if mount() {
		t.Error("machines run that mount from elsewhere")
	}
	attempt(0)
	other := o.at
	other.LastPort = o.at.At.Port - 1
	if o.c.Own.c = other; mount() {
		t.Error("there is no port")
	}
	if o.c.Own.c = o.at; !mount() {
		t.Error("it gets none")
	}
	attempt(1)
	if !mount() {
		t.Error("it has it no more")
	}
	if err := o.Exports.Open(t.Context(), o.one, o.mounts); err != nil {
		t.Fatal(err)
	}
	o.served(t, "opened", true)
	at := o.port(t)
	o.c.Own.Close()
	if err := Remove(filepath.Dir(o.at.At.Dir)); err != nil {
		t.Fatal(err)
	}
	if c, err := dialNFS(at, alice, true, 0); err == nil {
		c.close()
		t.Error("the site is gone, and it is served")
	}

	o.c.Own = nil
	o.begin(t)
	attempt(0)
	mount()
	for _, p := range []muster.ClusterPhase{muster.ClusterDeleting, muster.ClusterDeleted} {
		if p == muster.ClusterDeleted {
			leaves(t, o.Exports, "m-1")
			leaves(t, o.Exports, "m-2")
		}
		change(func(tx *store.Tx) error { o.one.Phase = p; return tx.PutCluster(o.one, "") })
	}
	if err := o.Exports.endOwn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o.KeepsLocks(o.one.ID) {
		t.Error("it is deleted, and has a server")
	}
}

// TestOwnCost measures what servers of clusters cost: MUSTER_TEST_SPEED=1 go test -v -run TestOwnCost ./storage/nfs
func TestOwnCost(t *testing.T) {
	if os.Getenv("MUSTER_TEST_SPEED") == "" {
		t.Skip("measures only with MUSTER_TEST_SPEED=1")
	}
	const clusters = 20
	o := newOwnSite(t)
	o.c.Own.c.Wants, o.c.Own.c.LastPort = func(muster.Cluster) bool { return true }, o.at.At.Port+2*clusters
	home := Export{Name: o.mounts[0].Export.Name, Path: o.mounts[0].Export.Path, Clients: []Client{{Address: netip.MustParseAddr(alice)}}}
	var ids []muster.ClusterID
	began := time.Now()
	for range clusters {
		id := muster.NewClusterID()
		s, err := o.c.Own.take(muster.Cluster{ID: id}, func() (bool, error) { return false, nil })
		if err == nil {
			err = s.Set(t.Context(), []Export{home})
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		c, err := dialNFS(s.listen(), alice, true, 0)
		if err == nil {
			_, err = c.walk(home.Name, "secret")
			c.close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d started, one after the other: %s each", clusters, time.Since(began)/clusters)
	time.Sleep(2 * time.Second)
	pss := 0
	for _, id := range ids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", o.c.Own.of(id).child.pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), "\nPss:")
		n, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		pss += n
	}
	t.Logf("memory: %.1f MiB each (Pss)", float64(pss)/1024/clusters)
	for _, step := range []struct {
		name string
		f    func(muster.ClusterID) error
	}{
		{"held", func(id muster.ClusterID) error { return o.c.Own.hold(id, false, nil) }},
		{"served again", func(id muster.ClusterID) error { return o.c.Own.serve(t.Context(), id, true, nil) }},
		{"ended", o.c.Own.over},
	} {
		began := time.Now()
		for _, id := range ids {
			if err := step.f(id); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s, one after the other: %s each", step.name, time.Since(began)/clusters)
	}
}
