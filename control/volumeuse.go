package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// volumes finds the volumes that a request names, and puts their IDs in place
// of their names. What another project has is absent.
func (s *Service) volumes(ctx context.Context, who muster.Actor, w *parsedRequest) []muster.Problem {
	if w.spec.Project == "" || w.spec.Home == "" && len(w.spec.Volumes) == 0 {
		return nil
	}
	var problems []muster.Problem
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		if w.spec.Home != "" {
			v, p := ownVolume(tx, w.spec.Project, w.spec.Home, muster.VolumeHome)
			w.spec.Home = string(v.ID)
			if p != nil {
				problems = append(problems, p.In("home"))
			}
		}
		for i := range w.spec.Volumes {
			u := &w.spec.Volumes[i]
			field := fmt.Sprintf("volumes[%d]", i)
			v, p := ownVolume(tx, w.spec.Project, u.Volume, muster.VolumeData)
			if p != nil {
				problems = append(problems, p.In(field))
				continue
			}
			u.Volume = string(v.ID)
			if slices.ContainsFunc(w.spec.Volumes[:i], func(o muster.VolumeUse) bool { return o.Volume == u.Volume }) {
				problems = append(problems, muster.Problem{Field: field, Reason: muster.ReasonGivenTwice, Message: "volume " + v.Name + " is mounted twice", Hint: "keep one"})
			}
		}
		return nil
	})
	if err != nil {
		return []muster.Problem{{Field: "volumes", Reason: muster.ReasonVolumeFailed, Message: "the volumes cannot be read", Hint: "try again"}}
	}
	return problems
}

// ownVolume is a volume of a project that can be used for this. Of another
// project's it says what it says of one that does not exist.
func ownVolume(tx *store.Tx, project, ref string, kind muster.VolumeKind) (muster.Volume, *muster.Error) {
	// By ID too: only a volume of this very project is found.
	v, err := tx.FindVolume(ref)
	if err != nil || v.Project != project {
		v, err = tx.FindVolume(project + "/" + ref)
	}
	var e *muster.Error
	if errors.As(err, &e) {
		if e.Code == muster.ENotFound {
			e = muster.Errorf(muster.ENotFound, "project %s has no volume %q", project, ref).Because(muster.ReasonNoSuchVolume).WithHint("%s", hintOf(tx, project, ref, kind, e))
		}
		return v, e
	}
	switch {
	case err != nil:
		return v, muster.Errorf(muster.EUnavailable, "volume %q cannot be looked up", ref).Because(muster.ReasonVolumeFailed)
	case v.Phase == muster.VolumeDeleting || v.Phase == muster.VolumeDeleted:
		return v, muster.Errorf(muster.EConflict, "volume %s is erased", v.Name).Because(muster.ReasonVolumeErased).WithHint("name another")
	case v.Kind == kind:
		return v, nil
	case kind == muster.VolumeHome:
		return v, muster.Errorf(muster.EInvalid, "volume %s holds data, it is not a home", v.Name).Because(muster.ReasonVolumeUnfit).WithHint("mount it besides the home: volumes: [%s]", v.Name)
	case v.Kind == muster.VolumeHome:
		return v, muster.Errorf(muster.EInvalid, "volume %s is a home", v.Name).Because(muster.ReasonVolumeUnfit).WithHint("mount it as one: home: %s", v.Name)
	}
	return v, muster.Errorf(muster.EInvalid, "volume %s is Muster's own", v.Name).Because(muster.ReasonVolumeUnfit).WithHint("name a volume of data")
}

func hintOf(tx *store.Tx, project, ref string, kind muster.VolumeKind, e *muster.Error) string {
	list, err := tx.Volumes(store.VolumeFilter{Project: project, Kind: kind, Living: true})
	if err != nil {
		return e.Hint
	}
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = v.Name
	}
	if hint := didYouMean(ref, names); hint != "" {
		return hint
	}
	return "`muster volume list` shows the volumes that you can see"
}

// takeVolumes gives a cluster that was just recorded the home that it named,
// and makes certain that what it mounts is still there.
func (s *Service) takeVolumes(tx *store.Tx, c muster.Cluster) error {
	v, err := freeVolumes(tx, c)
	if err != nil || c.Spec.Home == "" {
		return err
	}
	v.Phase, v.Cluster, v.Expires = muster.VolumeReady, c.ID, time.Time{}
	return tx.AsSystem().PutVolume(v, "mounted at /home of cluster "+c.Name)
}

