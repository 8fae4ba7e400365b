package control

import (
	"context"
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// CreateCluster answers a request and, unless it is a dry run, records the
// cluster: building with its machines assigned, or queued. With code ENever or
// ENoCapacity the reply holds the answer of admission.
func (s *Service) CreateCluster(ctx context.Context, who muster.Actor, call wire.CreateCall) (wire.Created, error) {
	w, err := s.parseRequest(ctx, who, call)
	if err != nil {
		return wire.Created{}, err
	}
	id := muster.NewClusterID()
	if call.Key != "" {
		id = keyedID(who, call.Key)
	}
	out := wire.Created{Name: w.spec.Name, Spec: w.spec, DryRun: call.DryRun}
	if call.DryRun {
		out, err = s.dryRun(ctx, who, id, w, out)
		out.Answer.Notices = append(out.Answer.Notices, w.like.differs(s.Config.Images.Resolve, out.Answer)...)
		out.Answer.Notices = append(out.Answer.Notices, s.centreNotices(ctx, out.Answer)...)
		return out, err
	}
	if err := s.WritesAllowed(); err != nil {
		return out, err
	}
	created, err := s.commit(ctx, who, id, w)
	gave := s.preemptBenchmarks(ctx, created.Answer)
	if err != nil {
		created.Name, created.Spec = out.Name, out.Spec
		var e *muster.Error
		if gave && errors.As(err, &e) && e.Code == muster.ENoCapacity {
			err = e.WithHint("%s; machines that were being measured are given back now: ask again in a minute", e.Hint)
		}
		return created, err
	}
	s.Changed(created.ID)
	created.Answer.Notices = append(created.Answer.Notices, w.like.differs(s.Config.Images.Resolve, created.Answer)...)
	created.Answer.Notices = append(created.Answer.Notices, s.centreNotices(ctx, created.Answer)...)
	return created, nil
}

// keyedID makes the ID of a request with an idempotency key from the key, so
// that a repeated request meets its own cluster, also after a restart.
func keyedID(who muster.Actor, key string) muster.ClusterID {
	const alphabet = "23456789bcdfghjkmnpqrstvwxz"
	sum := sha256.Sum256([]byte("muster cluster\x00" + who.Name + "\x00" + key))
	id := make([]byte, 10)
	for i := range id {
		id[i] = alphabet[(int(sum[2*i])<<8|int(sum[2*i+1]))%len(alphabet)]
	}
	return muster.ClusterID("c-" + string(id))
}

func (s *Service) dryRun(ctx context.Context, who muster.Actor, id muster.ClusterID, w parsedRequest, out wire.Created) (wire.Created, error) {
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		if err := s.nameFree(tx, w.spec); err != nil {
			return err
		}
		if err := s.mayDerive(tx, w); err != nil {
			return err
		}
		if err := s.withinLimits(tx, s.newCluster(id, w), nil, nil); err != nil {
			return err
		}
		_, err := freeVolumes(tx, s.newCluster(id, w))
		return err
	})
	if err != nil {
		return out, err
	}
	out.Answer, err = s.Allocator.Answer(ctx, w.demand(id), nil)
	if err != nil {
		return out, err
	}
	if out.Answer.Plan != nil || out.Answer.Promise != nil { // as the cluster would be recorded
		c := s.newCluster(id, w)
		c.Promise = out.Answer.Promise
		err := s.Store.View(ctx, who, func(tx *store.Tx) error { return s.withinLimits(tx, c, out.Answer.Plan, nil) })
		if err != nil {
			return out, err
		}
	}
	if w.lifted != nil {
		out.Answer.Notices = append(out.Answer.Notices, w.lifted.Text())
	}
	out.Status = "dry-run"
	out.Answer.Notices = append(append(out.Answer.Notices, w.notices...), packageNotices(w)...)
	return out, nil
}

