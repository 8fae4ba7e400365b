package volume_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
)

// site keeps records in memory, and volumes as entries of a map.
type site struct {
	mu       sync.Mutex
	volumes  map[muster.VolumeID]muster.Volume
	clusters map[muster.ClusterID]muster.Cluster
	disk     map[muster.VolumeID]int // how much is in it
	now      time.Time
	crash    func(string) bool // whether the server dies at this point
}

var errKilled = errors.New("killed")

func newSite() *site {
	return &site{
		volumes: map[muster.VolumeID]muster.Volume{}, clusters: map[muster.ClusterID]muster.Cluster{}, disk: map[muster.VolumeID]int{},
		now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), crash: func(string) bool { return false },
	}
}

func (s *site) keeper() *volume.Manager {
	return volume.New(volume.Config{Records: s, Drivers: map[muster.VolumeDriver]volume.Driver{muster.DriverHostPath: disk{s}}, Clock: clock{s}})
}

func (s *site) at(point string) error {
	if s.crash(point) {
		return errKilled
	}
	return nil
}

type clock struct{ s *site }

func (c clock) Now() time.Time {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.now
}
func (clock) After(time.Duration) <-chan time.Time { return nil }

func (s *site) Volumes(_ context.Context, q volume.Query) ([]muster.Volume, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []muster.Volume
	for _, v := range s.volumes {
		if (q.Cluster == "" || v.Cluster == q.Cluster) && (len(q.Phases) == 0 || slices.Contains(q.Phases, v.Phase)) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b muster.Volume) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out, s.at("list")
}

func (s *site) Volume(_ context.Context, id muster.VolumeID) (muster.Volume, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.volumes[id]
	if !ok {
		return v, muster.Errorf(muster.ENotFound, "there is no volume %s", id)
	}
	return v, nil
}

func (s *site) Add(_ context.Context, v muster.Volume, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.volumes {
		living := o.Phase != muster.VolumeDeleted
		if living && o.Project == v.Project && o.Name == v.Name || o.Phase == muster.VolumeReady && o.Cluster == v.Cluster && o.Kind == v.Kind {
			return muster.Errorf(muster.EConflict, "taken")
		}
	}
	if err := s.at("before add"); err != nil {
		return err
	}
	s.volumes[v.ID] = v
	return s.at("after add")
}

func (s *site) Change(_ context.Context, id muster.VolumeID, change func(*muster.Volume) (string, bool)) error {
	s.mu.Lock()
	v, ok := s.volumes[id]
	s.mu.Unlock()
	if !ok {
		return muster.Errorf(muster.ENotFound, "there is no volume %s", id)
	}
	old := v
	_, ok = change(&v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ok {
		return nil
	}
	if !old.Phase.CanBecome(v.Phase) {
		panic(fmt.Sprintf("%s: %s -> %s", id, old.Phase, v.Phase))
	}
	if err := s.at("before change"); err != nil {
		return err
	}
	s.volumes[id] = v
	return s.at("after change")
}

func (s *site) Cluster(_ context.Context, id muster.ClusterID) (muster.Cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clusters[id]
	if !ok {
		return c, muster.Errorf(muster.ENotFound, "there is no cluster %s", id)
	}
	return c, nil
}

// disk is a driver whose volumes hold a number.
type disk struct{ s *site }

func (d disk) Create(_ context.Context, v muster.Volume) (bool, error) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if p := d.s.volumes[v.ID].Phase; p != muster.VolumeReady {
		panic(fmt.Sprintf("%s is made while it is %q", v.ID, p))
	}
	if _, ok := d.s.disk[v.ID]; !ok {
		d.s.disk[v.ID] = 0
	}
	return v.Quota > 0, d.s.at("create")
}

func (d disk) Mounts(v muster.Volume, target string, readOnly bool) ([]volume.Mount, error) {
	return []volume.Mount{{Share: &volume.BindMount{Path: string(v.ID), Target: target, ReadOnly: readOnly}, HeadOnly: v.Kind == muster.VolumeScheduler}}, nil
}

func (d disk) Usage(_ context.Context, v muster.Volume) (int64, bool, error) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	return int64(d.s.disk[v.ID]), false, nil
}

