package store

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
)

// VolumeFilter narrows a list of volumes. Zero values ask for everything.
type VolumeFilter struct {
	Phases  []muster.VolumePhase
	Project string
	Owner   string
	Cluster muster.ClusterID
	Kind    muster.VolumeKind
	Living  bool   // leave out deleted ones
	Limit   int    // the oldest so many; 0: all
	After   string // only what comes after this cursor
}

func noVolume(ref string) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no volume %q", ref).Because(muster.ReasonNoSuchVolume).
		WithHint("`muster volume list` shows the volumes that you can see")
}

func volumeRecord(v muster.Volume) record {
	return record{kind: "volume", owner: v.Owner, project: v.Project}
}

// Volume returns one volume, also a deleted one.
func (tx *Tx) Volume(id muster.VolumeID) (muster.Volume, error) {
	list, err := tx.volumes(`id = ?`, string(id))
	if err != nil {
		return muster.Volume{}, err
	}
	if len(list) == 0 {
		return muster.Volume{}, noVolume(string(id))
	}
	if err := authorize(tx.who, read, volumeRecord(list[0]), noVolume(string(id))); err != nil {
		return muster.Volume{}, err
	}
	return list[0], nil
}

// Volumes returns the volumes that the actor may see, oldest first.
func (tx *Tx) Volumes(f VolumeFilter) ([]muster.Volume, error) {
	w := in(tx.seenBy(), "phase", f.Phases).living(f.Living).is("project", f.Project).is("owner", f.Owner).
		is("cluster", string(f.Cluster)).is("kind", string(f.Kind))
	if err := w.after("created", ">", f.After); err != nil {
		return nil, err
	}
	w.by("created, n", f.Limit)
	list, err := tx.volumes(w.cond, w.args...)
	if err != nil {
		return nil, err
	}
	return tx.visible(list), nil
}

func (tx *Tx) visible(list []muster.Volume) []muster.Volume {
	return slices.DeleteFunc(list, func(v muster.Volume) bool { return !allowed(tx.who, read, volumeRecord(v)) })
}

// FindVolume finds a volume by its ID, by the name of a living volume, or by
// project/name.
//
// Errors: EConflict if several living volumes that the actor may see have the
// name, with their IDs in the hint; ENotFound, with a similar name in the hint
// if there is one.
func (tx *Tx) FindVolume(ref string) (muster.Volume, error) {
	if strings.HasPrefix(ref, "v-") {
		v, err := tx.Volume(muster.VolumeID(ref))
		if muster.CodeOf(err) != muster.ENotFound {
			return v, err
		}
	}
	w, name := named(ref, tx.seenBy())
	list, err := tx.volumes(w.cond, w.args...)
	if err != nil {
		return muster.Volume{}, err
	}
	switch list = tx.visible(list); len(list) {
	case 0:
		return muster.Volume{}, tx.volumeMeant(ref, name)
	case 1:
		return list[0], nil
	}
	var which []string
	for _, v := range list {
		which = append(which, string(v.ID)+" (project "+v.Project+")")
	}
	return muster.Volume{}, muster.Errorf(muster.EConflict, "%d volumes are named %q", len(list), name).Because(muster.ReasonAmbiguous).
		WithHint("name it by its ID: %s", strings.Join(which, ", "))
}

func (tx *Tx) volumeMeant(ref, name string) error {
	list, err := tx.Volumes(VolumeFilter{Living: true, Limit: 1000})
	if err != nil {
		return err
	}
	names := make([]string, 0, 2*len(list))
	for _, v := range list {
		names = append(names, v.Name, string(v.ID))
	}
	e := noVolume(ref)
	if best := suggest.Of(name, names); best != "" {
		return e.WithHint("did you mean %q? `muster volume list` shows the volumes that you can see", best)
	}
	return e
}

