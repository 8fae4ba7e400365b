package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/store"
)

// siteFile is where a state directory says whose it is, beside the store: so that the
// loss of one is noticed by the other.
const siteFile = "site.json"

// site is what a state directory says of itself.
type site struct {
	// Instance is the name under which its machines, namespaces and control groups are
	// on this host.
	Instance string `json:"instance"`
	// Epoch counts the lives of the records, from 1: each restore begins another one.
	Epoch int64 `json:"epoch"`
	// Authority is the SHA-256 of the authority's certificate, in hexadecimal.
	Authority string `json:"authority,omitempty"`
	// Newer is the other server that has taken this one's place; see met.
	Newer newer `json:"newer,omitzero"`
}

// highest is the highest epoch that is known here; 0 for a directory that says nothing.
func (s *site) highest() int64 {
	if s == nil {
		return 0
	}
	return max(s.Epoch, s.Newer.Epoch)
}

const siteDoc document.Kind[site] = "site/1"

// Keys of facts about the site in the store.
const (
	metaInstance = "instance"
	metaEpoch    = "epoch"
	// metaAuthority is site.Authority, for when the directory does not say it any more.
	metaAuthority = "authority"
)

// IsStateDirectory reports whether a server has used the directory.
func IsStateDirectory(dir string) bool {
	for _, name := range []string{"muster.db", siteFile, "machines"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	abs, err := filepath.Abs(dir)
	return err == nil && len(hostInstances{instancesDir}.of(abs)) > 0
}

// readSite gives nil when the directory says nothing of itself.
func readSite(dir string) (*site, error) {
	b, err := os.ReadFile(filepath.Join(dir, siteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s site
	if err == nil {
		s, err = siteDoc.Decode(filepath.Join(dir, siteFile), b)
	}
	if muster.CodeOf(err) == muster.EConflict {
		return nil, err
	}
	if err != nil || s.Instance == "" || s.Epoch < 1 {
		return nil, muster.Errorf(muster.ECorrupt, "%s cannot be read", filepath.Join(dir, siteFile)).Because(muster.ReasonKeysDamaged).
			WithHint("restore a backup (`muster restore FILE --replace`); or, where store and keys are whole, move this file away: the next start writes it anew; nothing was started").Wrap(err)
	}
	return &s, nil
}

// write keeps it for good before it returns.
func (s site) write(dir string) error {
	b, err := siteDoc.Encode(&s)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, siteFile), append(b, '\n'), 0o600)
}

// checkBefore refuses a start that would begin a second life beside the first: when the
// store or the keys are lost, before anything is made in their stead.
func checkBefore(dir string) error {
	if !absent(filepath.Join(dir, restoringFile)) {
		return muster.Errorf(muster.EConflict, "a restore into %s was not finished", dir).Because(muster.ReasonRestoreUnfinished).WithHint("run `muster restore` again; nothing was started")
	}
	s, err := readSite(dir)
	if err != nil {
		return err
	}
	if absent(filepath.Join(dir, "muster.db")) {
		running, err := findRunning(dir, instancesOf(dir, s))
		if muster.CodeOf(err) == muster.EConflict && s == nil { // notes of another version
			return err
		}
		boots, err := metalBoots(dir)
		if err != nil && s == nil {
			return err
		}
		running = append(running, boots...)
		if s != nil || len(running) > 0 || !absent(filepath.Join(dir, "muster.db-wal")) || remains(dir) != "" {
			return lostStore(dir, running)
		}
		return nil
	}
	if err := refuseSuperseded(dir, s); err != nil {
		return err
	}
	if s != nil && s.Authority != "" {
		return checkKeys(dir, s.Authority)
	}
	return nil
}

// checkKeys refuses keys that are not those of the authority with this digest.
func checkKeys(dir, authority string) error {
	switch now, err := authorityOf(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return muster.Errorf(muster.EConflict, "the keys of the site are gone: %s is not there", filepath.Join(dir, "keys", "authority.pem")).Because(muster.ReasonKeysMissing).
			WithHint("restore them from a backup: `muster restore FILE --replace --state %s`. With another authority every node and every certificate would be a stranger's; nothing was started", dir)
	case err != nil:
		return err
	case absent(filepath.Join(dir, "keys", "certificates.json")):
		return muster.Errorf(muster.EConflict, "the keys of the site are gone: %s is not there", filepath.Join(dir, "keys", "certificates.json")).Because(muster.ReasonKeysMissing).
			WithHint("restore them from a backup: `muster restore FILE --replace --state %s`. Signed with others, new certificates would have nothing to do with the old ones; nothing was started", dir)
	case now != authority:
		return muster.Errorf(muster.EConflict, "%s is not the authority that this site had", filepath.Join(dir, "keys", "authority.pem")).Because(muster.ReasonKeysMissing).
			WithHint("put the right one back, or restore a backup: `muster restore FILE --replace --state %s`; nothing was started", dir)
	}
	return nil
}

// absent reports whether a file is not there, or empty.
func absent(path string) bool {
	st, err := os.Stat(path)
	return err != nil || st.Size() == 0
}

func authorityOf(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "keys", "authority.pem"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

func lostStore(dir string, running []local.Found) error {
	what := "no machine runs"
	if len(running) > 0 {
		what = "these machines run: " + foundNames(running)
	}
	return muster.Errorf(muster.EConflict, "the database %s is missing or empty, but this directory was used before: %s", filepath.Join(dir, "muster.db"), what).Because(muster.ReasonStoreMissing).
		WithHint("bring it back with `muster restore FILE --state %s`; or adopt what runs, see `muster adopt --state %s`; or give up what it knew with `muster cleanup --state %s --yes`, which ends these machines; until then nothing is started, given or ended", dir, dir, dir)
}

// foundNames is a sorted, bounded list of machines for people.
func foundNames(list []local.Found) string {
	var names []string
	for _, f := range list {
		n := string(f.Machine)
		if f.Cluster != "" {
			n += " (" + string(f.Cluster) + ", attempt " + strconv.FormatInt(f.Attempt, 10) + ")"
		}
		names = append(names, n)
	}
	slices.Sort(names)
	if len(names) > 50 {
		names = append(names[:50], fmt.Sprintf("and %d more", len(names)-50))
	}
	return strings.Join(names, ", ")
}

// identify settles under which name and in which epoch this server works, and refuses
// records that are older than what they are found beside.
func (s *Server) identify(ctx context.Context) error {
	name, err := instance(ctx, s.db)
	if err != nil {
		return err
	}
	epoch, err := epochOf(ctx, s.db)
	if err != nil {
		return err
	}
	had, err := readSite(s.cfg.State)
	if err != nil {
		return err
	}
	if had != nil && had.Instance != name {
		return muster.Errorf(muster.EConflict, "%s is of another site: it names the instance %s, and this directory was that of %s", s.state.path("muster.db"), name, had.Instance).Because(muster.ReasonOtherSite).
			WithHint("put the right store back, or restore a backup with `muster restore FILE --replace --state %s`; nothing was started", s.cfg.State)
	}
	if had != nil && had.Epoch > epoch {
		return muster.Errorf(muster.EConflict, "%s is older than what was done here since: it is of epoch %d, the directory of epoch %d", s.state.path("muster.db"), epoch, had.Epoch).Because(muster.ReasonRecordsOlder).
			WithHint("a store that was copied by hand is not a backup: use `muster restore FILE --replace --state %s`; nothing was started", s.cfg.State)
	}
	authority, err := metaOf(ctx, s.db, metaAuthority)
	if err == nil && had == nil && authority != "" {
		err = checkKeys(s.cfg.State, authority)
	}
	if err != nil {
		return err
	}
	s.instance, s.epoch = name, epoch
	if len(s.cfg.Local) > 0 {
		host := hostInstances{instancesDir}
		if err := errors.Join(host.rival(name, s.cfg.State), host.orphans()); err != nil {
			return err
		}
	}
	if err := s.refuseUnknown(ctx); err != nil {
		return err
	}
	return s.refuseUnknownBoots(ctx)
}

// refuseUnknown looks whether machines run that the records do not know, or know less of
// than the machines do.
func (s *Server) refuseUnknown(ctx context.Context) error {
	unknown, err := unknownMachines(ctx, s.db, s.cfg.State, s.instance, s.epoch)
	if err != nil || len(unknown) == 0 {
		return err
	}
	return muster.Errorf(muster.EConflict, "machines run here that the records do not know: %s", foundNames(unknown)).Because(muster.ReasonUnknownMachines).
		WithHint("the records are older than the machines: restore newer ones with `muster restore FILE --replace --state %s`; or adopt what runs, see `muster adopt --state %s`; or end these machines with `muster cleanup --orphans --state %s --yes`; until then nothing is started, given or ended", s.cfg.State, s.cfg.State, s.cfg.State)
}

// unknownMachines are those that run for a cluster that the records do not know, or for
// an attempt that the records have not made yet, or that were started by records of a later
// epoch: intent is always recorded first.
func unknownMachines(ctx context.Context, db *store.DB, dir, name string, epoch int64) ([]local.Found, error) {
	running, err := local.FindRunning(dir, name)
	if muster.CodeOf(err) == muster.EConflict { // notes of another version
		return nil, err
	}
	if err != nil || len(running) == 0 {
		return nil, nil //nolint:nilerr // the provider reports why it cannot work here
	}
	var unknown []local.Found
	err = db.View(ctx, muster.System(), func(tx *store.Tx) error {
		for _, f := range running {
			if f.Trial {
				continue // for nobody: the provider ends it
			}
			if max(f.Epoch, muster.EpochOf(f.Attempt)) > epoch {
				unknown = append(unknown, f)
				continue
			}
			m, err := tx.Machine(f.Machine)
			switch {
			case muster.CodeOf(err) == muster.ENotFound:
				unknown = append(unknown, f)
				continue
			case err != nil:
				return err
			}
			if f.Cluster == "" { // its note is gone: whose it is cannot be known
				unknown = append(unknown, f)
				continue
			}
			c, err := tx.Cluster(f.Cluster)
			switch {
			case muster.CodeOf(err) == muster.ENotFound:
				unknown = append(unknown, f)
			case err != nil:
				return err
			case m.Cluster == c.ID && f.Attempt > m.Attempt, m.Cluster != c.ID && c.Phase != muster.ClusterDeleted && f.Attempt > highest(tx, c.ID):
				unknown = append(unknown, f)
			}
		}
		return nil
	})
	return unknown, err
}

// highest is the highest attempt of a cluster's nodes.
func highest(tx *store.Tx, id muster.ClusterID) (n int64) {
	nodes, err := tx.Nodes(id)
	if err != nil {
		return 0
	}
	for _, node := range nodes {
		n = max(n, node.Attempt)
	}
	return n
}

// metaOf is what the store says of the site; "" when it does not.
func metaOf(ctx context.Context, db *store.DB, key string) (text string, err error) {
	err = db.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		text, err = tx.Meta(key)
		return err
	})
	if muster.CodeOf(err) == muster.ENotFound {
		err = nil
	}
	return text, err
}

