package control_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

func builtOn(t *testing.T, day string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	return at.Add(12 * time.Hour)
}

// oldSite has three contents of hpc: of June, of November, and the newest, of January 2026.
func oldSite(t *testing.T, o controltest.Options) (s *controltest.Site, june, november *muster.Image) {
	t.Helper()
	s = controltest.Start(t, o)
	s.Images.Change("hpc", func(img *muster.Image) {
		for i := range 5 {
			img.Packages = append(img.Packages, muster.ImagePackage{Name: fmt.Sprintf("lib%d", i), Version: "2.10-1", Architecture: "amd64"})
		}
	})
	june = s.Images.Content("hpc", builtOn(t, "2025-06-03"))
	june.Packages = nil
	for i := range 5 {
		june.Packages = append(june.Packages, muster.ImagePackage{Name: fmt.Sprintf("lib%d", i), Version: "2.9-1", Architecture: "amd64"})
	}
	november = s.Images.Content("hpc", builtOn(t, "2025-11-20"), "extra", "1")
	return s, june, november
}

// Who asks for an old content is told how old it is, and what is newer since, with and
// without --dry-run; the cluster runs it, and those of the name run the newest.
func TestCreateOfAnOldImage(t *testing.T) {
	t.Parallel()
	s, june, november := oldSite(t, controltest.Options{Machines: 8, Build: true})
	create := func(name, img string, dry bool) wire.Created {
		t.Helper()
		call := yaml(fmt.Sprintf("name: %s; nodes: 1; head: shared; image: %q", name, img))
		call.DryRun = dry
		out, err := s.Control.CreateCluster(t.Context(), root(), call)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for i, dry := range []bool{true, false} {
		text := strings.Join(create(fmt.Sprint("old", i), "hpc@2025-06", dry).Answer.Notices, "\n")
		ref := "hpc@" + june.ID.Short()
		for _, want := range []string{
			ref + " was built on 2025-06-03, 213 days before the newest of hpc (2026-01-02)",
			"5 packages have newer versions", "lib0 2.10-1 (here 2.9-1), lib1", "lib2 2.10-1 (here 2.9-1), and 2 more", "`muster image compare " + ref + " hpc`",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %q", want, text)
			}
		}
		text = strings.Join(create(fmt.Sprint("nov", i), "hpc@"+november.ID.Short(), dry).Answer.Notices, "\n")
		if !strings.Contains(text, "none of its packages has a newer version") {
			t.Errorf("%q", text)
		}
		for _, img := range []string{"hpc", "hpc@2031-01-01"} {
			if text := strings.Join(create(fmt.Sprintf("new%d%d", len(img), i), img, dry).Answer.Notices, "\n"); strings.Contains(text, "built on") {
				t.Errorf("the newest is old: %q", text)
			}
		}
	}
	for img, want := range map[string]muster.Reason{
		"hpc@2025-06-02": muster.ReasonNoSuchImage, "hpc@2025-13": muster.ReasonBadValue, "hpc@sha256:abc": muster.ReasonBadValue,
		"hcp@2025-06": muster.ReasonNoSuchImage, "hpc@c0ffee": muster.ReasonAmbiguous, "h@pc@2025-06": muster.ReasonBadValue, "H!@2025-06": muster.ReasonBadName,
	} {
		_, err := s.Control.CreateCluster(t.Context(), root(), yaml(fmt.Sprintf("name: bad; nodes: 1; image: %q", img)))
		if e := code(t, err, muster.EInvalid); len(e.Problems) != 1 || e.Problems[0].Field != "image" || e.Problems[0].Reason != want || e.Problems[0].Hint == "" {
			t.Errorf("%s: %+v", img, e.Problems)
		}
	}
}

