package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/lockfile"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/backup"
)

// served is a state directory in which a server was, with a fact in its store.
func served(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	name, err := instance(t.Context(), db)
	if err = errors.Join(err, db.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return tx.SetMeta("fact", "one") }), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.OpenAuthority(filepath.Join(dir, "keys"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.OpenSigning(filepath.Join(dir, "keys"), nil); err != nil {
		t.Fatal(err)
	}
	authority, err := authorityOf(dir)
	if err = errors.Join(err, site{Instance: name, Epoch: 1, Authority: authority}.write(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func fact(t *testing.T, dir string) (value string, epoch int64) {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(dir, "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) {
		value, err = tx.Meta("fact")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if epoch, err = epochOf(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return value, epoch
}

// redeem uses a one-time token of the store in dir.
func redeem(t *testing.T, dir string, token store.Join) (j store.Join, err error) {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(dir, "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(t.Context(), muster.System(), func(tx *store.Tx) (err error) {
		j, err = tx.UseJoin(token.Hash, time.Now())
		return err
	})
	return j, err
}

// A backup is of one moment, also of a store that nobody closed; a restore begins an
// epoch above all that was here, and puts what was there aside.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	dir := served(t)
	db, err := store.Open(t.Context(), filepath.Join(dir, "muster.db"), store.Options{}) // a server
	if err != nil {
		t.Fatal(err)
	}
	set := func(v string) {
		if err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return tx.SetMeta("fact", v) }); err != nil {
			t.Fatal(err)
		}
	}
	set("two") // in its log
	token := store.Join{Hash: [32]byte{1}, Machine: "m1", Cluster: "c-2345678923", Node: "n01", Attempt: 1, Expires: time.Now().Add(time.Hour)}
	if err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		c := muster.Cluster{ID: token.Cluster, Name: "cfd", Owner: "alice", Project: "p", Phase: muster.ClusterBuilding, Created: time.Now()}
		return errors.Join(tx.PutCluster(c, ""), tx.PutJoin(token))
	}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b")
	if _, err := Backup(t.Context(), dir, file, "", "test"); err != nil {
		t.Fatal(err)
	}
	set("three")
	if _, _, err := Restore(t.Context(), file, "", dir, true); err == nil {
		t.Fatal("a server runs")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Restore(t.Context(), file, "", dir, false); muster.CodeOf(err) != muster.EConflict {
		t.Fatalf("over a store: %v", err)
	}
	_, aside, err := Restore(t.Context(), file, "", dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if v, epoch := fact(t, dir); v != "two" || epoch != 2 {
		t.Errorf("%q in epoch %d", v, epoch)
	}
	if _, err := redeem(t, dir, token); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("a one-time token from before: %v", err)
	}
	if _, err := redeem(t, aside, token); err != nil {
		t.Errorf("it was one: %v", err)
	}
	if v, _ := fact(t, aside); v != "three" {
		t.Errorf("aside: %q", v)
	}
	if err := checkBefore(dir); err != nil {
		t.Error(err)
	}
	for _, left := range []string{stagePrefix + "*", restoringFile} {
		if list, _ := filepath.Glob(filepath.Join(dir, left)); len(list) > 0 {
			t.Errorf("%q are left", list)
		}
	}
	if _, err := Backup(t.Context(), dir, file, "", "test"); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("over a file: %v", err)
	}
}

// Cut off after any of its steps, a restore is told by the next start, and is made again.
func TestARestoreThatIsCutOff(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "b")
	first := served(t)
	if _, err := Backup(t.Context(), first, file, "", "test"); err != nil {
		t.Fatal(err)
	}
	for cut := range len(moves("", "", "")) + 1 {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"muster.db", siteFile} {
			if err := os.Chmod(filepath.Join(dir, f), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := keepNewer(dir, newer{Epoch: 7}); err != nil {
			t.Fatal(err)
		}
		// As Restore does, killed after so many moves.
		stage, aside := filepath.Join(dir, stagePrefix+"x"), filepath.Join(dir, "replaced-x")
		c, err := func() (*backup.Contents, error) {
			f, err := os.Open(file)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return backup.Read(f, "", stage)
		}()
		if err = errors.Join(err, os.Mkdir(aside, 0o700)); err != nil {
			t.Fatal(err)
		}
		if err = errors.Join(prepareRestore(t.Context(), dir, stage, c), begin(dir, stage, file)); err != nil {
			t.Fatal(err)
		}
		for _, m := range moves(dir, stage, aside)[:cut] {
			if err := m.make(); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkBefore(dir); err == nil || !strings.Contains(err.Error(), "restore") {
			t.Errorf("cut after %d steps, a server starts: %v", cut, err)
		}
		if _, _, err := Restore(t.Context(), file, "", dir, false); err != nil {
			t.Errorf("cut after %d steps: %v", cut, err)
			continue
		}
		if err := checkBefore(dir); err != nil {
			t.Errorf("cut after %d steps, then restored: %v", cut, err)
		}
		if v, epoch := fact(t, dir); v != "one" || epoch <= 7 {
			t.Errorf("cut after %d steps: %q in epoch %d", cut, v, epoch)
		}
		if _, err := os.Stat(stage); err == nil {
			t.Errorf("cut after %d steps: secrets are left in %s", cut, stage)
		}
	}
}

// Each loss is refused before anything is made in its stead, and says what to do.
func TestLostState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose  func(dir string) error
		why   muster.Reason
		names string
	}{
		"nothing":            {func(string) error { return nil }, "", ""},
		"the store":          {func(d string) error { return os.Remove(filepath.Join(d, "muster.db")) }, muster.ReasonStoreMissing, ""},
		"its bytes":          {func(d string) error { return os.Truncate(filepath.Join(d, "muster.db"), 0) }, muster.ReasonStoreMissing, ""},
		"the keys":           {func(d string) error { return os.RemoveAll(filepath.Join(d, "keys")) }, muster.ReasonKeysMissing, ""},
		"the keys that sign": {func(d string) error { return os.Remove(filepath.Join(d, "keys", "certificates.json")) }, muster.ReasonKeysMissing, ""},
		"other keys": {func(d string) error {
			if err := os.RemoveAll(filepath.Join(d, "keys")); err != nil {
				return err
			}
			_, err := pki.OpenAuthority(filepath.Join(d, "keys"), nil)
			_, err2 := pki.OpenSigning(filepath.Join(d, "keys"), nil)
			return errors.Join(err, err2)
		}, muster.ReasonKeysMissing, ""},
		"the store of bare machines": {func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "muster.db")), boots(d, "r1-n07", "c-2345678923", 3))
		}, muster.ReasonStoreMissing, "r1-n07 (c-2345678923, attempt 3)"},
		"all but notes of bare machines": {func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "muster.db")), os.Remove(filepath.Join(d, siteFile)), boots(d, "r1-n07", "c-2345678923", 3))
		}, muster.ReasonStoreMissing, "r1-n07 (c-2345678923, attempt 3)"},
		"all but keys": {func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "muster.db")), os.Remove(filepath.Join(d, siteFile)))
		}, muster.ReasonStoreMissing, ""},
		"all but copies of clusters": {func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "muster.db")), os.Remove(filepath.Join(d, siteFile)), os.RemoveAll(filepath.Join(d, "keys")),
				os.MkdirAll(filepath.Join(d, copiesDir), 0o700), os.WriteFile(filepath.Join(d, copiesDir, "c-2345678923.json"), nil, 0o600))
		}, muster.ReasonStoreMissing, ""},
		"what it is": {func(d string) error { return os.Truncate(filepath.Join(d, siteFile), 3) }, muster.ReasonKeysDamaged, siteFile},
		"the program that wrote it": {func(d string) error {
			return os.WriteFile(filepath.Join(d, siteFile), []byte(`{"document":"site/2","content":{}}`), 0o600)
		}, muster.ReasonOtherVersion, "site/2"},
		"all but notes of another version": {func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "muster.db")), os.Remove(filepath.Join(d, siteFile)), os.MkdirAll(filepath.Join(d, "metal", "boots"), 0o700),
				os.WriteFile(filepath.Join(d, "metal", "boots", "m1.json"), []byte(`{"machine":"m1"}`), 0o600))
		}, muster.ReasonOtherVersion, "m1.json"},
	} {
		dir := served(t)
		if err := c.lose(dir); err != nil {
			t.Fatal(err)
		}
		err := checkBefore(dir)
		if muster.ReasonOf(err) != c.why || err != nil && !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %s: %v", name, muster.ReasonOf(err), err)
		}
	}
	if err := checkBefore(t.TempDir()); err != nil {
		t.Errorf("a first start: %v", err)
	}
}