func epochOf(ctx context.Context, db *store.DB) (int64, error) {
	var text string
	err := db.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		text, err = tx.Meta(metaEpoch)
		return err
	})
	if muster.CodeOf(err) == muster.ENotFound {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, muster.Errorf(muster.ECorrupt, "the epoch of the records is %.20q", text).Because(muster.ReasonStoreDamaged).WithHint("restore a backup: `muster restore`")
	}
	return n, nil
}

// settle writes down, once its parts are open, whose directory this is.
func (s *Server) settle(ctx context.Context) error {
	authority, err := authorityOf(s.cfg.State)
	if err != nil {
		return err
	}
	if len(s.cfg.Local) > 0 {
		host := hostInstances{instancesDir}
		if err := host.note(s.instance, s.cfg.State); err != nil {
			return err
		}
		s.closes(func() error { // a server that leaves nothing running leaves no name either
			if list, err := local.FindRunning(s.cfg.State, s.instance); err != nil || len(list) > 0 {
				return nil //nolint:nilerr // who cannot look keeps the name
			}
			return host.forget(s.instance)
		})
	}
	now := site{Instance: s.instance, Epoch: s.epoch, Authority: authority}
	if had, err := readSite(s.cfg.State); err != nil || had == nil || *had != now {
		if err := now.write(s.cfg.State); err != nil {
			return err
		}
	}
	if was, err := metaOf(ctx, s.db, metaAuthority); err != nil || was == authority {
		return err
	}
	return s.db.Update(ctx, muster.System(), func(tx *store.Tx) error { return tx.SetMeta(metaAuthority, authority) })
}