// What names a content keeps it: clusters that wait, templates, programs, experiments,
// clusters of lost records. A name alone keeps none.
func TestWhatUsesAnOldImage(t *testing.T) {
	t.Parallel()
	var lost *muster.Image
	s, june, november := oldSite(t, controltest.Options{Machines: 2, Control: func(c *control.Config) {
		c.Versions = image.KeepVersions{Newest: 1, For: -1}
		c.AbandonedImages = nil
	}})
	lost = s.Images.Content("hpc", builtOn(t, "2025-12-01"))
	s.User("alice", "bio")
	alice, bob := member("alice", "bio"), member("bob", "cfd")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	uses := func(id muster.ImageID) []string {
		t.Helper()
		list, err := s.Control.ImageUsers().ImageUsers(t.Context(), id)
		must(err)
		return list
	}
	_, err := s.Control.CreateCluster(t.Context(), alice, yaml("name: runs; nodes: 1; head: shared; image: hpc@2025-06"))
	must(err)
	if got := uses(june.ID); len(got) != 1 || !strings.HasPrefix(got[0], "runs (") {
		t.Errorf("used by %v", got)
	}
	template := muster.Template{Name: "old", Project: "bio", Owner: "alice", Spec: muster.Spec{Image: "hpc@2025-11-20"}}
	plain := muster.Template{Name: "new", Project: "bio", Owner: "alice", Spec: muster.Spec{Image: "hpc"}, Image: lost.ID}
	must(s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		if err := tx.PutTemplate(plain, ""); err != nil {
			return err
		}
		return tx.PutTemplate(template, "")
	}))
	_, err = s.Control.AddProgram(t.Context(), alice, wire.ProgramRequest{Name: "md", Image: "hpc@" + november.ID.Short(), Run: "./md"})
	must(err)
	_, err = s.Control.AddProgram(t.Context(), alice, wire.ProgramRequest{Name: "any", Image: "hpc", Run: "./md"})
	must(err)
	_, err = s.Control.StartExperiment(t.Context(), alice, wire.ExperimentRequest{Text: "name: ab\ncluster: {nodes: 1, head: shared}\nmatrix:\n  program: any\n  image: [hpc, hpc@2025-11]\nlaunches: 4\n"})
	must(err)
	got := uses(november.ID)
	if len(got) != 3 || got[0] != "template bio/old" || got[1] != "program bio/md" || !strings.HasPrefix(got[2], "experiment ab (") {
		t.Errorf("used by %v", got)
	}
	if got := uses(lost.ID); len(got) != 0 {
		t.Errorf("used by %v", got)
	}
	list, err := s.Control.ImageVersions(t.Context(), bob, "hpc", wire.Page{})
	must(err)
	kept := func(i int) string { return strings.Join(list.Versions[i].Kept, " ") }
	if len(list.Versions) != 4 || kept(0) != "current newest" || kept(1) != "" || kept(2) != "in-use" || kept(3) != "in-use" || !list.Versions[0].Current || list.Versions[1].Current {
		t.Errorf("%+v", list.Versions)
	}
	if u := list.Versions[2].InUse; len(u) != 0 {
		t.Errorf("bob sees who uses it: %v", u)
	}
	if one, err := s.Control.ImageVersions(t.Context(), alice, "hpc@2025-06", wire.Page{}); err != nil || len(one.Versions) != 1 || one.Versions[0].ID != string(june.ID) || len(one.Versions[0].InUse) != 1 || one.Rule.Newest != 1 || one.Rule.Age != 0 {
		t.Errorf("%+v, %v", one, err)
	}
	// Page by page it is the same list.
	var refs []string
	page := wire.Page{Limit: 1}
	for {
		part, err := s.Control.ImageVersions(t.Context(), alice, "hpc", page)
		must(err)
		for _, v := range part.Versions {
			refs = append(refs, v.Ref)
		}
		if page.After = part.Next; page.After == "" {
			break
		}
	}
	if !slices.EqualFunc(refs, list.Versions, func(a string, b wire.ImageVersion) bool { return a == b.Ref }) {
		t.Errorf("pages %v", refs)
	}
	// The rule removes what nothing keeps, and that is on record.
	must(s.Control.PruneVersions(t.Context()))
	if s.Images.Rule == nil || *s.Images.Rule != (image.KeepVersions{Newest: 1, For: -1}) {
		t.Errorf("pruned by %+v", s.Images.Rule)
	}
	if _, err := s.Images.Resolve(string(lost.ID)); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("it is there: %v", err)
	}
	for _, img := range []*muster.Image{june, november} {
		if _, err := s.Images.Resolve(string(img.ID)); err != nil {
			t.Error(err)
		}
	}
	must(s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		list, err := tx.Audits(store.AuditFilter{Kind: muster.AuditImage})
		if err == nil && (len(list) != 1 || list[0].Object != string(lost.ID)) {
			t.Errorf("on record: %+v", list)
		}
		return err
	}))
}

