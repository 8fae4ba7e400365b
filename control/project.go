package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/store"
)

// newProject reports whether nobody belongs to a project and it has no cluster
// and no volume.
func (s *Service) newProject(ctx context.Context, project string, people map[string]muster.User) bool {
	for _, u := range people {
		if slices.Contains(u.Projects, project) {
			return false
		}
	}
	used := false
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.Clusters(store.ClusterFilter{Project: project, Limit: 1})
		if err != nil {
			return err
		}
		volumes, err := tx.Volumes(store.VolumeFilter{Project: project, Living: true, Limit: 1})
		used = len(list) > 0 || len(volumes) > 0
		return err
	})
	return err == nil && !used
}

// slipOfProject is the project that the name of a new one is most likely a slip
// of. An administrator's cluster or volume begins a project by the way, but not
// of a slip: its people would not see what is in it.
func (s *Service) slipOfProject(ctx context.Context, project string, people map[string]muster.User) (muster.Problem, bool) {
	known := []string{"default"}
	for _, u := range people {
		known = append(known, u.Projects...)
	}
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		clusters, err := tx.Clusters(store.ClusterFilter{Living: true})
		if err != nil {
			return err
		}
		for _, c := range clusters {
			known = append(known, c.Project)
		}
		volumes, err := tx.Volumes(store.VolumeFilter{Living: true})
		for _, v := range volumes {
			known = append(known, v.Project)
		}
		return err
	})
	meant := suggest.Slip(project, sameNumber(project, known))
	if err != nil || meant == "" {
		return muster.Problem{}, false
	}
	return muster.Problem{
		Field: "project", Reason: muster.ReasonUnknownProject, Message: fmt.Sprintf("there is no project %q", project),
		Hint: fmt.Sprintf("did you mean %s? Another project begins with its first member: muster user add NAME --projects %s", meant, project),
	}, true
}

// checkNewProject refuses a slip where an administrator names a project.
func (s *Service) checkNewProject(ctx context.Context, who muster.Actor, project string) []muster.Problem {
	if !who.Admin || project == "" || project == "default" {
		return nil
	}
	people := map[string]muster.User{}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		all, err := tx.Users()
		for _, u := range all {
			people[u.Name] = u
		}
		return err
	})
	if err != nil || !s.newProject(ctx, project, people) {
		return nil
	}
	if slip, is := s.slipOfProject(ctx, project, people); is {
		return []muster.Problem{slip}
	}
	return nil
}
