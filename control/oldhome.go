package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// oldHome notes that the home of an earlier cluster of the same name and owner is kept, and
// how to have it: whoever makes a cluster anew under its name may expect their files.
func (s *Service) oldHome(ctx context.Context, who muster.Actor, w *parsedRequest) {
	if w.spec.Home != "" || w.course != "" {
		return
	}
	var newest muster.Volume
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Volumes(store.VolumeFilter{Project: w.spec.Project, Owner: w.owner, Kind: muster.VolumeHome, Phases: []muster.VolumePhase{muster.VolumeRetained}})
		if err != nil {
			return err
		}
		for _, v := range list {
			if !v.PhaseSince.Before(newest.PhaseSince) && homeOf(tx, v) == w.spec.Name {
				newest = v
			}
		}
		return nil
	})
	if err != nil || newest.ID == "" {
		return // a note is no reason to refuse
	}
	kept := ""
	if !newest.Expires.IsZero() {
		kept = " until " + newest.Expires.UTC().Format(time.RFC3339)
	}
	w.notices = append(w.notices, fmt.Sprintf("the home of an earlier cluster %s is kept as volume %s%s; this cluster gets a new one. To have the old one: --home %[2]s, or home: %[2]s in the request", w.spec.Name, newest.Name, kept))
}

// homeOf is the name of the cluster that a kept home was last of.
func homeOf(tx *store.Tx, v muster.Volume) string {
	if c, err := tx.Cluster(v.Cluster); v.Cluster != "" && err == nil {
		return c.Name
	}
	return strings.TrimSuffix(v.Name, "-home")
}
