package volume_test

import (
	"path"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/storage/volume/volumetest"
	"github.com/muster-hpc/muster/wire"
)

func TestNFS(t *testing.T) {
	t.Parallel()
	v := volumetest.New(muster.VolumeData, muster.DriverNFS)
	v.Source = "filer.example:/export/aero"
	m, err := volume.NFS{}.Mounts(v, "/data", true)
	if err != nil || len(m) != 1 || m[0].Share != nil || m[0].HeadOnly {
		t.Fatalf("%+v %v", m, err)
	}
	want := wire.Mount{Source: v.Source, Target: "/data", Type: "nfs4", Options: "ro,nosuid,nodev,hard,proto=tcp,vers=4.2,sec=sys,_netdev"}
	if *m[0].NFS != want {
		t.Errorf("%+v", *m[0].NFS)
	}
	if m, _ := (volume.NFS{}).Mounts(v, "/data", false); !strings.HasPrefix(m[0].NFS.Options, "rw,nosuid,nodev,") {
		t.Errorf("%+v", *m[0].NFS)
	}
	if err := (volume.NFS{}).Erase(t.Context(), v); err != nil {
		t.Error(err)
	}
	if _, _, err := (volume.NFS{}).Usage(t.Context(), v); muster.CodeOf(err) != muster.ENotFound {
		t.Error(err)
	}
	v.Source = "filer:/"
	if _, err := (volume.NFS{}).Create(t.Context(), v); muster.CodeOf(err) != muster.EInvalid {
		t.Error(err)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"filer:/export", "filer.site.example:/a/b-c/d_e.f", "10.0.0.1:/x", "[fd00::1]:/x"} {
		if got, err := volume.ParseSource(s); err != nil || got.String() != s {
			t.Errorf("%s: %+v %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", ":/x", "filer", "filer:", "filer:x", "filer:/", "filer://x", "filer:/x/", "filer:/x/../y", "filer:/..", "filer:/.hidden",
		"filer:/x,y", "filer:/x y", "filer:/x\n", "-filer:/x", "fi ler:/x", "fi,ler:/x", "[fd00::1:/x", "a:/b:/c", "filer:/x\x00",
		strings.Repeat("x", 300) + ":/x",
	} {
		if got, err := volume.ParseSource(s); err == nil {
			t.Errorf("%q became %+v", s, got)
		}
	}
	a := volume.Source{Host: "filer", Path: "/export/a"}
	for path, want := range map[string]bool{"/export/a": true, "/export": true, "/export/a/b": true, "/export/ab": false, "/export/b": false} {
		o := volume.Source{Host: "FILER", Path: path}
		if a.Overlaps(o) != want || o.Overlaps(a) != want {
			t.Errorf("%s and %s", a, o)
		}
	}
}

// FuzzSource: what is accepted can neither add options to a mount nor leave its
// export, and is written back as it was.
func FuzzSource(f *testing.F) {
	for _, s := range []string{"filer:/export", "[::1]:/x", "a:/b/../c", "a,b:/c", "a:/b c", "a:/b:/c", "-o:/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := volume.ParseSource(s)
		if err != nil {
			return
		}
		if got.String() != s || strings.ContainsAny(s, ", \t\n\r\x00\\\"'#") || strings.HasPrefix(s, "-") {
			t.Fatalf("%q", s)
		}
		if path.Clean(got.Path) != got.Path || got.Path == "/" || !path.IsAbs(got.Path) {
			t.Fatalf("%q has the path %q", s, got.Path)
		}
	})
}
