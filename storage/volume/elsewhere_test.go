package volume_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/wire"
)

// exported is a driver whose directories may be exported, or not.
type exported struct {
	disk
	may bool
}

func (d exported) Mounts(v muster.Volume, target string, readOnly bool) ([]volume.Mount, error) {
	list, err := d.disk.Mounts(v, target, readOnly)
	for i := range list {
		if d.may {
			list[i].Export = &volume.Export{Name: string(v.ID) + "-x", Path: "/" + string(v.ID)}
		}
	}
	return list, err
}

// TestElsewhere: what machines with kernels of their own get, and what they cannot.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	s := newSite()
	k := volume.New(volume.Config{
		Records: s, Clock: clock{s},
		Drivers: map[muster.VolumeDriver]volume.Driver{
			muster.DriverHostPath: exported{disk{s}, false}, muster.DriverManagedNFS: exported{disk{s}, true}, muster.DriverNFS: volume.NFS{},
		},
		NeedsNetworkMounts: func(_ context.Context, c muster.Cluster) (bool, error) { return c.Name == "bare", nil },
		Export: func(_ context.Context, _ muster.Cluster, e volume.Export, target string, readOnly bool) (wire.Mount, error) {
			m := wire.Mount{Source: "server:/" + e.Name, Target: target, Type: "nfs4"}
			if readOnly {
				m.Options = "ro"
			}
			return m, nil
		},
	})
	data := muster.Volume{ID: muster.NewVolumeID(), Name: "in", Project: "sea", Kind: muster.VolumeData, Driver: muster.DriverManagedNFS, Phase: muster.VolumeReady}
	filer := data
	filer.ID, filer.Driver, filer.Source = muster.NewVolumeID(), muster.DriverNFS, "filer:/export/sea"
	local := data
	local.ID, local.Driver = muster.NewVolumeID(), muster.DriverHostPath
	for _, v := range []muster.Volume{data, filer, local} {
		s.volumes[v.ID] = v
	}
	c := cluster("bare", time.Hour)
	c.Spec.Volumes = []muster.VolumeUse{{Volume: string(data.ID), Target: "/in", ReadOnly: true}, {Volume: string(filer.ID), Target: "/filer"}}
	s.clusters[c.ID] = c
	list, err := k.Ensure(t.Context(), c)
	if err != nil || len(list) != 4 {
		t.Fatalf("%+v %v", list, err)
	}
	home := s.find(t, "bare-home")
	if home.Driver != muster.DriverManagedNFS || s.find(t, "bare-scheduler").Driver != muster.DriverManagedNFS {
		t.Errorf("made with %s", home.Driver)
	}
	for i, want := range []wire.Mount{
		{Source: "server:/" + string(home.ID) + "-x", Target: "/home", Type: "nfs4"},
		{Source: "server:/" + string(s.find(t, "bare-scheduler").ID) + "-x", Target: "/var/lib/slurm", Type: "nfs4"},
		{Source: "server:/" + string(data.ID) + "-x", Target: "/in", Type: "nfs4", Options: "ro"},
	} {
		m := list[i]
		if want.Target == "/var/lib/slurm" { // the pretended driver does not know its own places
			want.Target = m.NFS.Target
		}
		if m.NFS == nil || m.Share == nil || m.Share.Target != m.NFS.Target || *m.NFS != want || m.Export == nil || m.HeadOnly != (i == 1) {
			t.Errorf("%+v instead of %+v", m, want)
		}
	}
	if m := list[3]; m.NFS == nil || m.NFS.Source != "filer:/export/sea" || m.Export != nil {
		t.Errorf("%+v", m)
	}
	// A directory of the server is out of reach.
	c.Spec.Volumes = []muster.VolumeUse{{Volume: string(local.ID), Target: "/local"}}
	if _, err := k.Ensure(t.Context(), c); muster.CodeOf(err) != muster.EInvalid {
		t.Error(err)
	}
	// Machines of this host have the same volumes as directories, the served one too.
	here := cluster("here", time.Hour)
	here.Spec.Volumes = append(slices.Clone(c.Spec.Volumes), muster.VolumeUse{Volume: string(data.ID), Target: "/in"})
	s.clusters[here.ID] = here
	list, err = k.Ensure(t.Context(), here)
	if err != nil || len(list) != 4 || s.find(t, "here-home").Driver != muster.DriverHostPath {
		t.Fatalf("%+v %v", list, err)
	}
	for _, m := range list {
		if m.Share == nil || m.NFS != nil {
			t.Errorf("%+v", m)
		}
	}
}