func (d disk) Erase(_ context.Context, v muster.Volume) error {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if now := d.s.volumes[v.ID]; now.Phase != muster.VolumeDeleting {
		panic(fmt.Sprintf("%s is erased while it is %s", v.ID, now.Phase))
	}
	if err := d.s.at("before erase"); err != nil {
		return err
	}
	delete(d.s.disk, v.ID)
	return d.s.at("after erase")
}

func cluster(name string, retain time.Duration) muster.Cluster {
	return muster.Cluster{
		ID: muster.NewClusterID(), Name: name, Owner: "alice", Project: "sea", Phase: muster.ClusterReady, Ready: time.Unix(1, 0),
		Spec: muster.Spec{Name: name, Scheduler: muster.SchedulerSlurm, Retain: muster.Duration(retain)},
	}
}

// TestLife follows the volumes of a cluster from its begin to their end.
func TestLife(t *testing.T) {
	t.Parallel()
	s := newSite()
	k := s.keeper()
	c := cluster("cfd", time.Hour)
	c.Spec.HomeQuota = 1 << 30
	s.clusters[c.ID] = c
	for range 2 {
		m, err := k.Ensure(t.Context(), c)
		if err != nil || len(m) != 2 || m[0].Share.Target != "/home" || m[0].HeadOnly || !m[1].HeadOnly {
			t.Fatalf("%+v %v", m, err)
		}
	}
	home := s.find(t, "cfd-home")
	if len(s.volumes) != 2 || home.Quota != 1<<30 || !home.Enforced || home.Owner != "alice" || home.Project != "sea" {
		t.Fatalf("%+v", s.volumes)
	}
	if err := k.Release(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if failed, err := k.Sweep(t.Context()); failed || err != nil {
		t.Fatal(failed, err)
	}
	if home = s.find(t, "cfd-home"); home.Phase != muster.VolumeRetained || !home.Expires.Equal(s.now.Add(time.Hour)) || len(s.disk) != 1 {
		t.Fatalf("%+v %v", home, s.disk)
	}
	// Another of the same name gets a home of its own.
	d := cluster("cfd", 0)
	if _, err := k.Ensure(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	s.find(t, "cfd-home-2")
	s.now = s.now.Add(59 * time.Minute)
	_, _ = k.Sweep(t.Context())
	if s.find(t, "cfd-home").Phase != muster.VolumeRetained {
		t.Fatal("erased too early")
	}
	s.now = s.now.Add(time.Minute)
	_, _ = k.Sweep(t.Context())
	if s.find(t, "cfd-home").Phase != muster.VolumeDeleted || len(s.disk) != 2 {
		t.Fatal("not erased", s.disk)
	}
	// One that was to leave nothing leaves nothing.
	if err := k.Release(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	_, _ = k.Sweep(t.Context())
	if len(s.disk) != 0 {
		t.Fatal(s.disk)
	}
}

// TestNeverReady: a home in which nobody was is not kept.
func TestNeverReady(t *testing.T) {
	t.Parallel()
	s := newSite()
	k := s.keeper()
	c := cluster("cfd", time.Hour)
	c.Ready = time.Time{}
	if _, err := k.Ensure(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := k.Release(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_, _ = k.Sweep(t.Context())
	if len(s.disk) != 0 {
		t.Fatal(s.disk)
	}
}

// TestGone: what a cluster mounts must be there, and be its project's.
func TestGone(t *testing.T) {
	t.Parallel()
	s := newSite()
	k := s.keeper()
	c := cluster("cfd", time.Hour)
	data := muster.Volume{ID: muster.NewVolumeID(), Name: "in", Owner: "alice", Project: "sea", Kind: muster.VolumeData, Driver: muster.DriverHostPath, Phase: muster.VolumeReady}
	c.Spec.Volumes = []muster.VolumeUse{{Volume: string(data.ID), Target: "/in", ReadOnly: true}}
	for name, change := range map[string]func(*muster.Volume){
		"foreign": func(v *muster.Volume) { v.Project = "sky" },
		"going":   func(v *muster.Volume) { v.Phase = muster.VolumeDeleting },
		"a home":  func(v *muster.Volume) { v.Kind = muster.VolumeHome },
		"absent":  func(v *muster.Volume) { v.ID = "v-2222222222" },
	} {
		v := data
		change(&v)
		s.volumes = map[muster.VolumeID]muster.Volume{v.ID: v}
		if _, err := k.Ensure(t.Context(), c); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.volumes = map[muster.VolumeID]muster.Volume{data.ID: data}
	m, err := k.Ensure(t.Context(), c)
	if err != nil || len(m) != 3 || m[2].Share.Target != "/in" || !m[2].Share.ReadOnly {
		t.Errorf("%+v %v", m, err)
	}
	c.Spec.Home = "v-2222222222" // it was taken when the cluster was made; and is not there
	s.volumes = map[muster.VolumeID]muster.Volume{}
	if _, err := k.Ensure(t.Context(), c); muster.CodeOf(err) != muster.ENotFound {
		t.Error(err)
	}
}

func (s *site) find(t *testing.T, name string) muster.Volume {
	t.Helper()
	for _, v := range s.volumes {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no volume %s among %v", name, s.volumes)
	return muster.Volume{}
}

// TestCrashes kills the server at any point of any story. After a restart the
// same end is reached: nothing is on disk without a record, nothing is lost
// that is to be kept, and what is to go goes.
func TestCrashes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		s := newSite()
		k := s.keeper()
		kept := map[muster.VolumeID]time.Time{} // homes, and until when
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "killed") {
				left := rapid.IntRange(0, 6).Draw(t, "after")
				s.crash = func(string) bool { left--; return left < 0 }
			}
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
			var err error
			switch rapid.SampledFrom([]string{"make", "end", "sweep", "later", "measure"}).Draw(t, "step") {
			case "make":
				c := cluster(name, time.Duration(rapid.IntRange(0, 2).Draw(t, "retain"))*time.Hour)
				if _, err = k.Ensure(ctx, c); err != nil {
					c.Ready = time.Time{} // it boots nothing before its volumes are there
				}
				s.clusters[c.ID] = c
			case "end":
				for id, c := range s.clusters {
					if c.Phase == muster.ClusterReady {
						if err = k.Release(ctx, c); err == nil {
							c.Phase = muster.ClusterDeleted
							s.clusters[id] = c
						}
						break
					}
				}
			case "sweep":
				_, err = k.Sweep(ctx)
			case "later":
				s.now = s.now.Add(time.Hour)
			case "measure":
				err = k.MeasureDue(ctx)
			}
			for id, v := range s.volumes {
				if v.Phase == muster.VolumeRetained {
					kept[id] = v.Expires
				}
				if until, ok := kept[id]; ok && s.now.Before(until) && v.Phase != muster.VolumeRetained {
					t.Fatalf("%s was to be kept until %s and is %s", id, until, v.Phase)
				}
				if _, there := s.disk[id]; !there && v.Phase == muster.VolumeRetained {
					t.Fatalf("%s is kept and has no place", id)
				}
			}
			for id := range s.disk {
				if p := s.volumes[id].Phase; p == "" || p == muster.VolumeDeleted {
					t.Fatalf("%s is on disk, its record says %q", id, p)
				}
			}
			if err != nil { // killed: a new server starts
				k = s.keeper()
			}
			s.crash = func(string) bool { return false }
		}
		// The end: all clusters go, the server runs in peace.
		k = s.keeper()
		for id, c := range s.clusters {
			c.Phase = muster.ClusterDeleted
			s.clusters[id] = c
		}
		if err := k.Abandoned(ctx); err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(3 * time.Hour)
		if failed, err := k.Sweep(ctx); failed || err != nil {
			t.Fatal(failed, err)
		}
		if len(s.disk) != 0 {
			t.Fatalf("left on disk: %v of %+v", s.disk, s.volumes)
		}
		for id, v := range s.volumes {
			if v.Phase != muster.VolumeDeleted {
				t.Fatalf("%s is %s", id, v.Phase)
			}
		}
	})
}

// TestFails reports what cannot be erased, and tries again.
func TestFails(t *testing.T) {
	t.Parallel()
	s := newSite()
	k := s.keeper()
	c := cluster("cfd", 0)
	if _, err := k.Ensure(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := k.Release(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.crash = func(point string) bool { return point == "before erase" }
	if failed, _ := k.Sweep(t.Context()); !failed || len(k.Failing()) != 2 {
		t.Error(failed, k.Failing())
	}
	s.crash = func(string) bool { return false }
	if failed, _ := k.Sweep(t.Context()); failed || len(k.Failing()) != 0 || len(s.disk) != 0 {
		t.Error(failed, k.Failing(), s.disk)
	}
}
