package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Volumes is what the use cases need of the volume manager.
type Volumes interface {
	// Create makes the place of a volume that is on record.
	Create(ctx context.Context, v muster.Volume) error
	// Wake looks at what is to be erased.
	Wake()
}

// Volumes lists the volumes that the actor may see.
func (s *Service) Volumes(ctx context.Context, who muster.Actor, q wire.VolumeQuery) (wire.VolumeList, error) {
	out := wire.VolumeList{Volumes: []wire.Volume{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Volumes(store.VolumeFilter{Project: q.Project, Owner: q.Owner, Living: !q.All, Limit: q.Size() + 1, After: q.After})
		if err != nil {
			return err
		}
		list, more := partOf(list, q.Page)
		if out.More, err = nextAfter(list, more, func(v muster.Volume) (string, error) { return tx.VolumeCursor(v.ID) }); err != nil {
			return err
		}
		users, err := usersOfVolumes(tx)
		if err != nil {
			return err
		}
		for _, v := range list {
			if q.All || v.Kind != muster.VolumeScheduler {
				out.Volumes = append(out.Volumes, viewVolume(who, v, users[v.ID]))
			}
		}
		return nil
	})
	return out, err
}

// Volume shows one volume.
func (s *Service) Volume(ctx context.Context, who muster.Actor, ref string) (wire.Volume, error) {
	var out wire.Volume
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		v, err := tx.FindVolume(ref)
		if err != nil {
			return err
		}
		users, err := usersOfVolumes(tx)
		out = viewVolume(who, v, users[v.ID])
		return err
	})
	return out, err
}

// CreateVolume makes a volume of data for a project.
func (s *Service) CreateVolume(ctx context.Context, who muster.Actor, r wire.VolumeRequest) (wire.Volume, error) {
	v, err := s.wantedVolume(ctx, who, r)
	if err != nil {
		return wire.Volume{}, err
	}
	if err := s.WritesAllowed(); err != nil {
		return wire.Volume{}, err
	}
	err = s.Store.Update(ctx, who, func(tx *store.Tx) error {
		if err := s.volumeNameFree(tx, v); err != nil {
			return err
		}
		if v.Driver == muster.DriverNFS {
			if err := exportFree(tx, v); err != nil {
				return err
			}
		}
		return tx.PutVolume(v, "made by "+who.Name)
	})
	if err != nil {
		return wire.Volume{}, err
	}
	if s.VolumeManager != nil {
		if err := s.VolumeManager.Create(ctx, v); err != nil {
			return wire.Volume{}, err // it is on record; made before it is used
		}
	}
	return s.Volume(ctx, who, string(v.ID))
}

// wantedVolume checks a request, and reports all that is wrong with it.
func (s *Service) wantedVolume(ctx context.Context, who muster.Actor, r wire.VolumeRequest) (muster.Volume, error) {
	v := muster.Volume{
		ID: muster.NewVolumeID(), Name: r.Name, Owner: who.Name, Project: r.Project, Kind: muster.VolumeData,
		Driver: muster.VolumeDriver(cmp.Or(r.Driver, string(muster.DriverHostPath))), Source: r.Source, Note: r.Note,
		Phase: muster.VolumeReady,
	}
	var problems []muster.Problem
	add := func(field string, e *muster.Error) {
		problems = append(problems, e.In(field))
	}
	if e := spec.CheckVolumeName(r.Name); e != nil {
		add("name", e)
	}
	switch {
	case r.Project != "" && (who.Admin || who.In(r.Project)):
		problems = append(problems, s.checkNewProject(ctx, who, r.Project)...)
	case r.Project != "":
		add("project", muster.Errorf(muster.EInvalid, "you have no project %q", r.Project).Because(muster.ReasonUnknownProject).WithHint("%s", didYouMean(r.Project, who.Projects)))
	case len(who.Projects) == 1:
		v.Project = who.Projects[0]
	case who.Admin:
		v.Project = "default"
	default:
		add("project", muster.Errorf(muster.EInvalid, "it is not clear which of your projects this is for").Because(muster.ReasonProjectUnclear).
			WithHint("name one of %s", strings.Join(who.Projects, ", ")))
	}
	if r.Size != "" {
		size, err := spec.ParseBytes(r.Size)
		switch {
		case err != nil:
			add("size", asError(err))
		case size < 1<<20:
			add("size", muster.Errorf(muster.EInvalid, "%.40q is too little", r.Size).Because(muster.ReasonOutOfRange).WithHint("write a size such as 10GiB, or leave it out for no bound; the least is 1MiB"))
		}
		v.Quota = size
	}
	if len(r.Note) > 500 {
		add("note", muster.Errorf(muster.EInvalid, "the note is too long").Because(muster.ReasonTooLarge).WithHint("at most 500 bytes"))
	}
	if v.Driver == muster.DriverNFS && !who.Admin {
		return v, muster.Errorf(muster.EForbidden, "only an administrator declares an export of a file server").Because(muster.ReasonAdminOnly).
			WithHint("ask one, naming your project; or make a volume of your own with --driver hostpath or managed-nfs")
	}
	problems = append(problems, driverProblems(r, v)...)
	if len(problems) > 0 {
		return v, spec.Error(problems)
	}
	return v, nil
}

