package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Who bounds a home learns at once when nothing keeps the bound.
func TestReadyTellsOfASizeThatIsNotEnforced(t *testing.T) {
	t.Parallel()
	const note = "note:         the size of /home, 10 GiB, is not enforced"
	for _, c := range []struct {
		volume wire.MountedVolume
		want   bool
	}{
		{wire.MountedVolume{Kind: muster.VolumeHome, Target: "/home", Quota: 10 << 30}, true},
		{wire.MountedVolume{Kind: muster.VolumeHome, Target: "/home", Quota: 10 << 30, Enforced: true}, false},
		{wire.MountedVolume{Kind: muster.VolumeHome, Target: "/home"}, false},
		{wire.MountedVolume{Kind: muster.VolumeData, Target: "/data", Quota: 10 << 30}, false}, // told when it was made
	} {
		var out bytes.Buffer
		(&app{}).writeReady(&out, wire.Created{Name: "cfd", Cluster: &wire.Cluster{Volumes: []wire.MountedVolume{c.volume}}})
		if strings.Contains(out.String(), note) != c.want || !strings.Contains(out.String(), "muster ssh cfd") {
			t.Errorf("%+v: %s", c.volume, out.String())
		}
	}
}

// A cluster of which nothing was measured yet has no empty heading.
func TestSiteUsageOfANewCluster(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	(&usagePage{width: 80}).site(&out, wire.SiteUsage{Clusters: []wire.ClusterUsage{{ID: "c-1", Name: "cfd"}}})
	if !strings.Contains(out.String(), "nothing is known in this time") {
		t.Error(out.String())
	}
}
