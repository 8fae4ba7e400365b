package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/lockfile"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/backup"
)

// backedUp are the parts of a state directory, besides the store, without which a site is
// not the same. Images are built again from their recipes; volumes are data, and a matter
// of the site's own backup; what was used over time is lost with its disk.
func backedUp() []string { return []string{siteFile, "keys", "metal"} }

// Backup writes what the site in dir knows into a new file, for its owner alone, while a
// server may run. Before the file has its name it is read again as a whole.
func Backup(ctx context.Context, dir, file, passphrase, version string) (*backup.Contents, error) {
	at, err := readSite(dir)
	if err != nil {
		return nil, err
	}
	if at == nil || absent(filepath.Join(dir, "muster.db")) {
		return nil, muster.Errorf(muster.ENotFound, "%s is not a state directory: there is nothing to back up", dir).Because(muster.ReasonNoState).
			WithHint("name the --state of the server, such as /var/lib/muster")
	}
	if _, err := os.Lstat(file); err == nil {
		return nil, muster.Errorf(muster.EConflict, "%s is there already", file).Because(muster.ReasonFileExists).WithHint("choose another name, or move it away")
	}
	one, err := lockfile.Take(ctx, filepath.Join(dir, ".backup.lock"))
	if err != nil {
		return nil, muster.Errorf(muster.EConflict, "another backup or restore of %s is under way", dir).Because(muster.ReasonServerRunning).WithHint("wait for it").Wrap(err)
	}
	defer func() { _ = one.Close() }()
	if err := removeStages(dir); err != nil {
		return nil, err
	}
	stage, err := os.MkdirTemp(dir, stagePrefix)
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the database cannot be copied to %s", dir).Because(muster.ReasonDiskFull).WithHint("is its disk full?").Wrap(err)
	}
	defer func() { _ = os.RemoveAll(stage) }()
	names := []string{"muster.db"}
	if err := store.Snapshot(ctx, filepath.Join(dir, "muster.db"), filepath.Join(stage, "muster.db")); err != nil {
		return nil, err
	}
	for _, part := range backedUp() {
		list, err := backup.Names(dir, part)
		if err != nil {
			return nil, err
		}
		for _, n := range list { // copied, so that nothing changes between its digest and its bytes
			switch err := copyFile(filepath.Join(dir, n), filepath.Join(stage, n)); {
			case errors.Is(err, os.ErrNotExist):
			case err != nil:
				return nil, err
			default:
				names = append(names, n)
			}
		}
	}
	out, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*") // 0600
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "%s cannot be written", file).Because(muster.ReasonFileUnwritable).WithHint("choose another place").Wrap(err)
	}
	defer func() { _ = out.Close(); _ = os.Remove(out.Name()) }() // once it has its name there is none
	c := backup.Contents{Version: version, Instance: at.Instance, Epoch: at.Epoch, Made: time.Now().UTC().Truncate(time.Second)}
	if err := errors.Join(backup.Write(out, passphrase, c, stage, names), out.Sync()); err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the backup cannot be written").Because(muster.ReasonFileUnwritable).WithHint("is there room for %s?", file).Wrap(err)
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	whole, err := backup.Read(out, passphrase, "")
	if err != nil {
		return nil, err
	}
	return whole, publish(out.Name(), file)
}

// publish gives a file its name, and takes no other's place.
func publish(from, name string) error {
	err := os.Link(from, name)
	if errors.Is(err, os.ErrExist) {
		return muster.Errorf(muster.EConflict, "%s is there already", name).Because(muster.ReasonFileExists).WithHint("choose another name, or move it away").Wrap(err)
	}
	if err != nil { // a file system without links
		err = os.Rename(from, name)
	}
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "%s cannot be given its name", name).Because(muster.ReasonFileUnwritable).WithHint("choose another place").Wrap(err)
	}
	return atomicfile.SyncDir(filepath.Dir(name))
}

// stagePrefix begins the name of a folder in which a backup or a restore is put together.
// It holds the site's secrets.
const stagePrefix = ".stage-"

// removeStages removes what a backup or a restore that was killed left behind.
func removeStages(dir string) error {
	list, err := filepath.Glob(filepath.Join(dir, stagePrefix+"*"))
	for _, stage := range list {
		err = errors.Join(err, os.RemoveAll(stage))
	}
	return err
}

// removeOldStages does the same at the start of a server, unless a backup is under way.
func removeOldStages(ctx context.Context, dir string) error {
	if left, err := filepath.Glob(filepath.Join(dir, stagePrefix+"*")); err != nil || len(left) == 0 {
		return err
	}
	one, err := lockfile.Take(ctx, filepath.Join(dir, ".backup.lock"))
	var held *lockfile.HeldError
	if errors.As(err, &held) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(removeStages(dir), one.Close())
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(to, b, 0o600)
}

// VerifyBackup reads a backup as a whole.
func VerifyBackup(file, passphrase string) (*backup.Contents, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, muster.Errorf(muster.ENotFound, "%s cannot be read", file).Because(muster.ReasonFileUnreadable).WithHint("name the file of the backup").Wrap(err)
	}
	defer f.Close()
	return backup.Read(f, passphrase, "")
}

// restoringFile is there while a restore puts its parts in their places: a start then
// refuses, and the restore is made again.
const restoringFile = "restoring"