// driverProblems are those that only a driver has.
func driverProblems(r wire.VolumeRequest, v muster.Volume) (problems []muster.Problem) {
	add := func(why muster.Reason, field, message, hint string) {
		problems = append(problems, muster.Problem{Field: field, Reason: why, Message: message, Hint: hint})
	}
	switch v.Driver {
	case muster.DriverHostPath, muster.DriverManagedNFS:
		if r.Source != "" {
			add(muster.ReasonContradiction, "source", "only a volume of driver nfs has a source", "leave it out, or write driver nfs")
		}
	case muster.DriverNFS:
		if r.Project == "" {
			add(muster.ReasonRequired, "project", "an export belongs to one project, and it is not named", "name the project whose data it holds")
		}
		if r.Size != "" {
			add(muster.ReasonContradiction, "size", "the file server bounds its exports itself", "leave the size out")
		}
		if _, err := volume.ParseSource(r.Source); err != nil {
			problems = append(problems, asError(err).In("source"))
		}
	default:
		add(muster.ReasonBadValue, "driver", fmt.Sprintf("there is no driver %.40q", r.Driver), "write hostpath, managed-nfs or nfs")
	}
	return problems
}

// exportFree refuses an export of which another project has a part: data is
// never shared between projects.
func exportFree(tx *store.Tx, v muster.Volume) error {
	mine, err := volume.ParseSource(v.Source)
	if err != nil {
		return err
	}
	list, err := tx.AsSystem().Volumes(store.VolumeFilter{Living: true, Kind: muster.VolumeData})
	if err != nil {
		return err
	}
	for _, o := range list {
		theirs, err := volume.ParseSource(o.Source)
		if o.Driver == muster.DriverNFS && err == nil && o.Project != v.Project && mine.Overlaps(theirs) {
			return muster.Errorf(muster.EConflict, "%s is, or holds, or lies in data of project %s (volume %s)", v.Source, o.Project, o.Name).Because(muster.ReasonVolumeInUse).
				WithHint("projects do not share data: export a directory of its own for each")
		}
	}
	return nil
}

func (s *Service) volumeNameFree(tx *store.Tx, v muster.Volume) error {
	list, err := tx.Volumes(store.VolumeFilter{Project: v.Project, Living: true})
	if err != nil {
		return err
	}
	for _, o := range list {
		if o.Name == v.Name {
			return muster.Errorf(muster.EConflict, "project %s has a volume named %s already (%s, %s)", v.Project, v.Name, o.ID, o.Phase).Because(muster.ReasonNameTaken).
				WithHint("choose another name, or 'muster volume delete %s' first", o.ID)
		}
	}
	return nil
}