// volumes reads rows whoever asks; its callers authorize.
func (tx *Tx) volumes(cond string, args ...any) ([]muster.Volume, error) {
	return load(tx.s, table[muster.VolumeID, muster.Volume]{
		name: "volumes", doc: volumeDoc,
		same: func(h head, v muster.Volume) bool {
			return string(v.ID) == h.id && string(v.Phase) == h.phase && v.Owner == h.owner && v.Project == h.project
		},
	}, nil, cond, args...)
}

// PutVolume inserts or changes a volume. A change of phase is checked against
// the transition table and leaves an audit line; so does a text. PhaseSince and
// Created are filled in where the caller left them. Owner, project, kind,
// driver and source stay what they are.
//
// Errors: ENotFound if the actor may not change it, EConflict for a transition
// that the table does not have, a taken name, or a cluster that has such a
// volume already.
func (tx *Tx) PutVolume(v muster.Volume, text string) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if v.ID == "" || v.Name == "" || v.Owner == "" || v.Project == "" || v.Kind == "" || v.Driver == "" {
		return defect("a volume needs an ID, a name, an owner, a project, a kind and a driver")
	}
	if err := checkText(string(v.ID), v.Name, v.Owner, v.Project, v.Source, v.Note); err != nil {
		return err
	}
	absent := noVolume(string(v.ID))
	if err := authorize(tx.who, write, volumeRecord(v), absent); err != nil {
		return err
	}
	list, err := tx.volumes(`id = ?`, string(v.ID))
	if err != nil {
		return err
	}
	var old muster.Volume
	if len(list) == 1 {
		old = list[0]
		if err := authorize(tx.who, write, volumeRecord(old), absent); err != nil {
			return err
		}
		if old.Owner != v.Owner || old.Project != v.Project || old.Kind != v.Kind || old.Driver != v.Driver || old.Source != v.Source {
			return muster.Errorf(muster.EConflict, "volume %s belongs to %s in project %s", v.ID, old.Owner, old.Project).Because(muster.ReasonImmutable).
				WithHint("owner, project, kind and place of a volume do not change: make another")
		}
	} else if !tx.who.Admin && v.Owner != tx.who.Name {
		return muster.Errorf(muster.EForbidden, "only an administrator makes volumes for others").Because(muster.ReasonAdminOnly).
			WithHint("make it under your own name")
	}
	if !old.Phase.CanBecome(v.Phase) || v.Phase == "" {
		return badTransition("volume", string(v.ID), string(old.Phase), string(v.Phase))
	}
	if v.Created.IsZero() {
		v.Created = tx.now()
	}
	if v.Phase != old.Phase && v.PhaseSince.Equal(old.PhaseSince) {
		v.PhaseSince = tx.now()
	}
	if err := tx.writeVolume(v, old); err != nil {
		return err
	}
	if v.Phase == old.Phase && text == "" {
		return nil
	}
	return tx.log(muster.Audit{Owner: v.Owner, Project: v.Project, Cluster: v.Cluster, Kind: muster.AuditVolume, Object: string(v.ID),
		From: string(old.Phase), To: string(v.Phase), Text: text})
}

func (tx *Tx) writeVolume(v, old muster.Volume) error {
	doc, sum, err := encode(volumeDoc, &v)
	if err != nil {
		return err
	}
	if old.ID == "" {
		_, err = tx.s.exec(`INSERT INTO volumes (id, owner, project, name, kind, phase, cluster, created, rev, sum, doc)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			string(v.ID), v.Owner, v.Project, v.Name, string(v.Kind), string(v.Phase), null(v.Cluster), nanos(v.Created), tx.s.nextRev(), sum, doc)
		return err
	}
	if before, _, err := encode(volumeDoc, &old); err == nil && before == doc {
		return nil
	}
	_, err = tx.s.exec(`UPDATE volumes SET name = ?, phase = ?, cluster = ?, created = ?, rev = ?, sum = ?, doc = ? WHERE id = ?`,
		v.Name, string(v.Phase), null(v.Cluster), nanos(v.Created), tx.s.nextRev(), sum, doc, string(v.ID))
	return err
}
