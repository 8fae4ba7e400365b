package image

import (
	"os/exec"
	"slices"
	"testing"

	muster "github.com/muster-hpc/muster"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	packages := func(list ...string) *muster.Image {
		m := &muster.Image{}
		for i := 0; i+1 < len(list); i += 2 {
			m.Packages = append(m.Packages, muster.ImagePackage{Name: list[i], Version: list[i+1], Architecture: "amd64"})
		}
		return m
	}
	a := packages("back", "2.0-1", "gone", "1", "libc6", "2.41-9", "same", "1.0")
	b := packages("back", "1.9-1", "libc6", "2.41-12", "new", "1", "same", "1.0")
	d := Compare(a, b)
	change := func(name, from, to string) []PackageChange {
		return []PackageChange{{Name: name, Architecture: "amd64", From: from, To: to}}
	}
	for what, pair := range map[string][2][]PackageChange{
		"newer":   {d.Newer, change("libc6", "2.41-9", "2.41-12")},
		"older":   {d.Older, change("back", "2.0-1", "1.9-1")},
		"added":   {d.Added, change("new", "", "1")},
		"removed": {d.Removed, change("gone", "1", "")},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %+v, want %+v", what, pair[0], pair[1])
		}
	}
	if d.Same != 1 {
		t.Errorf("%d are the same", d.Same)
	}
}

// Versions are ordered as dpkg orders them.
func TestOlder(t *testing.T) {
	t.Parallel()
	list := []string{"1.0~rc1-1", "1.0-1", "1.0-1+b2", "1.0-1+deb13u1", "1.0.1-1", "1.2-1", "1.10-1", "1.10a-1", "2:0.1-1", "not a version"}
	dpkg, _ := exec.LookPath("dpkg")
	for i, a := range list[:len(list)-1] {
		for j, b := range list[:len(list)-1] {
			if older(a, b) != (i < j) {
				t.Errorf("%s is older than %s: %v", a, b, older(a, b))
			}
			if dpkg != "" && (exec.Command(dpkg, "--compare-versions", a, "lt", b).Run() == nil) != (i < j) {
				t.Errorf("dpkg orders %s and %s otherwise", a, b)
			}
		}
	}
	if !older("1", "not a version") || older("not a version", "1") {
		t.Error("what is no version is not compared as text")
	}
}
