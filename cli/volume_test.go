package cli_test

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/controltest"
	"github.com/muster-hpc/muster/store"
)

// How long a home in use will be kept is told where it is set and shown.
func TestRetentionOfAHomeInUse(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s)
	c := ready(t, s, w, "cfd", "-n", "1", "--head", "shared")
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		return tx.PutVolume(muster.Volume{ID: muster.NewVolumeID(), Name: "cfd-home", Owner: c.Cluster.Owner, Project: c.Cluster.Project,
			Kind: muster.VolumeHome, Driver: muster.DriverHostDir, Phase: muster.VolumeReady, Cluster: c.ID, Created: time.Now()}, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	w.run("volume", "retain", "cfd-home", "400d").want(t, 0, "ready  kept 400d after its cluster")
	w.run("volume", "show", "cfd-home").want(t, 0, "kept +400d after its cluster")
	// 400 days in the one unit of the JSON, wherever they stand.
	w.run("volume", "show", "cfd-home", "-o", "json").want(t, 0, `"retain": 34560000000000000\b`)
	w.run("show", "cfd", "-o", "json").want(t, 0, `"retain": 34560000000000000\b`)
	w.run("volume", "list").want(t, 0, "KEPT\n", "400d after its cluster")
	w.run("volume", "retain", "cfd-home", "0").want(t, 0, "ready  kept until its cluster is deleted")
	for _, bad := range []string{"7", "a week", "7y"} {
		w.run("volume", "retain", "cfd-home", bad).want(t, 2, `TIME: "`+bad+`"`, "write 7d, 12h")
	}
	w.run("volume", "create", "inputs", "--size", "10").want(t, 2, `size: "10" has no unit`, "10GiB")
	w.run("volume", "create", "inputs", "--size", ">=10GiB").want(t, 2, "size: .* compares", "10GiB")
	w.run("volume", "create", "inputs", "--size", "1KiB").want(t, 2, `size: "1KiB" is too little`, "10GiB")
	w.run("volume", "delete", "cfd-home").want(t, 4, "muster delete c-[0-9a-z]+ --erase")
}