// DeleteVolume erases a volume that no cluster uses. Deleting one that is
// on its way or gone is no error.
func (s *Service) DeleteVolume(ctx context.Context, who muster.Actor, ref string) (wire.Volume, error) {
	var out wire.Volume
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		v, err := tx.FindVolume(ref)
		if err == nil {
			err = mayEnd(who, v)
		}
		if err != nil {
			return err
		}
		if v.Phase == muster.VolumeReady || v.Phase == muster.VolumeRetained {
			users, err := usersOfVolumes(tx)
			if err != nil {
				return err
			}
			if err := unused(v, users[v.ID]); err != nil {
				return err
			}
			v.Phase, v.Expires = muster.VolumeDeleting, time.Time{}
			if err := tx.PutVolume(v, "deleted by "+who.Name); err != nil {
				return err
			}
		}
		v, err = tx.Volume(v.ID)
		out = viewVolume(who, v, nil)
		return err
	})
	if err == nil && s.VolumeManager != nil {
		s.VolumeManager.Wake()
	}
	return out, err
}

// mayEnd refuses to erase a home, or to say how long it is kept, to all but its owner and
// managers of its project.
func mayEnd(who muster.Actor, v muster.Volume) error {
	if v.Kind != muster.VolumeHome || v.Owner == who.Name || who.Manages(v.Project) {
		return nil
	}
	return muster.Errorf(muster.EForbidden, "volume %s is the home of a cluster of %s", v.Name, v.Owner).Because(muster.ReasonNotYours).
		WithHint("ask %s, or a manager of project %s: muster project show %[2]s", v.Owner, v.Project)
}

func unused(v muster.Volume, users []wire.VolumeUser) error {
	if len(users) == 0 {
		return nil
	}
	names := make([]string, len(users))
	for i, u := range users {
		names[i] = u.Name + " (" + string(u.ID) + ")"
	}
	hint := "delete what uses it first"
	if v.Kind == muster.VolumeHome {
		hint = fmt.Sprintf("'muster delete %s --erase' gives the cluster back and erases its home", users[0].ID)
	}
	return muster.Errorf(muster.EConflict, "volume %s is in use by %s", v.Name, strings.Join(names, ", ")).Because(muster.ReasonVolumeInUse).WithHint("%s", hint)
}

// RetainVolume says how long a volume is kept from now, "forever" for no end; of
// the home of a living cluster, how long it is kept after that is deleted.
func (s *Service) RetainVolume(ctx context.Context, who muster.Actor, ref string, r wire.VolumeRetention) (wire.Volume, error) {
	var out wire.Volume
	ever := r.For == "forever"
	span, err := retention(r.For)
	if err != nil {
		return out, err
	}
	if !who.Admin && (ever || span > longestRetention) {
		return out, muster.Errorf(muster.EForbidden, "only an administrator keeps a volume for more than %s", spec.FormatDuration(longestRetention)).Because(muster.ReasonAdminOnly).
			WithHint("ask for less, or ask an administrator")
	}
	err = s.Store.Update(ctx, who, func(tx *store.Tx) error {
		v, err := tx.FindVolume(ref)
		if err == nil {
			err = mayEnd(who, v)
		}
		if err != nil {
			return err
		}
		switch {
		case v.Phase == muster.VolumeReady && v.Kind == muster.VolumeHome:
			err = s.retainLater(tx, v, span, ever)
		case v.Phase == muster.VolumeRetained:
			v.Expires = time.Time{}
			text := "kept forever"
			if !ever {
				v.Expires = s.Clock.Now().Add(span)
				text = "kept until " + v.Expires.UTC().Format(time.RFC3339)
			}
			err = tx.PutVolume(v, text+", said "+who.Name)
		case v.Phase == muster.VolumeReady:
			err = muster.Errorf(muster.EConflict, "volume %s is kept until it is deleted", v.Name).Because(muster.ReasonWrongPhase).
				WithHint("nothing needs to be done")
		default:
			err = muster.Errorf(muster.EConflict, "volume %s is %s", v.Name, v.Phase).Because(muster.ReasonWrongPhase).WithHint("it cannot be kept any more")
		}
		if err != nil {
			return err
		}
		if v, err = tx.Volume(v.ID); err != nil {
			return err
		}
		users, err := usersOfVolumes(tx)
		out = viewVolume(who, v, users[v.ID])
		return err
	})
	if err == nil && s.VolumeManager != nil {
		s.VolumeManager.Wake()
	}
	return out, err
}