// freeVolumes makes certain that the volumes of a new cluster can be mounted
// now, and returns the home that it named.
func freeVolumes(tx *store.Tx, c muster.Cluster) (muster.Volume, error) {
	for _, u := range c.Spec.Volumes {
		v, err := tx.Volume(muster.VolumeID(u.Volume))
		if err != nil {
			return v, err
		}
		if v.Phase != muster.VolumeReady || v.Project != c.Project {
			return v, muster.Errorf(muster.EConflict, "volume %s is erased", v.Name).Because(muster.ReasonVolumeErased).WithHint("name another")
		}
	}
	if c.Spec.Home == "" {
		return muster.Volume{}, nil
	}
	v, err := tx.Volume(muster.VolumeID(c.Spec.Home))
	if err != nil {
		return v, err
	}
	switch {
	case v.Project != c.Project || v.Kind != muster.VolumeHome:
		return v, muster.Errorf(muster.EInvalid, "volume %s is not a home of project %s", v.ID, c.Project).Because(muster.ReasonNoSuchVolume)
	case v.Phase == muster.VolumeReady && v.Cluster != "":
		return v, muster.Errorf(muster.EConflict, "home %s is in use by cluster %s", v.Name, v.Cluster).Because(muster.ReasonVolumeInUse).
			WithHint("delete that cluster first, and its home is kept; or leave home out to get a new one")
	case v.Phase != muster.VolumeReady && v.Phase != muster.VolumeRetained:
		return v, muster.Errorf(muster.EConflict, "home %s is erased", v.Name).Because(muster.ReasonVolumeErased).WithHint("leave home out to get a new one")
	}
	return v, nil
}

// mountsOf are the volumes of a cluster as people see them: where they are,
// and what a deleted cluster left.
func mountsOf(tx *store.Tx, c muster.Cluster) ([]wire.MountedVolume, error) {
	list, err := tx.Volumes(store.VolumeFilter{Cluster: c.ID})
	if err != nil {
		return nil, err
	}
	var out []wire.MountedVolume
	add := func(v muster.Volume, target string, readOnly bool) {
		phase := v.Phase
		if phase == muster.VolumeReady {
			phase = ""
		}
		out = append(out, wire.MountedVolume{
			ID: v.ID, Name: v.Name, Kind: v.Kind, Phase: phase, Target: target, ReadOnly: readOnly,
			Quota: v.Quota, Enforced: v.Enforced, Used: v.Used, UsedAt: v.UsedAt, Expires: v.Expires,
		})
	}
	for _, v := range list {
		if v.Kind == muster.VolumeHome && (v.Phase == muster.VolumeReady || v.Phase == muster.VolumeRetained) {
			add(v, targetOf(v.Kind), false)
		}
	}
	for _, u := range c.Spec.Volumes {
		v, err := tx.Volume(muster.VolumeID(u.Volume))
		switch {
		case muster.CodeOf(err) == muster.ENotFound:
			continue // the owner of the cluster left the project
		case err != nil:
			return nil, err
		}
		add(v, u.Target, u.ReadOnly)
	}
	return out, nil
}

// EraseCluster gives a cluster back with its home.
func (s *Service) EraseCluster(ctx context.Context, who muster.Actor, ref string) (wire.Deleted, error) {
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil || c.Phase == muster.ClusterDeleted || c.Spec.Retain == 0 {
			return err
		}
		c.Spec.Retain = 0
		return tx.PutCluster(c, "its home is to be erased with it")
	})
	if err != nil {
		return wire.Deleted{}, err
	}
	return s.DeleteCluster(ctx, who, ref)
}

// keptHome is the name of the home that stays when a cluster is deleted; ""
// when none does.
func keptHome(tx *store.Tx, c muster.Cluster) (string, error) {
	if c.Spec.Retain <= 0 || c.Ready.IsZero() && c.Spec.Home == "" {
		return "", nil
	}
	list, err := tx.Volumes(store.VolumeFilter{Cluster: c.ID, Kind: muster.VolumeHome, Phases: []muster.VolumePhase{muster.VolumeReady}})
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].Name, nil
}