// Clusters that run and are not in the records keep their images.
func TestAbandonedClustersKeepImages(t *testing.T) {
	t.Parallel()
	var id muster.ImageID
	s, june, _ := oldSite(t, controltest.Options{Control: func(c *control.Config) {
		c.AbandonedImages = func(context.Context) (map[muster.ImageID][]string, error) {
			return map[muster.ImageID][]string{id: {"lost (c-lost)"}}, nil
		}
	}})
	id = june.ID
	if got, err := s.Control.ImageUsers().ImageUsers(t.Context(), june.ID); err != nil || len(got) != 1 || got[0] != "lost (c-lost)" {
		t.Errorf("used by %v, %v", got, err)
	}
}

// Administrators pin, and pins are shown; other people do not pin.
func TestPinAnImage(t *testing.T) {
	t.Parallel()
	s, june, _ := oldSite(t, controltest.Options{})
	_, err := s.Control.PinImage(t.Context(), member("alice", "bio"), "hpc@2025-06", wire.PinImage{})
	code(t, err, muster.EForbidden)
	_, err = s.Control.PinImage(t.Context(), root(), "hpc@2025-06", wire.PinImage{Reason: strings.Repeat("x", 201)})
	code(t, err, muster.EInvalid)
	p, err := s.Control.PinImage(t.Context(), root(), "hpc@2025-06", wire.PinImage{Reason: "release\n3"})
	if err != nil || p.ID != string(june.ID) || p.Status != "pinned" {
		t.Fatalf("%+v, %v", p, err)
	}
	list, err := s.Control.ImageVersions(t.Context(), member("alice", "bio"), "hpc", wire.Page{})
	if err != nil {
		t.Fatal(err)
	}
	if v := list.Versions[2]; v.Pin == nil || v.Pin.By != "root" || strings.Contains(v.Pin.Reason, "\n") || !slices.Contains(v.Kept, "pinned") {
		t.Errorf("%+v", v)
	}
	for _, want := range []string{"unpinned", "not-pinned"} {
		if p, err := s.Control.UnpinImage(t.Context(), root(), p.Ref); err != nil || p.Status != want {
			t.Errorf("%+v, %v; want %s", p, err, want)
		}
	}
}

func TestCompareImages(t *testing.T) {
	t.Parallel()
	s, june, _ := oldSite(t, controltest.Options{})
	d, err := s.Control.CompareImages(t.Context(), member("alice", "bio"), "hpc@2025-06", "hpc")
	if err != nil {
		t.Fatal(err)
	}
	if d.From.ID != string(june.ID) || len(d.Newer) != 5 || d.Newer[0].From != "2.9-1" || d.Newer[0].To != "2.10-1" || len(d.Added) != 1 || len(d.Removed)+len(d.Older)+d.Same != 0 {
		t.Errorf("%+v", d)
	}
}

// A program of an image runs on clusters of any of its contents; one of a content on those
// alone that have it.
func TestProgramsOfOldImages(t *testing.T) {
	t.Parallel()
	s, june, _ := oldSite(t, controltest.Options{Machines: 8, Build: true})
	s.User("ada", "default")
	clusters := map[string]muster.ClusterID{}
	for name, img := range map[string]string{"fresh": "hpc", "old": "hpc@2025-06", "nov": "hpc@2025-11"} {
		out, err := s.Control.CreateCluster(t.Context(), root(), yaml(fmt.Sprintf("name: %s; nodes: 1; head: shared; image: %q; users: [ada]", name, img)))
		if err != nil {
			t.Fatal(err)
		}
		clusters[name] = out.ID
	}
	for name, img := range map[string]string{"any": "hpc", "june": "hpc@" + june.ID.Short(), "before": "hpc@2025-07"} {
		if _, err := s.Control.AddProgram(t.Context(), root(), wire.ProgramRequest{Name: name, Project: "default", Image: img, Run: "./md"}); err != nil {
			t.Fatal(err)
		}
	}
	for cluster, id := range clusters {
		waitFor(t, s.Client(""), id, muster.ClusterReady)
		for _, program := range []string{"any", "june", "before"} {
			want := program == "any" || cluster == "old"
			_, err := s.Control.StartRun(t.Context(), root(), cluster, wire.RunRequest{Program: program, User: "ada"})
			if (muster.ReasonOf(err) != muster.ReasonImageLacks) != want {
				t.Errorf("%s on %s: %v", program, cluster, err)
			}
		}
	}
}
