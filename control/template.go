package control

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Save keeps the request, the packages and the volumes' names of a cluster as a template of
// its project. Nothing of the scheduler's state, keys or data is in it.
func (s *Service) Save(ctx context.Context, who muster.Actor, ref string, r wire.SaveRequest) (wire.Template, error) {
	var t muster.Template
	var save *rootSave
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		if err := tx.MayChange(c); err != nil {
			return err
		}
		if _, p := spec.CheckProject(r.Name); p != nil || r.Name == "" {
			return muster.Errorf(muster.EInvalid, "%.64q cannot be the name of a template", r.Name).Because(muster.ReasonBadName).WithHint("letters, digits, hyphens, dots and underscores, at most 64")
		}
		old, err := tx.Template(c.Project, r.Name)
		switch {
		case err != nil:
		case old.Saving != nil && old.Saving.Error == nil:
			return muster.Errorf(muster.EConflict, "a root is being saved as %s, since %s", r.Name, old.Saving.Began.Format(time.RFC3339)).Because(muster.ReasonNotDoneYet).WithHint("wait until it is done, or choose another name")
		case !r.Replace && old.Usable():
			return muster.Errorf(muster.EConflict, "project %s has a template %s already", c.Project, r.Name).Because(muster.ReasonNameTaken).WithHint("choose another name, or say --replace")
		}
		t = muster.Template{Name: r.Name, Project: c.Project, Owner: c.Owner, Created: s.Clock.Now().UTC(), From: c.ID, Spec: c.Spec, Image: c.Image}
		t.Spec.Name, t.Spec.Start, t.Spec.Home, t.Spec.Users = r.Name, muster.Start{}, "", nil
		t.Spec.Allowed = nil
		t.Spec.Volumes = append([]muster.VolumeUse(nil), c.Spec.Volumes...)
		for i := range t.Spec.Volumes {
			v, err := tx.Volume(muster.VolumeID(t.Spec.Volumes[i].Volume))
			if err != nil {
				return err
			}
			t.Spec.Volumes[i].Volume = v.Name
		}
		if r.Root == "" {
			return tx.PutTemplate(t, "made of cluster "+c.Name+" by "+who.Name)
		}
		if save, err = s.planRoot(tx, c, t, r.Root); err != nil {
			return err
		}
		was := old // it stays what it is until there is a root
		if was.Name == "" {
			was = t
			was.Image = ""
		}
		was.Saving = &muster.Saving{ID: save.id, Node: save.node.Name, By: who.Name, Began: s.Clock.Now().UTC()}
		t.Saving = was.Saving
		save.template, t = t, was
		return tx.PutTemplate(was, fmt.Sprintf("the root of %s of cluster %s is being saved by %s", save.node.Name, c.Name, who.Name))
	})
	if err == nil && save != nil {
		s.saveRoot(save)
	}
	return s.templateView(t), err
}

func (s *Service) templateView(t muster.Template) wire.Template {
	return wire.Template{Template: t, Request: spec.RequestOf(t.Spec), Progress: s.saves.progress(t.Saving)}
}

// Templates lists those that the actor may see.
func (s *Service) Templates(ctx context.Context, who muster.Actor, page wire.Page) (wire.TemplateList, error) {
	out := wire.TemplateList{Templates: []wire.Template{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Templates()
		for _, t := range list {
			out.Templates = append(out.Templates, s.templateView(t))
		}
		out.Templates, out.More = wire.Cut(out.Templates, page, func(t wire.Template) string { return t.Project + "/" + t.Name })
		return err
	})
	return out, err
}

// Template finds one by its name, or PROJECT/NAME.
func (s *Service) Template(ctx context.Context, who muster.Actor, ref string) (wire.Template, error) {
	var out wire.Template
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		t, err := findTemplate(tx, ref)
		out = s.templateView(t)
		return err
	})
	return out, err
}

func findTemplate(tx *store.Tx, ref string) (muster.Template, error) {
	list, err := tx.Templates()
	if err != nil {
		return muster.Template{}, err
	}
	var found []muster.Template
	for _, t := range list {
		if t.Name == ref || t.Project+"/"+t.Name == ref {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return muster.Template{}, muster.Errorf(muster.ENotFound, "there is no template %.64q", ref).Because(muster.ReasonNoSuchObject).WithHint("`muster template list` lists them")
	case 1:
		return found[0], nil
	}
	return muster.Template{}, muster.Errorf(muster.EConflict, "several projects have a template %.64q", ref).Because(muster.ReasonAmbiguous).WithHint("write PROJECT/NAME, such as %s/%s", found[0].Project, found[0].Name)
}

// DeleteTemplate deletes one.
func (s *Service) DeleteTemplate(ctx context.Context, who muster.Actor, ref string) error {
	var t muster.Template
	err := s.Store.Update(ctx, who, func(tx *store.Tx) (err error) {
		if t, err = findTemplate(tx, ref); err != nil {
			return err
		}
		return tx.DeleteTemplate(t.Project, t.Name, "deleted by "+who.Name)
	})
	if err != nil {
		return err
	}
	if t.Saving != nil {
		s.saves.cancel(t.Saving.ID)
	}
	if t.Root != nil {
		return s.removeSaved(ctx, t.Image)
	}
	return nil
}
