package control

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Saving the root of a node: the record says that it goes on, the node's agent is asked to
// send its root, the image store lays it over the image that the node runs, and the record
// names the image. A server that was killed in between records that it failed.
const (
	// saveAsked is how long a node may take until it sends its root.
	saveAsked = 2 * time.Minute
	// saveLasts is how long the whole may take.
	saveLasts = time.Hour
	// packRate is how many bytes are packed in a second, about: it is only for the ETA.
	packRate = 40 << 20
	// savedPerProject is how many images of roots a project may have.
	savedPerProject = 10
)

// saves are the savings of roots that go on.
type saves struct {
	mu   sync.Mutex
	list []*rootSave
}

// rootSave is the saving of one root.
type rootSave struct {
	id       string
	cluster  muster.Cluster
	node     muster.Node
	base     *muster.Image
	template muster.Template // as it is when the root is saved
	began    time.Time
	forget   []string
	cancel   context.CancelCauseFunc
	incoming chan incomingRoot

	mu       sync.Mutex
	stage    string
	bytes    int64
	received time.Time
}

// incomingRoot is a root that a node sends.
type incomingRoot struct {
	tree io.Reader
	done chan error // is told once the tree was read
}

func (v *saves) find(match func(*rootSave) bool) *rootSave {
	v.mu.Lock()
	defer v.mu.Unlock()
	if i := slices.IndexFunc(v.list, match); i >= 0 {
		return v.list[i]
	}
	return nil
}

func (v *saves) add(r *rootSave) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list = append(v.list, r)
}

func (v *saves) remove(r *rootSave) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list = slices.DeleteFunc(v.list, func(x *rootSave) bool { return x == r })
}

func (v *saves) cancel(id string) {
	if r := v.find(func(r *rootSave) bool { return r.id == id }); r != nil {
		r.cancel(muster.Errorf(muster.EConflict, "the template was deleted").Because(muster.ReasonNoSuchObject))
	}
}

// progress is how far a saving is; nil when it does not go on here.
func (v *saves) progress(s *muster.Saving) *wire.SaveProgress {
	if s == nil || s.Error != nil {
		return nil
	}
	r := v.find(func(r *rootSave) bool { return r.id == s.ID })
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &wire.SaveProgress{Stage: r.stage, Bytes: r.bytes, Total: r.base.Uncompressed}
	if !r.received.IsZero() {
		p.Total = r.bytes
		p.ETA = r.received.Add(time.Duration(r.bytes) * time.Second / packRate)
	}
	return p
}

// asked reports whether the node has still to send its root.
func (r *rootSave) asked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stage == "asked"
}

func (r *rootSave) enter(stage string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stage = stage
	if stage == "packing" {
		r.received = now
	}
}

// counted counts what is read of a root.
type counted struct {
	io.Reader
	r *rootSave
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.r.mu.Lock()
	c.r.bytes += int64(n)
	c.r.mu.Unlock()
	return n, err
}

