package store

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
)

// FindCluster finds a cluster by its ID, by the name of a living cluster, or
// by project/name.
//
// Errors: EConflict if several living clusters that the actor may see have the
// name, with their IDs in the hint; ENotFound, with a similar name in the hint
// if there is one.
func (tx *Tx) FindCluster(ref string) (muster.Cluster, error) {
	if strings.HasPrefix(ref, "c-") {
		c, err := tx.Cluster(muster.ClusterID(ref))
		if muster.CodeOf(err) != muster.ENotFound {
			return c, err
		}
	}
	w, name := named(ref, tx.usedBy())
	list, err := tx.clusters(nil, w.cond, w.args...)
	if err != nil {
		return muster.Cluster{}, err
	}
	list = slices.DeleteFunc(list, func(c muster.Cluster) bool { return !allowed(tx.who, read, clusterRecord(tx.who, c)) })
	switch len(list) {
	case 0:
		return muster.Cluster{}, tx.didYouMean(ref, name)
	case 1:
		return list[0], nil
	}
	var which []string
	for _, c := range list {
		which = append(which, string(c.ID)+" (project "+c.Project+")")
	}
	return muster.Cluster{}, muster.Errorf(muster.EConflict, "%d clusters are named %q", len(list), name).Because(muster.ReasonAmbiguous).
		WithHint("name it by its ID: %s", strings.Join(which, ", "))
}

// named asks for what is living under a name, or a project/name, among what w
// lets through; it returns the name alone, too.
func named(ref string, w *where) (*where, string) {
	name := ref
	if project, rest, ok := strings.Cut(ref, "/"); ok {
		name = rest
		w.and("project = ?", project)
	}
	return w.and("name = ?", name).living(true).by("created, n", 0), name
}

func (tx *Tx) didYouMean(ref, name string) error {
	list, err := tx.Clusters(ClusterFilter{Living: true, Limit: 1000})
	if err != nil {
		return err
	}
	names := make([]string, 0, 2*len(list))
	for _, c := range list {
		names = append(names, c.Name, string(c.ID))
	}
	e := noCluster(ref)
	cond, args := scope(tx.who)
	gone, err := tx.clusters(nil, cond+` AND name = ? AND phase = 'deleted' ORDER BY n DESC LIMIT 1`, append(args, name)...)
	if err != nil {
		return err
	}
	if len(gone) == 1 && allowed(tx.who, read, clusterRecord(tx.who, gone[0])) {
		return e.WithHint("the last one of that name is deleted; its ID still shows it: %s", gone[0].ID)
	}
	if best := suggest.Of(name, names); best != "" {
		return e.WithHint("did you mean %q? `muster list` shows the clusters that you can see", best)
	}
	return e
}