// packageNotices tell that a dry run does not look packages up: only the
// archive of the image's own release knows them, and it is asked when the
// image is derived.
func packageNotices(w parsedRequest) []string {
	var list []string
	for _, p := range w.spec.Packages {
		name, _, _ := strings.Cut(p, "=")
		has := func(have muster.ImagePackage) bool { return have.Name == name }
		if w.image == nil || !slices.ContainsFunc(w.image.Packages, has) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []string{"not looked up now: whether there is " + strings.Join(list, ", ") + "; package names are checked when the image is derived"}
}

// nameFree refuses a second living cluster of one name in a project.
func (s *Service) nameFree(tx *store.Tx, sp muster.Spec) error {
	living, err := tx.Clusters(store.ClusterFilter{Project: sp.Project, Living: true})
	if err != nil {
		return err
	}
	for _, c := range living {
		if c.Name == sp.Name {
			return muster.Errorf(muster.EConflict, "project %s has a cluster named %s already (%s, %s)", sp.Project, sp.Name, c.ID, c.Phase).Because(muster.ReasonNameTaken).
				WithHint("choose another name, or 'muster delete %s' first", c.ID)
		}
	}
	return nil
}

// demand is what machines are needed for.
func (w parsedRequest) demand(id muster.ClusterID) allocate.Demand {
	return allocate.Demand{Cluster: id, Purpose: allocate.Create, Spec: w.spec, Image: w.image, Alternatives: true}
}

// commit takes machines for a request and records its cluster, or the cluster alone
// where it has to wait.
func (s *Service) commit(ctx context.Context, who muster.Actor, id muster.ClusterID, w parsedRequest) (wire.Created, error) {
	out := wire.Created{Name: w.spec.Name, Spec: w.spec}
	keys, err := newSecrets(w)
	if err != nil {
		return out, err
	}
	_, err = s.Allocator.Take(ctx, who, allocate.Taking{
		Nodes:   w.spec.Nodes,
		Demands: func(*store.Tx) ([]allocate.Demand, error) { return []allocate.Demand{w.demand(id)}, nil },
		Record: func(tx *store.Tx, _ []allocate.Demand, answers []muster.Answer) error {
			out = wire.Created{Name: w.spec.Name, Spec: w.spec, Answer: answers[0]}
			return s.record(tx, id, w, keys, &out)
		},
	})
	return out, err
}

// record records the cluster as out's answer says.
func (s *Service) record(tx *store.Tx, id muster.ClusterID, w parsedRequest, keys *secrets, out *wire.Created) error {
	answer := out.Answer
	if again, err := s.repeated(tx, id, w, out); again || err != nil {
		return err
	}
	if err := s.nameFree(tx, w.spec); err != nil {
		return err
	}
	if err := s.mayDerive(tx, w); err != nil {
		return err
	}
	out.Answer.Notices = slices.Concat(answer.Notices, w.notices)
	if refused := admit.Refusal(w.spec, answer); refused != nil {
		return refused
	}
	c := s.newCluster(id, w)
	c.Promise = answer.Promise // its limits are those of the time that it gets
	if err := s.withinLimits(tx, c, answer.Plan, nil); err != nil {
		return err
	}
	if c.Lifted != nil {
		c.Notices = muster.AddNotice(c.Notices, s.Clock.Now(), muster.NoticeLifted, c.Lifted.Text())
		out.Answer.Notices = append(out.Answer.Notices, c.Lifted.Text())
	}
	if w.excepted {
		if err := useException(tx.AsSystem(), c.Project, c.Name, s.Clock.Now()); err != nil {
			return err
		}
	}
	if err := s.makeUsers(tx, w, &out.Answer); err != nil {
		return err
	}
	switch answer.Verdict {
	case muster.VerdictNow:
		c.Promise = nil
		if err := s.assign(tx, &c, w.image, *answer.Plan, keys, ""); err != nil {
			return err
		}
	case muster.VerdictReserved:
		if err := s.Allocator.Promised(tx, c.ID, *answer.Promise); err != nil {
			return err
		}
		c.Phase, c.Class, c.Promise = muster.ClusterReserved, answer.Plan.Class, answer.Promise
		if err := tx.PutCluster(c, "reserved: it starts at "+admit.Moment(c.Promise.Start)); err != nil {
			return err
		}
	default:
		c.Phase = muster.ClusterQueued
		c.Conditions = append(c.Conditions, s.waitsForMachines(answer))
		if err := tx.PutCluster(c, "no room now"); err != nil {
			return err
		}
	}
	if err := s.takeVolumes(tx, c); err != nil {
		return err
	}
	return s.showCreated(tx, c, out)
}

// repeated finds the cluster that an earlier request with the same key made.
func (s *Service) repeated(tx *store.Tx, id muster.ClusterID, w parsedRequest, out *wire.Created) (bool, error) {
	c, err := tx.Cluster(id)
	if muster.CodeOf(err) == muster.ENotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	same := w.spec
	if !c.Spec.Start.IsZero() && !same.Start.IsZero() {
		same.Start = c.Spec.Start // "+2h" is another time each time it is read
	}
	if !reflect.DeepEqual(c.Spec, same) {
		return false, muster.Errorf(muster.EConflict, "the idempotency key belongs to another request, cluster %s", c.ID).Because(muster.ReasonKeyTaken).
			WithHint("use a new key for a new request")
	}
	out.Answer = muster.Answer{Verdict: muster.VerdictNow, Notices: []string{"this request was made before; nothing new was made"}}
	switch c.Phase {
	case muster.ClusterQueued:
		out.Answer.Verdict = muster.VerdictQueued
	case muster.ClusterReserved:
		out.Answer.Verdict, out.Answer.StartAt = muster.VerdictReserved, c.Promise.Start
	}
	return true, s.showCreated(tx, c, out)
}

func (s *Service) newCluster(id muster.ClusterID, w parsedRequest) muster.Cluster {
	now := s.Clock.Now()
	return muster.Cluster{
		ID: id, Name: w.spec.Name, Owner: w.owner, Project: w.spec.Project,
		Spec: w.spec, Generation: 1, Created: now, PhaseSince: now, Course: w.course, Lifted: w.lifted,
	}
}

func (s *Service) showCreated(tx *store.Tx, c muster.Cluster, out *wire.Created) error {
	view, err := s.showOne(tx, c)
	if err != nil {
		return err
	}
	out.ID, out.Status, out.Cluster = c.ID, string(c.Phase), &view
	if c.Phase == muster.ClusterQueued {
		out.Answer.Position = view.Position
	}
	return nil
}
