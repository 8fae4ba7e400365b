package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/storage/nfs"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/store"
)

// Cleanup stops the local machines of a state directory and removes what they
// have on this host, also when the store is lost. With unknown it ends those alone
// that the records do not know. It returns the machines that ran. EConflict: a server
// runs.
func Cleanup(ctx context.Context, dir string, unknown bool) ([]muster.MachineID, error) {
	c := Config{State: dir}
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	st, err := openState(ctx, c.State)
	if err != nil {
		return nil, err
	}
	defer func() { _ = st.close() }()
	lost := absent(st.path("muster.db"))
	name, strangers, err := cleanupNames(ctx, c, st, lost)
	if err != nil {
		return nil, err
	}
	if unknown {
		return endUnknown(ctx, c, name, strangers)
	}
	p, err := local.New(ctx, local.Config{Dir: c.State, Instance: name, Log: c.Log})
	if err != nil {
		return nil, err
	}
	running, err := p.Running()
	err = errors.Join(err, nfs.Remove(st.path(localExport)), p.Destroy(ctx), nfs.Remove(st.path(metalExport)))
	host := hostInstances{instancesDir}
	for _, other := range host.of(c.State) { // of a life before, whose store was lost
		if other != name {
			more, e := destroy(ctx, c, other)
			running, err = append(running, more...), errors.Join(err, e)
		}
		if err == nil {
			err = host.forget(other)
		}
	}
	if room, e := local.OpenWorkroom(ctx, name); e == nil { // of builds that a killed server left
		err = errors.Join(err, room.Close())
	}
	// Their data stays; the next server mounts them again.
	err = errors.Join(err, volume.NewManagedNFS(st.path("volumes")).Unmount(ctx))
	if err == nil && lost {
		err = giveUp(ctx, c, st, name)
	}
	return running, err
}

// giveUp makes a store that knows nothing. As the keys stay, so does the count of epochs: by
// a certificate of an epoch above its own the next server would hold itself for superseded.
func giveUp(ctx context.Context, c Config, st *state, name string) error {
	had, err := readSite(st.dir)
	if err != nil {
		return err
	}
	if had == nil {
		had = &site{Instance: name, Epoch: 1}
	}
	// Not which authority: it may be lost, too, and is made anew then.
	return (&adoption{}).carryOut(ctx, &c, st, site{Instance: had.Instance, Epoch: had.Epoch, Newer: had.Newer})
}

// cleanupNames is the name under which the directory's machines run, and which of them
// the records do not know.
func cleanupNames(ctx context.Context, c Config, st *state, lost bool) (string, []local.Found, error) {
	if lost {
		s, err := readSite(c.State)
		if err != nil {
			return "", nil, err
		}
		names := instancesOf(c.State, s)
		running, err := findRunning(c.State, names)
		switch {
		case err != nil:
			return "", nil, err
		case s != nil:
			return s.Instance, running, nil
		case len(names) > 0:
			return names[0], running, nil
		case len(running) > 0:
			return "", nil, muster.Errorf(muster.ENotFound, "nothing says under which name the machines of %s run: neither %s nor its store is there", c.State, st.path(siteFile)).Because(muster.ReasonNoState).
				WithHint("restore a backup with `muster restore`, or end the machines by hand: their control groups and network namespace are called muster-*")
		}
		return muster.RandomID(6), nil, nil // nothing runs under any name
	}
	db, err := store.Open(ctx, st.path("muster.db"), store.Options{Log: c.Log})
	if err != nil {
		return "", nil, err
	}
	name, err := instance(ctx, db)
	var strangers []local.Found
	if err == nil {
		var epoch int64
		if epoch, err = epochOf(ctx, db); err == nil {
			strangers, err = unknownMachines(ctx, db, c.State, name, epoch)
		}
	}
	return name, strangers, errors.Join(err, db.Close())
}

// endUnknown fences and cleans machines that nobody knows.
func endUnknown(ctx context.Context, c Config, name string, list []local.Found) ([]muster.MachineID, error) {
	p, err := local.New(ctx, local.Config{Dir: c.State, Instance: name, Log: c.Log})
	if err != nil {
		return nil, err
	}
	var ended []muster.MachineID
	var errs []error
	for _, f := range list {
		_, err := p.Fence(ctx, f.Machine)
		if err == nil {
			_, err = p.Clean(ctx, f.Machine)
		}
		if err == nil {
			err = removeIfThere(filepath.Join(c.State, "machines", string(f.Machine)+".json"))
			ended = append(ended, f.Machine)
		}
		errs = append(errs, err)
	}
	return ended, errors.Join(append(errs, p.Close())...)
}

// destroy stops all that runs under another name.
func destroy(ctx context.Context, c Config, instance string) ([]muster.MachineID, error) {
	p, err := local.New(ctx, local.Config{Dir: c.State, Instance: instance, Log: c.Log})
	if err != nil {
		return nil, err
	}
	running, err := p.Running()
	return running, errors.Join(err, p.Destroy(ctx))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