// Restore brings back what a backup holds, into the state directory dir, in a new epoch.
// What was there is moved to the folder that it returns, never removed. With replace also
// a store that is whole is put aside. EConflict: a server runs there, or another site is.
func Restore(ctx context.Context, file, passphrase, dir string, replace bool) (c *backup.Contents, aside string, err error) {
	st, err := openState(ctx, dir)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	one, err := lockfile.Take(ctx, st.path(".backup.lock"))
	if err != nil {
		return nil, "", muster.Errorf(muster.EConflict, "a backup of %s is under way", dir).Because(muster.ReasonServerRunning).WithHint("wait for it").Wrap(err)
	}
	defer func() { _ = one.Close() }()
	// Whoever has the store open, without being a server, must not go on with it either.
	db, err := lockfile.Take(ctx, st.path("muster.db.lock"))
	if err != nil {
		return nil, "", muster.Errorf(muster.EConflict, "the database of %s is in use", dir).Because(muster.ReasonServerRunning).WithHint("find who has it with `fuser -v %s`", st.path("muster.db")).Wrap(err)
	}
	if err := errors.Join(db.Close(), removeStages(dir)); err != nil {
		return nil, "", err
	}
	begun := !absent(st.path(restoringFile))
	if !absent(st.path("muster.db")) && !replace && !begun {
		return nil, "", muster.Errorf(muster.EConflict, "%s already contains a database", dir).Because(muster.ReasonFileExists).
			WithHint("add --replace to put it aside and go back to the backup, or choose another --state")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, "", muster.Errorf(muster.ENotFound, "%s cannot be read", file).Because(muster.ReasonFileUnreadable).WithHint("name the file of the backup").Wrap(err)
	}
	defer f.Close()
	stage, err := os.MkdirTemp(dir, stagePrefix)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = os.RemoveAll(stage) }()
	if c, err = backup.Read(f, passphrase, stage); err != nil {
		return nil, "", err
	}
	if err := prepareRestore(ctx, dir, stage, c); err != nil {
		return nil, "", err
	}
	if err := begin(dir, stage, file); err != nil {
		return nil, "", err
	}
	if aside, err = swapIn(dir, stage); err != nil {
		return nil, aside, err
	}
	return c, aside, errors.Join(os.Remove(st.path(restoringFile)), atomicfile.SyncDir(dir))
}

// prepareRestore makes the staged copy the site's next epoch: above all that the backup and
// what is here know of, and that of a restore which was begun here and cut off, as what it
// had put in its place may have served by then.
func prepareRestore(ctx context.Context, dir, stage string, c *backup.Contents) error {
	had, err := readSite(dir)
	if err == nil && had != nil && had.Instance != c.Instance {
		return muster.Errorf(muster.EConflict, "the backup is of the site %s, and %s is of %s", c.Instance, dir, had.Instance).Because(muster.ReasonOtherSite).
			WithHint("choose the --state of its own site, or an empty one")
	}
	staged, err := readSite(stage)
	if err != nil {
		return err
	}
	if err := metal.ForgetCleaned(filepath.Join(stage, "metal")); err != nil {
		return err
	}
	epoch := max(c.Epoch, had.highest(), staged.highest(), begunEpoch(dir)) + 1
	path := filepath.Join(stage, "muster.db")
	if err := store.BeginEpoch(ctx, path, epoch); err != nil {
		return err
	}
	for _, leftover := range []string{"-wal", "-shm", ".lock"} {
		if err := removeIfThere(path + leftover); err != nil {
			return err
		}
	}
	authority, err := authorityOf(stage)
	if err != nil {
		return muster.Errorf(muster.ECorrupt, "the backup has no keys").Because(muster.ReasonBackupDamaged).WithHint("take another one; nothing was changed").Wrap(err)
	}
	return site{Instance: c.Instance, Epoch: epoch, Authority: authority}.write(stage)
}

// begin writes down that a restore puts its parts in their places, and the epoch that these
// are of: while it does, site.json may be in neither place.
func begin(dir, stage, file string) error {
	s, err := readSite(stage)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, restoringFile), fmt.Appendf(nil, "%d %s\n", s.Epoch, file), 0o600)
}

// begunEpoch is the epoch of a restore that was begun and not finished; 0: there is none.
func begunEpoch(dir string) (epoch int64) {
	b, err := os.ReadFile(filepath.Join(dir, restoringFile))
	if err != nil {
		return 0
	}
	_, _ = fmt.Sscan(string(b), &epoch) // that of an earlier version tells none
	return epoch
}

// move is one part of a state directory that goes from one place to another.
type move struct{ from, to string }

// moves are the steps of a restore in their order: what is there aside, the staged parts
// in, the store last in both, so that no store ever stands beside another's keys.
func moves(dir, stage, aside string) (all []move) {
	for _, n := range []string{"keys", "metal", siteFile, "muster.db-wal", "muster.db-shm", "muster.db"} {
		all = append(all, move{filepath.Join(dir, n), filepath.Join(aside, n)})
	}
	for _, n := range []string{"keys", "metal", siteFile, "muster.db"} {
		all = append(all, move{filepath.Join(stage, n), filepath.Join(dir, n)})
	}
	return all
}

func (m move) make() error {
	if err := os.Rename(m.from, m.to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// swapIn makes the moves, and reports where what was there is now.
func swapIn(dir, stage string) (aside string, err error) {
	aside = filepath.Join(dir, "replaced-"+time.Now().UTC().Format("20060102T150405.000"))
	if err := os.Mkdir(aside, 0o700); err != nil {
		return "", err
	}
	for _, m := range moves(dir, stage, aside) {
		if err := m.make(); err != nil {
			return aside, err
		}
	}
	_ = os.Remove(aside) // when nothing was there
	return aside, atomicfile.SyncDir(dir)
}