// retention reads how long a volume is kept. "forever" is no time: 0.
func retention(text string) (time.Duration, error) {
	if text == "forever" || text == "0" {
		return 0, nil
	}
	span, err := spec.ParseDuration(text)
	if err != nil {
		return 0, spec.Error([]muster.Problem{{Field: "for", Reason: muster.ReasonOf(err), Message: asError(err).Message, Hint: "write 7d, 12h, 0 to delete it at once, or forever (administrators)"}})
	}
	return span, nil
}

// longestRetention is how long people may keep what a cluster left.
const longestRetention = 366 * 24 * time.Hour

// retainLater changes what happens to a home when its cluster is deleted.
func (s *Service) retainLater(tx *store.Tx, v muster.Volume, span time.Duration, ever bool) error {
	if ever {
		return muster.Errorf(muster.EConflict, "volume %s is in use", v.Name).Because(muster.ReasonVolumeInUse).
			WithHint("say so once its cluster is deleted; until then name a time, such as 90d")
	}
	c, err := tx.Cluster(v.Cluster)
	if err != nil {
		return err
	}
	c.Spec.Retain = muster.Duration(span)
	return tx.PutCluster(c, "its home is kept for "+spec.FormatDuration(span)+" after it is deleted")
}

// usersOfVolumes reports which living clusters that the actor may see mount what.
func usersOfVolumes(tx *store.Tx) (map[muster.VolumeID][]wire.VolumeUser, error) {
	out := map[muster.VolumeID][]wire.VolumeUser{}
	// As Muster itself: who shares no project with a cluster sees no volume
	// that it mounts either.
	clusters, err := tx.AsSystem().Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		return nil, err
	}
	living := make(map[muster.ClusterID]muster.Cluster, len(clusters))
	for _, c := range clusters {
		living[c.ID] = c
		for _, u := range c.Spec.Volumes {
			id := muster.VolumeID(u.Volume)
			out[id] = append(out[id], wire.VolumeUser{ID: c.ID, Name: c.Name, Target: u.Target, ReadOnly: u.ReadOnly})
		}
	}
	ready, err := tx.AsSystem().Volumes(store.VolumeFilter{Phases: []muster.VolumePhase{muster.VolumeReady}})
	if err != nil {
		return nil, err
	}
	for _, v := range ready {
		if c, ok := living[v.Cluster]; ok {
			u := wire.VolumeUser{ID: v.Cluster, Name: c.Name, Target: targetOf(v.Kind)}
			if v.Kind == muster.VolumeHome && c.Spec.Retain > 0 {
				u.Retain = c.Spec.Retain
			}
			out[v.ID] = append(out[v.ID], u)
		}
	}
	return out, nil
}

func targetOf(kind muster.VolumeKind) string {
	if kind == muster.VolumeScheduler {
		return "/var/lib/slurm"
	}
	return volume.Target(kind)
}

// viewVolume is a volume as a client sees it. Where on the server it lies is
// nobody's business.
func viewVolume(who muster.Actor, v muster.Volume, users []wire.VolumeUser) wire.Volume {
	out := wire.Volume{
		ID: v.ID, Name: v.Name, Owner: v.Owner, Project: v.Project, Kind: v.Kind, Driver: v.Driver, Status: v.Phase,
		Quota: v.Quota, Enforced: v.Enforced, Used: v.Used, UsedAt: v.UsedAt, Cluster: v.Cluster, Note: v.Note,
		Created: v.Created, PhaseSince: v.PhaseSince, Expires: v.Expires,
		UsedBy: slices.DeleteFunc(slices.Clone(users), func(wire.VolumeUser) bool { return !who.Admin && !who.In(v.Project) && who.Name != v.Owner }),
	}
	if v.Driver == muster.DriverNFS {
		out.Source = v.Source
	}
	if n := quotaNotice(v); n != "" {
		out.Notices = []string{n}
	}
	return out
}

// quotaNotice reports a bound that is not kept.
func quotaNotice(v muster.Volume) string {
	if v.Quota == 0 || v.Enforced || v.Phase == muster.VolumeDeleting || v.Phase == muster.VolumeDeleted {
		return ""
	}
	text := "its size is not enforced: the server's file system keeps no project quotas"
	if v.Used > v.Quota {
		text = "it holds more than its size, which " + strings.TrimPrefix(text, "its size ")
	}
	return text
}
