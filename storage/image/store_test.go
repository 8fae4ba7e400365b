package image

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	muster "github.com/muster-hpc/muster"
)

func open(t *testing.T, options ...Option) *Store {
	t.Helper()
	s, err := Open(t.TempDir(), nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put publishes an image with the given root file system under a name.
func put(t *testing.T, s *Store, name, root string) *muster.Image {
	t.Helper()
	return putImage(t, s, sample(name, []byte(root)), root)
}

func putImage(t *testing.T, s *Store, m *muster.Image, root string) *muster.Image {
	t.Helper()
	w, err := s.newWorkspace("test")
	if err != nil {
		t.Fatal(err)
	}
	out := w.path("out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, rootFile), []byte(root), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := s.publish(out, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.setAlias(m.Name, alias{ID: got.ID, Recipe: got.Recipe}); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	return got
}

// damage writes to a published file as a careless administrator would.
func damage(t *testing.T, s *Store, m *muster.Image, content string) {
	t.Helper()
	name := filepath.Join(s.Path(m.ID), rootFile)
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestListAndResolve(t *testing.T) {
	t.Parallel()
	s := open(t)
	hpc, raw := put(t, s, "hpc", "h"), put(t, s, "raw", "r")
	list, err := s.List()
	if err != nil || len(list) != 2 {
		t.Fatalf("list = %v, %v", list, err)
	}
	for _, ref := range []string{"hpc", string(hpc.ID), hpc.ID.Hex(), hpc.ID.Short(), strings.ToUpper(hpc.ID.Short()), "sha256:" + hpc.ID.Short()} {
		if m, err := s.Resolve(ref); err != nil || m.ID != hpc.ID {
			t.Errorf("%s: %v, %v", ref, m, err)
		}
	}
	for ref, hint := range map[string]string{"hcp": `"hpc"`, "nothing": "hpc, raw", hpc.ID.Hex()[:5]: "hpc, raw", "../raw": "", "": ""} {
		_, err := s.Resolve(ref)
		var me *muster.Error
		if !asError(err, &me) || me.Code != muster.ENotFound || !strings.Contains(me.Hint, hint) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if names := s.Names(); names["raw"] != raw.ID || len(names) != 2 {
		t.Errorf("names = %v", names)
	}
}

func TestResolveAmbiguous(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, end := range []string{"0", "1"} {
		if err := os.Mkdir(filepath.Join(s.dir, strings.Repeat("a", 63)+end), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Resolve("aaaaaa"); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("err = %v", err)
	}
}

func TestCorruptedImageIsRefusedBeforeBoot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, harm := range map[string]func(t *testing.T, s *Store, m *muster.Image){
		"a byte": func(t *testing.T, s *Store, m *muster.Image) { damage(t, s, m, "BYTES") },
		"cut":    func(t *testing.T, s *Store, m *muster.Image) { damage(t, s, m, "byt") },
		"gone":   func(t *testing.T, s *Store, m *muster.Image) { _ = os.Remove(filepath.Join(s.Path(m.ID), rootFile)) },
		"manifest": func(t *testing.T, s *Store, m *muster.Image) {
			_ = os.WriteFile(filepath.Join(s.Path(m.ID), manifestFile), []byte("{}"), 0o600)
		},
		"times set": func(t *testing.T, s *Store, m *muster.Image) {
			name := filepath.Join(s.Path(m.ID), rootFile)
			before, _ := os.Stat(name)
			damage(t, s, m, "BYTES")
			if err := os.Chtimes(name, before.ModTime(), before.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			m := put(t, s, "hpc", "bytes")
			_, f, err := s.OpenForBoot(ctx, m.ID)
			if err != nil {
				t.Fatal(err)
			}
			if data, _ := io.ReadAll(f); string(data) != "bytes" {
				t.Errorf("read %q", data)
			}
			_ = f.Close()
			harm(t, s, m)
			if _, _, err := s.OpenForBoot(ctx, m.ID); muster.CodeOf(err) != muster.ECorrupt {
				t.Errorf("boot: err = %v", err)
			}
			if _, err := s.Verify(ctx, m.ID); muster.CodeOf(err) != muster.ECorrupt {
				t.Errorf("verify: err = %v", err)
			}
		})
	}
}

func TestWarmBootReadsNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	m := put(t, s, "hpc", "bytes")
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // taking a digest would fail now
	_, f, err := s.OpenForBoot(ctx, m.ID)
	if err != nil {
		t.Fatalf("a known image is read again: %v", err)
	}
	_ = f.Close()
	// Verify always reads.
	if _, err := s.Verify(ctx, m.ID); err == nil {
		t.Error("verify read nothing")
	}
	// Whoever wrote to the file, even the same bytes, has it read again.
	damage(t, s, m, "bytes")
	if _, _, err := s.OpenForBoot(ctx, m.ID); err == nil {
		t.Error("a changed file is not read")
	}
	if _, f, err = s.OpenForBoot(context.Background(), m.ID); err != nil {
		t.Errorf("the same bytes are the same image: %v", err)
	} else {
		_ = f.Close()
	}
}

// users is a Users that knows one image.
type users struct {
	id muster.ImageID
	by []string
}

func (users) Derived(context.Context) (map[string][]string, error) { return nil, nil }

func (u users) ImageUsers(_ context.Context, id muster.ImageID) ([]string, error) {
	if id == u.id {
		return u.by, nil
	}
	return nil, nil
}

func TestRemove(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := open(t)
	hpc, raw := put(t, s, "hpc", "h"), put(t, s, "raw", "r")
	inUse := users{hpc.ID, []string{"c-1 (cfd)"}}
	err := s.Remove(ctx, hpc.ID, inUse)
	if muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), "c-1 (cfd)") {
		t.Errorf("err = %v", err)
	}
	if _, err := s.Verify(ctx, hpc.ID); err != nil {
		t.Errorf("an image in use was touched: %v", err)
	}
	if err := s.Remove(ctx, raw.ID, inUse); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, raw.ID, inUse); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("err = %v", err)
	}
	if _, err := s.Resolve("raw"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("its name stays: %v", err)
	}
	if err := s.Remove(ctx, "sha256:../../etc", nil); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("err = %v", err)
	}
	left, _ := os.ReadDir(filepath.Join(s.dir, "tmp"))
	if len(left) != 0 {
		t.Errorf("left in tmp: %v", left)
	}
}