// boots leaves the note of a bare machine that runs for a cluster.
func boots(dir, machine, cluster string, attempt int) error {
	at := filepath.Join(dir, "metal", "boots")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	note := fmt.Sprintf(`{"document":"metal-boot/1","content":{"machine":%q,"number":"b-1","kind":"boot","attempt":%d,"for":%q,"step":"running"}}`, machine, attempt, cluster)
	return os.WriteFile(filepath.Join(at, machine+".json"), []byte(note), 0o600)
}

// A bare machine that runs for a cluster that the records do not know stops the start, and
// one that is done does not.
func TestUnknownBoots(t *testing.T) {
	t.Parallel()
	dir := served(t)
	if err := boots(dir, "r1-n07", "c-2345678923", 3); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Config{State: dir, Fake: 1})
	if muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), "r1-n07 (c-2345678923, attempt 3)") {
		t.Errorf("beside a machine that nobody knows: %v", err)
	}
	note := filepath.Join(dir, "metal", "boots", "r1-n07.json")
	b, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(note, []byte(strings.Replace(string(b), "running", "done", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{State: dir, Fake: 1})
	if err != nil {
		t.Fatalf("beside a boot that is over: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What a restore that was killed left, with the site's secrets, goes at the next start, also
// one that is refused; but not under a backup that is being taken.
func TestStagesGoAtAStart(t *testing.T) {
	t.Parallel()
	dir := served(t)
	secret := filepath.Join(dir, stagePrefix+"x", "keys")
	start := func() bool {
		t.Helper()
		if err := os.MkdirAll(secret, 0o700); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(t.Context(), Config{State: dir, Fake: 1}); err == nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return absent(filepath.Dir(secret))
	}
	one, err := lockfile.Take(t.Context(), filepath.Join(dir, ".backup.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if start() {
		t.Error("a stage of a backup under way was removed")
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if !start() {
		t.Error("a start leaves a stage")
	}
	if err := os.Remove(filepath.Join(dir, "muster.db")); err != nil {
		t.Fatal(err)
	}
	if !start() {
		t.Error("a start that is refused leaves a stage")
	}
}