// planRoot makes certain that a node's root can be saved.
func (s *Service) planRoot(tx *store.Tx, c muster.Cluster, t muster.Template, ref string) (*rootSave, error) {
	if s.SaveRoot == nil {
		return nil, muster.Errorf(muster.EConflict, "this server keeps no roots: its machines are simulated").Because(muster.ReasonNoProvider).WithHint("leave out --root")
	}
	if c.Phase != muster.ClusterReady {
		return nil, muster.Errorf(muster.EConflict, "cluster %s is %s: only a ready one has roots to save", c.Name, c.Phase).Because(muster.ReasonNotReady).WithHint("save it once `muster show %s` says ready, or save it without --root", c.Name)
	}
	nodes, err := tx.Nodes(c.ID)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(nodes, func(n muster.Node) bool { return n.Name == ref || ref == "head" && n.Head })
	if i < 0 {
		return nil, muster.Errorf(muster.ENotFound, "cluster %s has no node %.64q", c.Name, ref).Because(muster.ReasonNoSuchNode).WithHint("`muster show %s` lists its nodes", c.Name)
	}
	n := nodes[i]
	if n.Phase != muster.NodeReady {
		return nil, muster.Errorf(muster.EConflict, "node %s is %s", n.Name, n.Phase).Because(muster.ReasonNotReady).WithHint("wait until it is ready, or save another one")
	}
	running := string(c.Image)
	if running == "" {
		running = c.Spec.Image
	}
	base, err := s.Config.Images.Resolve(running)
	if err != nil {
		return nil, err
	}
	if !base.UserRoot && !tx.Actor().Admin {
		return nil, muster.Errorf(muster.EForbidden, "nobody but administrators changes the root of image %s, so only they save it", base.Name).Because(muster.ReasonAdminOnly).
			WithHint("save it without --root, or work with an image whose users are root, such as raw")
	}
	templates, err := tx.AsSystem().Templates()
	if err != nil {
		return nil, err
	}
	has := 0
	for _, x := range templates {
		if x.Project == t.Project && x.Name != t.Name && (x.Root != nil || x.Saving != nil) {
			has++
		}
	}
	if has >= savedPerProject {
		return nil, muster.Errorf(muster.EConflict, "project %s keeps %d roots, and may keep %d", t.Project, has, savedPerProject).Because(muster.ReasonTooManyImages).
			WithHint("`muster template delete NAME` deletes one that nobody needs")
	}
	users, err := tx.AsSystem().Users()
	if err != nil {
		return nil, err
	}
	forget := []string{wire.ProbeAccount}
	for _, u := range users {
		forget = append(forget, u.Name)
	}
	return &rootSave{id: muster.RandomID(16), cluster: c, node: n, base: base, began: s.Clock.Now(), forget: forget, stage: "asked", incoming: make(chan incomingRoot)}, nil
}

// saveRoot begins the saving of a root.
func (s *Service) saveRoot(r *rootSave) {
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	s.saves.add(r)
	if s.Speak != nil {
		s.Speak(r.cluster.ID, r.node.Name)
	}
	go func() {
		img, changes, err := s.receiveRoot(ctx, r)
		err = s.rootSaved(context.Background(), r, img, changes, err)
		s.saves.remove(r)
		cancel(nil)
		if err != nil {
			s.Log.Error("recording a saved root failed", "cluster", r.cluster.ID, "node", r.node.Name, "error", err)
		}
	}()
}

// receiveRoot waits for the node, and makes an image of what it sends.
func (s *Service) receiveRoot(ctx context.Context, r *rootSave) (img *muster.Image, changes image.TreeChanges, err error) {
	var in incomingRoot
	select {
	case in = <-r.incoming:
		if err := context.Cause(ctx); err != nil { // both were there
			in.done <- err
			return nil, changes, err
		}
	case <-ctx.Done():
		return nil, changes, context.Cause(ctx)
	case <-s.Clock.After(saveAsked):
		return nil, changes, muster.Errorf(muster.EUnavailable, "node %s did not send its root within %s", r.node.Name, plaintext.Span(saveAsked)).Because(muster.ReasonNoAnswer).
			WithHint("look at the node: `muster show %s`; then save it again", r.cluster.Name)
	}
	r.enter("receiving", s.Clock.Now())
	ctx, cancel := context.WithTimeoutCause(ctx, saveLasts, muster.Errorf(muster.EUnavailable, "the root was not saved within %s", plaintext.Span(saveLasts)).Because(muster.ReasonNoAnswer))
	defer cancel()
	told := false
	tell := func(err error) {
		if !told {
			told = true
			in.done <- err
		}
	}
	o := image.SaveOptions{
		Base: r.base.ID, Forget: r.forget,
		By: muster.ImageSaved{Project: r.cluster.Project, Name: r.template.Name, Cluster: r.cluster.Name, Node: r.node.Name, By: r.template.Saving.By},
		Received: func() {
			r.enter("packing", s.Clock.Now())
			tell(nil)
		},
	}
	img, changes, err = s.SaveRoot(ctx, o, counted{in.tree, r})
	tell(err)
	return img, changes, err
}