// When the newest image of a name goes, the name means the newest that is left.
func TestRemoveNewestGivesNameBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := open(t)
	var ids []muster.ImageID
	for i, version := range []string{"1", "2", "3"} {
		m := sample("hpc", []byte(version))
		m.Created = m.Created.Add(time.Duration(i) * time.Hour)
		m.Packages[0].Version = version
		m.ID = contentID(m.Recipe, m.Base, m.Added, m.Architecture, m.Packages)
		ids = append(ids, putImage(t, s, m, version).ID)
	}
	for i := len(ids) - 1; i >= 0; i-- {
		if m, err := s.Resolve("hpc"); err != nil || m.ID != ids[i] {
			t.Fatalf("hpc means %v, want image %d: %v", m, i, err)
		}
		if err := s.Remove(ctx, ids[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Resolve("hpc"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("its name stays: %v", err)
	}
}

func TestPublishKeepsASoundImageAndReplacesABrokenOne(t *testing.T) {
	t.Parallel()
	s := open(t)
	m := put(t, s, "hpc", "bytes")
	first, _ := os.Stat(filepath.Join(s.Path(m.ID), rootFile))
	again := put(t, s, "hpc", "other")
	second, _ := os.Stat(filepath.Join(s.Path(m.ID), rootFile))
	if !os.SameFile(first, second) || again.Files[0].SHA256 != m.Files[0].SHA256 {
		t.Error("a sound image of the same content was replaced")
	}
	damage(t, s, m, "BYTES")
	put(t, s, "hpc", "other")
	if _, err := s.Verify(context.Background(), m.ID); err != nil {
		t.Errorf("a broken image was kept: %v", err)
	}
}

func TestSweepRemovesOnlyWhatTheDeadLeft(t *testing.T) {
	t.Parallel()
	s := open(t)
	live, err := s.newWorkspace("build")
	if err != nil {
		t.Fatal(err)
	}
	dead, err := s.newWorkspace("build")
	if err != nil {
		t.Fatal(err)
	}
	_ = dead.hold.Close() // its builder was killed
	if _, err := Open(s.dir, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(live.dir); err != nil {
		t.Errorf("a live build was removed: %v", err)
	}
	if _, err := os.Stat(dead.dir); !os.IsNotExist(err) {
		t.Errorf("a dead build stays: %v", err)
	}
	if err := live.close(); err != nil {
		t.Error(err)
	}
}

func TestListLeavesBrokenOut(t *testing.T) {
	t.Parallel()
	s := open(t)
	m := put(t, s, "hpc", "h")
	if err := os.Mkdir(filepath.Join(s.dir, strings.Repeat("0", 64)), 0o700); err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	if err != nil || len(list) != 1 || list[0].ID != m.ID {
		t.Errorf("list = %v, %v", list, err)
	}
}

func TestLockWaitsAndGivesUp(t *testing.T) {
	t.Parallel()
	s := open(t)
	unlock, err := s.lock("x")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	waited := false
	if _, err := s.lockContext(ctx, "x", func() { waited = true }); err == nil || !waited {
		t.Errorf("err = %v, waited %v", err, waited)
	}
	unlock()
	if unlock, err = s.lock("x"); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// Any mix of publishing, removing, damaging and verifying leaves a store in
// which each image that opens has the bytes that were published.
func TestStoreNeverOpensWrongBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		s, err := Open(dir, nil)
		if err != nil {
			rt.Fatal(err)
		}
		names := []string{"ax", "bx"}
		right := map[string]string{}
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "name")
			m := sample(name, nil)
			switch rapid.SampledFrom([]string{"put", "damage", "remove", "open"}).Draw(rt, "step") {
			case "put":
				got := put(t, s, name, "root of "+name)
				right[name] = got.Files[0].SHA256
			case "damage":
				if _, err := s.Show(m.ID); err == nil {
					damage(t, s, m, "damaged "+name)
				}
			case "remove":
				if err := s.Remove(context.Background(), m.ID, nil); err != nil && muster.CodeOf(err) != muster.ENotFound {
					rt.Fatal(err)
				}
			case "open":
				_, f, err := s.OpenForBoot(context.Background(), m.ID)
				if err != nil {
					continue
				}
				data, _ := io.ReadAll(f)
				_ = f.Close()
				if digest(data) != right[name] {
					rt.Fatalf("%s opens with wrong bytes", name)
				}
			}
		}
	})
}

func TestTimingsGiveAnETA(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, sec := range []time.Duration{10, 20, 30} {
		s.learn("hpc", []StageTime{{"install", muster.Duration(sec * time.Second)}, {"compress", muster.Duration(4 * time.Second)}})
	}
	var mu sync.Mutex
	var got []Progress
	track := s.follow("hpc", func(p Progress) { mu.Lock(); got = append(got, p); mu.Unlock() })
	track.enter("install")
	track.enter("compress")
	done := track.end()
	mu.Lock()
	defer mu.Unlock()
	if len(got) < 2 || got[0].ETA.Round(time.Second) != 24*time.Second || got[len(got)-1].ETA.Round(time.Second) != 4*time.Second {
		t.Errorf("progress = %v", got)
	}
	if !slices.ContainsFunc(done, func(d StageTime) bool { return d.Stage == "compress" }) {
		t.Errorf("done = %v", done)
	}
}

func TestOpenSaysWhatToDoWithoutPermission(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "store"), nil); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("err = %v", err)
	}
}
