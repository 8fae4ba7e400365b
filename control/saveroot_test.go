package control_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// packer makes images of what it reads, or fails.
type packer struct {
	mu    sync.Mutex
	opts  image.SaveOptions
	read  string
	fails error
	hold  chan struct{} // of the packing, after all was read; nil: it is quick
	n     int
}

func (p *packer) save(ctx context.Context, o image.SaveOptions, tree io.Reader) (*muster.Image, image.TreeChanges, error) {
	text, err := io.ReadAll(tree)
	p.mu.Lock()
	p.opts, p.read = o, string(text)
	p.n++
	fails, hold, n := p.fails, p.hold, p.n
	p.mu.Unlock()
	if err != nil || fails != nil {
		return nil, image.TreeChanges{}, fails
	}
	o.Received()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, image.TreeChanges{}, context.Cause(ctx)
		}
	}
	return &muster.Image{ID: muster.ImageID("sha256:" + strings.Repeat(string(rune('0'+n)), 64)), Name: "raw", UserRoot: true, Saved: &o.By}, image.TreeChanges{Written: 3}, nil
}

// saver is a site with a ready cluster of a raw machine.
type saver struct {
	*controltest.Site
	t       *testing.T
	p       *packer
	cluster muster.ClusterID
	spoken  chan string
}

func newSaver(t *testing.T) *saver {
	t.Helper()
	s := &saver{t: t, p: &packer{}, spoken: make(chan string, 10)}
	s.Site = controltest.Start(t, controltest.Options{Machines: 2, Build: true, Control: func(c *control.Config) {
		c.SaveRoot = s.p.save
		c.Speak = func(_ muster.ClusterID, node string) { s.spoken <- node }
	}})
	made, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: lab; nodes: 1; image: raw; head: shared; users: [alice]"))
	if err != nil {
		t.Fatal(err)
	}
	s.cluster = made.ID
	waitFor(t, s.Client(""), made.ID, muster.ClusterReady)
	return s
}

