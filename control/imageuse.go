package control

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// imageUse reports who uses images. It reads the records once.
type imageUse struct {
	s *Service
	// tx is that of who asks, or the system's.
	tx    *store.Tx
	early []muster.Cluster // clusters that have no image yet
	look  derivedLook
	exact map[muster.ImageID][]string
}

// lookAtImageUse begins to. With visible, only what the actor may see is named.
func (s *Service) lookAtImageUse(tx *store.Tx, visible bool) (*imageUse, error) {
	if !visible {
		tx = tx.AsSystem()
	}
	u := &imageUse{s: s, tx: tx, look: s.lookAtDerived(), exact: map[muster.ImageID][]string{}}
	early, err := tx.AsSystem().Clusters(store.ClusterFilter{Phases: []muster.ClusterPhase{muster.ClusterQueued, muster.ClusterReserved, muster.ClusterBuilding}})
	if err != nil {
		return nil, err
	}
	for _, c := range early {
		if c.Image == "" {
			u.early = append(u.early, c)
		}
	}
	return u, u.readExact()
}

// of names what uses an image.
//
// A cluster that waits, or whose packages are still being added, has no image
// of its own yet: it uses what the name in its request means now, and what that
// is with its packages.
func (u *imageUse) of(id muster.ImageID) ([]string, error) {
	ids, err := u.tx.AsSystem().ImageUsers(id)
	if err != nil {
		return nil, err
	}
	derived := ""
	for _, c := range u.early {
		key := u.look.key(c)
		if key != "" && derived == "" {
			derived = u.look.key(muster.Cluster{Image: id})
		}
		if img := u.look.seen[c.Spec.Image]; img != nil && img.ID == id || key != "" && key == derived {
			ids = append(ids, c.ID)
		}
	}
	out := slices.Clone(u.exact[id])
	for _, cid := range ids {
		c, err := u.tx.Cluster(cid)
		if muster.CodeOf(err) == muster.ENotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprintf("%s (%s)", c.Name, c.ID))
	}
	return out, nil
}

// readExact collects what names one content, and not what a name means at the time.
func (u *imageUse) readExact() error {
	templates, err := u.tx.Templates()
	if err != nil {
		return err
	}
	for _, t := range templates {
		if t.Root != nil {
			u.exact[t.Image] = append(u.exact[t.Image], "template "+t.Project+"/"+t.Name)
			continue
		}
		u.names(t.Spec.Image, "template "+t.Project+"/"+t.Name)
	}
	programs, err := u.tx.Programs()
	if err != nil {
		return err
	}
	for _, p := range programs {
		u.names(p.Image, "program "+p.Project+"/"+p.Name)
	}
	courses, err := u.tx.Courses()
	if err != nil {
		return err
	}
	for _, c := range courses {
		if slices.ContainsFunc(c.Occurrences, func(o muster.Occurrence) bool { return o.End.After(u.s.Clock.Now()) }) {
			u.names(c.Spec.Image, "course "+c.Name)
		}
	}
	experiments, err := u.tx.Experiments(store.ExperimentFilter{State: muster.ExperimentOpen})
	if err != nil {
		return err
	}
	for _, e := range experiments {
		for _, b := range e.Plan.Blocks {
			var r wire.Request
			if b.Request != "" && json.Unmarshal([]byte(b.Request), &r) == nil {
				u.names(r.Image, fmt.Sprintf("experiment %s (%s)", e.Name, e.ID))
			}
		}
	}
	return nil
}

// names notes that by means the image ref.
func (u *imageUse) names(ref, by string) {
	if ref == "" {
		return
	}
	img, known := u.look.seen[ref]
	if !known {
		img, _ = u.look.images.Resolve(ref) // none: it is gone
		u.look.seen[ref] = img
	}
	if img == nil || img.Name == ref { // a name means whatever is newest
		return
	}
	if !slices.Contains(u.exact[img.ID], by) {
		u.exact[img.ID] = append(u.exact[img.ID], by)
	}
}
