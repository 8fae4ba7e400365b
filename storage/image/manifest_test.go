package image

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	muster "github.com/muster-hpc/muster"
)

func asError(err error, to **muster.Error) bool { return errors.As(err, to) }

// sample is a valid manifest with the given root file system.
func sample(name string, root []byte) *muster.Image {
	m := &muster.Image{
		Format: Format, Name: name, Recipe: digest([]byte(name)), Architecture: "amd64",
		Distribution: "debian", Suite: "trixie", System: "Debian GNU/Linux 13 (trixie)",
		Created:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Packages: []muster.ImagePackage{{Name: "bash", Version: "5.2", Architecture: "amd64"}},
		Files:    []muster.ImageFile{{Role: muster.FileRoot, Name: rootFile, Size: int64(len(root)), SHA256: digest(root)}},
		Agent:    muster.VersionRange{Min: 1, Max: 1},
	}
	m.ID = contentID(m.Recipe, m.Base, m.Added, m.Architecture, m.Packages)
	return m
}

func TestManifestRoundTrip(t *testing.T) {
	t.Parallel()
	m := sample("hpc", []byte("bytes"))
	data, err := EncodeManifest(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeManifest(data)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDecodeManifestRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*muster.Image){
		"another format":    func(m *muster.Image) { m.Format = 99 },
		"file climbs":       func(m *muster.Image) { m.Files[0].Name = "../root" },
		"file is manifest":  func(m *muster.Image) { m.Files[0].Name = manifestFile },
		"no root":           func(m *muster.Image) { m.Files = nil },
		"two roots":         func(m *muster.Image) { m.Files = append(m.Files, m.Files[0]) },
		"digest":            func(m *muster.Image) { m.Files[0].SHA256 = "x" },
		"negative size":     func(m *muster.Image) { m.Files[0].Size = -1 },
		"package smuggled":  func(m *muster.Image) { m.Packages = append(m.Packages, muster.ImagePackage{Name: "x"}) },
		"ID without prefix": func(m *muster.Image) { m.ID = muster.ImageID(m.ID.Hex()) },
		"name":              func(m *muster.Image) { m.Name = "../x" },
	} {
		m := sample("hpc", nil)
		change(m)
		data, err := EncodeManifest(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeManifest(data); muster.CodeOf(err) != muster.ECorrupt {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	good, _ := EncodeManifest(sample("hpc", nil))
	for name, data := range map[string]string{
		"unknown field": strings.Replace(string(good), `"name"`, `"nome": "x", "name"`, 1),
		"trailing":      string(good) + "{}",
		"cut off":       string(good[:len(good)/2]),
		"empty":         "",
	} {
		if _, err := DecodeManifest([]byte(data)); muster.CodeOf(err) != muster.ECorrupt {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}

func TestContentIDFollowsItsParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pkg := rapid.Custom(func(t *rapid.T) muster.ImagePackage {
			return muster.ImagePackage{Name: rapid.StringMatching(`[ab]{1,2}`).Draw(t, "name"), Version: rapid.StringMatching(`[12]`).Draw(t, "version"), Architecture: "amd64"}
		})
		a := rapid.SliceOfN(pkg, 0, 4).Draw(t, "a")
		b := rapid.SliceOfN(pkg, 0, 4).Draw(t, "b")
		slices.SortFunc(a, comparePackages)
		slices.SortFunc(b, comparePackages)
		added := rapid.SliceOfN(rapid.StringMatching(`[xy]{2}`), 0, 3).Draw(t, "added")
		turned := slices.Clone(added)
		slices.Reverse(turned)
		same := contentID("r", "", added, "amd64", a) == contentID("r", "", turned, "amd64", b)
		if same != slices.Equal(a, b) {
			t.Fatalf("%v %v: same ID %v", a, b, same)
		}
		if contentID("r", "", added, "amd64", a) == contentID("s", "", added, "amd64", a) {
			t.Fatal("the recipe must count")
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	good, _ := EncodeManifest(sample("hpc", []byte("x")))
	f.Add(good)
	f.Add([]byte(`{"format":1,"files":[{"name":".."}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeManifest(data)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if strings.ContainsAny(file.Name, "/\\") && strings.Contains(file.Name, "/") || file.Name == ".." {
				t.Fatalf("file %q", file.Name)
			}
		}
		again, err := EncodeManifest(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeManifest(again); err != nil {
			t.Fatalf("does not survive a round trip: %v", err)
		}
	})
}

const statusText = `Package: bash
Status: install ok installed
Architecture: amd64
Version: 5.2.37-2
Description: shell
 Package: not-this

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: adduser
Status: install ok installed
Architecture: all
Version: 3.1
`

func TestReadStatus(t *testing.T) {
	t.Parallel()
	got, err := readStatus(strings.NewReader(statusText))
	if err != nil || len(got) != 2 || got[0].Name != "adduser" || got[1].Version != "5.2.37-2" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := readStatus(strings.NewReader("Package: x\nStatus: install ok installed\n")); err == nil {
		t.Error("a package without a version is accepted")
	}
}

func FuzzReadStatus(f *testing.F) {
	f.Add([]byte(statusText))
	f.Add([]byte("Status: install ok installed\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		packages, err := readStatus(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		for _, p := range packages {
			if p.Name == "" || p.Version == "" || p.Architecture == "" {
				t.Fatalf("package %+v", p)
			}
		}
	})
}

func TestUpstream(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"24.11.5-4": "24.11.5", "1:10.0p1-7+deb13u4": "10.0p1", "22.05.8": "22.05.8"} {
		if got := upstream(in); got != want {
			t.Errorf("%s = %s", in, got)
		}
	}
}