// rootSaved records what became of the saving of a root.
func (s *Service) rootSaved(ctx context.Context, r *rootSave, img *muster.Image, changes image.TreeChanges, failed error) error {
	var unused muster.ImageID
	err := s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		unused = ""
		t, err := tx.Template(r.template.Project, r.template.Name)
		if muster.CodeOf(err) == muster.ENotFound || err == nil && (t.Saving == nil || t.Saving.ID != r.id || t.Saving.Error != nil) {
			if img != nil {
				unused = img.ID // it was deleted meanwhile: nobody wants the image
			}
			return nil
		}
		if err != nil {
			return err
		}
		if failed != nil {
			return s.saveFailed(tx, t, failed)
		}
		if t.Root != nil && t.Image != img.ID {
			unused = t.Image
		}
		t = r.template
		t.Saving, t.Image, t.Spec.Image = nil, img.ID, string(img.ID)
		t.Spec.Packages = nil // the root has them
		t.Root = &muster.SavedRoot{Node: r.node.Name, Written: changes.Written, Removed: changes.Removed, Bytes: changes.Bytes, Took: muster.Duration(s.Clock.Now().Sub(r.began))}
		return tx.PutTemplate(t, "made of the root of "+r.node.Name+" of cluster "+r.cluster.Name+" by "+r.template.Saving.By)
	})
	if err == nil && unused != "" {
		err = s.removeSaved(ctx, unused)
	}
	return err
}

// removeSaved removes an image of a root unless a cluster or another template has it.
func (s *Service) removeSaved(ctx context.Context, id muster.ImageID) error {
	err := s.Config.Images.Remove(ctx, id, s.ImageUsers())
	switch muster.CodeOf(err) {
	case muster.EConflict, muster.ENotFound: // the last to use it lets it go
		return nil
	}
	return err
}

// savedKept is how long an image of a root stays in any case: its template may not say yet
// that it has it.
const savedKept = 2 * saveLasts

func (s *Service) saveFailed(tx *store.Tx, t muster.Template, failed error) error {
	var e *muster.Error
	if !errors.As(failed, &e) {
		e = muster.Errorf(muster.EUnavailable, "%v", failed).Because(muster.ReasonBuildFailed).WithHint("save it again")
	}
	saving := *t.Saving
	saving.Error = e.Explained()
	t.Saving = &saving
	return tx.PutTemplate(t, "the root of "+saving.Node+" was not saved: "+saving.Error.Error())
}

// FailSaves records that the savings of an earlier life of the server have failed.
func (s *Service) FailSaves(ctx context.Context) error {
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.Templates()
		if err != nil {
			return err
		}
		for _, t := range list {
			if t.Saving == nil || t.Saving.Error != nil {
				continue
			}
			if err := s.saveFailed(tx, t, muster.Errorf(muster.EUnavailable, "the server was started again meanwhile").Because(muster.ReasonNoAnswer).WithHint("save it again")); err != nil {
				return err
			}
		}
		return nil
	})
}

// SaveOrder is what a node's agent is asked to send; nil: nothing.
func (s *Service) SaveOrder(cluster muster.ClusterID, node string) *wire.SaveOrder {
	// One that ended a moment ago may be there beside the next.
	r := s.saves.find(func(r *rootSave) bool { return r.cluster.ID == cluster && r.node.Name == node && r.asked() })
	if r == nil {
		return nil
	}
	return &wire.SaveOrder{ID: r.id}
}

// TakeRoot takes the root of a node, and returns when it has read it.
func (s *Service) TakeRoot(ctx context.Context, id pki.NodeIdentity, save string, tree io.Reader) error {
	r := s.saves.find(func(r *rootSave) bool {
		return r.id == save && r.cluster.ID == id.Cluster && r.node.Name == id.Node && r.node.Machine == id.Machine && r.node.Attempt == id.Attempt
	})
	gone := muster.Errorf(muster.EConflict, "nobody waits for this root file system").Because(muster.ReasonAttemptOver)
	if r == nil {
		return gone
	}
	in := incomingRoot{tree: tree, done: make(chan error, 1)}
	select {
	case r.incoming <- in:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Clock.After(time.Second): // another one came first
		return gone
	}
	return <-in.done // the tree must not be read after this returns
}

// PruneSaved removes images of roots that no template and no cluster has.
func (s *Service) PruneSaved(ctx context.Context) error {
	list, err := s.Config.Images.List()
	if err != nil {
		return err
	}
	var failed error
	for _, img := range list {
		if img.Saved == nil || img.Base != "" || s.Clock.Now().Sub(img.Created) < savedKept {
			continue
		}
		used, err := s.ImageUsers().ImageUsers(ctx, img.ID)
		if err != nil {
			return err
		}
		if len(used) > 0 {
			continue
		}
		failed = errors.Join(failed, s.removeSaved(ctx, img.ID))
	}
	return failed
}