func (s *saver) identity() pki.NodeIdentity {
	s.t.Helper()
	var n muster.Node
	err := s.Store.View(s.t.Context(), muster.System(), func(tx *store.Tx) (err error) {
		n, err = tx.Node(s.cluster, "n01")
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return pki.NodeIdentity{Cluster: s.cluster, Node: "n01", Machine: n.Machine, Attempt: n.Attempt}
}

func (s *saver) begin(r wire.SaveRequest) wire.Template {
	s.t.Helper()
	t, err := s.Control.Save(s.t.Context(), root(), "lab", r)
	if err != nil || t.Saving == nil {
		s.t.Fatalf("%+v, %v", t, err)
	}
	if node := <-s.spoken; node != "n01" {
		s.t.Errorf("%s was asked", node)
	}
	return t
}

// settled waits until the saving of a template has ended.
func (s *saver) settled(name string) wire.Template {
	s.t.Helper()
	for range 500 {
		t, err := s.Control.Template(s.t.Context(), root(), name)
		if err != nil {
			s.t.Fatal(err)
		}
		if t.Saving == nil || t.Saving.Error != nil {
			return t
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatal("the saving does not end")
	return wire.Template{}
}

func TestSaveRoot(t *testing.T) {
	t.Parallel()
	s := newSaver(t)
	begun := s.begin(wire.SaveRequest{Name: "solver", Root: "head"})
	if begun.Usable() {
		t.Error("a template can be used before its root is there")
	}
	order := s.Control.SaveOrder(s.cluster, "n01")
	if order == nil || order.ID != begun.Saving.ID {
		t.Fatalf("%+v", order)
	}
	if s.Control.SaveOrder(s.cluster, "n02") != nil {
		t.Error("another node is asked, too")
	}
	if _, err := s.Control.Save(t.Context(), root(), "lab", wire.SaveRequest{Name: "solver", Root: "n01", Replace: true}); muster.ReasonOf(err) != muster.ReasonNotDoneYet {
		t.Errorf("twice at once: %v", err)
	}
	// Only this node, in this boot.
	other := s.identity()
	other.Attempt++
	if err := s.Control.TakeRoot(t.Context(), other, order.ID, strings.NewReader("x")); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("another boot: %v", err)
	}
	if err := s.Control.TakeRoot(t.Context(), s.identity(), "other", strings.NewReader("x")); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("another order: %v", err)
	}
	if err := s.Control.TakeRoot(t.Context(), s.identity(), order.ID, strings.NewReader("the root")); err != nil {
		t.Fatal(err)
	}
	got := s.settled("solver")
	if !got.Usable() || got.Root == nil || got.Root.Written != 3 || got.Spec.Image != string(got.Image) || s.p.read != "the root" {
		t.Errorf("%+v, read %q", got, s.p.read)
	}
	if o := s.p.opts; o.By.Project != "default" || o.By.Node != "n01" || o.Base == "" || len(o.Forget) < 2 {
		t.Errorf("%+v", o)
	}
	if s.Control.SaveOrder(s.cluster, "n01") != nil {
		t.Error("it is asked for again")
	}

	// One that fails leaves what was there.
	s.p.fails = muster.Errorf(muster.EInvalid, "no system")
	again := s.begin(wire.SaveRequest{Name: "solver", Root: "n01", Replace: true})
	if err := s.Control.TakeRoot(t.Context(), s.identity(), again.Saving.ID, strings.NewReader("")); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("the node is not told: %v", err)
	}
	if bad := s.settled("solver"); bad.Saving == nil || bad.Image != got.Image || !bad.Usable() {
		t.Errorf("%+v", bad)
	}
}

// A server that ends while a root is saved finds the record, and says that it failed.
func TestSaveRootInterrupted(t *testing.T) {
	t.Parallel()
	s := newSaver(t)
	s.p.hold = make(chan struct{})
	begun := s.begin(wire.SaveRequest{Name: "solver", Root: "n01"})
	if err := s.Control.TakeRoot(t.Context(), s.identity(), begun.Saving.ID, strings.NewReader("the root")); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Control.Template(t.Context(), root(), "solver"); err != nil || p.Progress == nil || p.Progress.Stage != "packing" || p.Progress.Bytes != 8 {
		t.Errorf("%+v, %v", p.Progress, err)
	}
	if err := s.Control.FailSaves(t.Context()); err != nil { // as the next server does
		t.Fatal(err)
	}
	close(s.p.hold)
	got := s.settled("solver")
	if got.Saving == nil || got.Saving.Error == nil || got.Usable() {
		t.Errorf("%+v", got.Saving)
	}
	// It is no obstacle to the next try.
	s.p.hold = nil
	next := s.begin(wire.SaveRequest{Name: "solver", Root: "n01"})
	// Deleted meanwhile: it is not asked for any more, and nothing comes back.
	if err := s.Control.DeleteTemplate(t.Context(), root(), "solver"); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if s.Control.SaveOrder(s.cluster, "n01") == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := s.Control.TakeRoot(t.Context(), s.identity(), next.Saving.ID, strings.NewReader("x")); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("%v", err)
	}
	if _, err := s.Control.Template(t.Context(), root(), "solver"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("%v", err)
	}
}

func TestSaveRootRefused(t *testing.T) {
	t.Parallel()
	s := newSaver(t)
	made, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: jobs; nodes: 1; image: hpc; head: shared; users: [alice]"))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, s.Client(""), made.ID, muster.ClusterReady)
	alice := muster.Actor{Name: "alice", Projects: []string{"default"}}
	for name, x := range map[string]struct {
		who     muster.Actor
		cluster string
		r       wire.SaveRequest
		want    muster.Reason
	}{
		"no node":  {root(), "lab", wire.SaveRequest{Name: "a", Root: "n09"}, muster.ReasonNoSuchNode},
		"not root": {alice, "jobs", wire.SaveRequest{Name: "a", Root: "n01"}, muster.ReasonAdminOnly},
		"name":     {root(), "lab", wire.SaveRequest{Name: "a b", Root: "n01"}, muster.ReasonBadName},
	} {
		if _, err := s.Control.Save(t.Context(), x.who, x.cluster, x.r); muster.ReasonOf(err) != x.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What adds packages to an image runs programs of the image outside of any tenant's bounds.
func TestSavedRootTakesNoPackages(t *testing.T) {
	t.Parallel()
	s := newSaver(t)
	lab, err := s.Control.Cluster(t.Context(), root(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	s.Images.Change("raw", func(m *muster.Image) { m.Saved = &muster.ImageSaved{Project: lab.Spec.Project, Name: "solver"} })
	r := yaml("name: more; nodes: 1; image: raw; head: shared; users: [alice]; packages: [cmake]")
	for _, dry := range []bool{true, false} {
		r.DryRun = dry
		if _, err := s.Control.CreateCluster(t.Context(), root(), r); muster.ReasonOf(err) != muster.ReasonPackagesRefused {
			t.Errorf("dry run %v: %v", dry, err)
		}
	}
}
