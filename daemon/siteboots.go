package daemon

import (
	"context"
	"path/filepath"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/store"
)

// metalBoots are the bare machines that run for a cluster by the notes of a state
// directory, in the form in which they are told. Notes of another version are an error.
func metalBoots(dir string) ([]local.Found, error) {
	list, err := metal.FindBoots(filepath.Join(dir, "metal"))
	if muster.CodeOf(err) == muster.EConflict {
		return nil, err
	}
	if err != nil {
		return nil, nil //nolint:nilerr // the provider reports why it cannot work here
	}
	var out []local.Found
	for _, f := range list {
		out = append(out, local.Found{Machine: f.Machine, Cluster: f.Cluster, Attempt: f.Attempt})
	}
	return out, nil
}

// refuseUnknownBoots looks whether bare machines run for clusters that the records do not
// know, or by later boots than they know, or by boots of a later epoch. Whoever was given them still has them: they are
// told of, and neither started nor handed out.
func (s *Server) refuseUnknownBoots(ctx context.Context) error {
	boots, err := metalBoots(s.cfg.State)
	if err != nil {
		return err
	}
	var unknown []local.Found
	err = s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		for _, f := range boots {
			m, err := tx.Machine(f.Machine)
			if err != nil && muster.CodeOf(err) != muster.ENotFound {
				return err
			}
			known := err == nil
			_, err = tx.Cluster(f.Cluster)
			if err != nil && muster.CodeOf(err) != muster.ENotFound {
				return err
			}
			if !known || err != nil || m.Cluster == f.Cluster && f.Attempt > m.Attempt || muster.EpochOf(f.Attempt) > s.epoch {
				unknown = append(unknown, f)
			}
		}
		return nil
	})
	if err != nil || len(unknown) == 0 {
		return err
	}
	return muster.Errorf(muster.EConflict, "bare machines run that the records do not know: %s", foundNames(unknown)).Because(muster.ReasonUnknownMachines).
		WithHint("the records are older than the machines: restore newer ones with `muster restore FILE --replace --state %s`; or switch these machines off by hand and put %s aside for each; until then nothing is started, given or ended",
			s.cfg.State, filepath.Join(s.cfg.State, "metal", "boots", "MACHINE.json"))
}
