package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/store"
)

// derivedLook reports which derived images clusters have or wait for. It reads each manifest
// once.
type derivedLook struct {
	images Images
	seen   map[string]*muster.Image
}

func (s *Service) lookAtDerived() derivedLook {
	return derivedLook{s.Config.Images, map[string]*muster.Image{}}
}

// key is the derived image of a cluster, as image.DerivedKey names it; "" where it has
// none and waits for none.
func (l derivedLook) key(c muster.Cluster) string {
	ref := string(c.Image)
	if ref == "" {
		if c.Phase != muster.ClusterQueued && c.Phase != muster.ClusterReserved && c.Phase != muster.ClusterBuilding {
			return "" // it failed before it had one
		}
		ref = c.Spec.Image
	}
	img, ok := l.seen[ref]
	if !ok {
		img, _ = l.images.Resolve(ref) // none: what is not there is not derived
		l.seen[ref] = img
	}
	if img == nil {
		return ""
	}
	return image.DerivedKey(img, c.Spec.Packages)
}

// Derived are, for each project, the derived images that its clusters have or wait for.
func (u usersOfImages) Derived(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	look := u.s.lookAtDerived()
	err := u.s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		living, err := tx.Clusters(store.ClusterFilter{Living: true})
		for _, c := range living {
			if key := look.key(c); key != "" && !slices.Contains(out[c.Spec.Project], key) {
				out[c.Spec.Project] = append(out[c.Spec.Project], key)
			}
		}
		return err
	})
	return out, err
}

// mayDerive refuses a request whose added packages are one set too many for its project.
// What no cluster of the project has does not count: it goes where room is needed. What is
// still being built does.
func (s *Service) mayDerive(tx *store.Tx, w parsedRequest) error {
	if w.image == nil {
		return nil
	}
	key := image.DerivedKey(w.image, w.spec.Packages)
	if key == "" {
		return nil
	}
	if err := image.CheckBase(w.image); err != nil {
		return err
	}
	living, err := tx.AsSystem().Clusters(store.ClusterFilter{Project: w.spec.Project, Living: true})
	if err != nil {
		return err
	}
	look := s.lookAtDerived()
	sets := map[string]bool{}
	var having []string
	for _, c := range living {
		has := ""
		if c.Phase != muster.ClusterDeleting { // it goes
			has = look.key(c)
		}
		switch {
		case has == key:
			return nil
		case has == "":
		case !sets[has]:
			sets[has] = true
			having = append(having, fmt.Sprintf("%s (%s, %s)", c.Name, c.ID, beginning(c.Spec.Packages)))
		}
	}
	most := s.policy.Load().DerivedPerProject
	if len(sets) < most {
		return nil
	}
	return muster.Errorf(muster.EConflict, "the clusters of project %s have %d different sets of added packages, and a project may have %d at once", w.spec.Project, len(sets), most).Because(muster.ReasonTooManyImages).
		WithHint("delete the last cluster with a set first, or ask for the packages of one that is there: %s", beginning(having))
}

// beginning is a list for a line: its beginning, and how many more there are.
func beginning(list []string) string {
	const shown = 5
	if len(list) <= shown {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}
