package cli_test

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
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
			Kind: muster.VolumeHome, Driver: muster.DriverHostPath, Phase: muster.VolumeReady, Cluster: c.ID, Created: time.Now()}, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	w.run("volume", "retain", "cfd-home", "400d").want(t, 0, "ready .*400d")
	w.run("volume", "show", "cfd-home").want(t, 0, "kept +400d")
	// 400 days in the one unit of the JSON, wherever they stand.
	w.run("volume", "show", "cfd-home", "-o", "json").want(t, 0, `"retain_seconds": 34560000\b`)
	w.run("show", "cfd", "-o", "json").want(t, 0, `"retain_seconds": 34560000\b`)
	w.run("volume", "list").want(t, 0, "KEPT\n", "400d")
	w.run("volume", "retain", "cfd-home", "0").want(t, 0, "ready ")
	for _, bad := range []string{"7", "a week", "7y"} {
		w.refused(2, muster.ReasonBadValue, "volume", "retain", "cfd-home", bad).at("TIME", muster.ReasonBadValue).naming(`"` + bad + `"`)
	}
	w.refused(2, muster.ReasonBadValue, "volume", "create", "inputs", "--size", "10").at("size", muster.ReasonBadValue).naming("10", "10GiB")
	w.refused(2, muster.ReasonBadValue, "volume", "create", "inputs", "--size", ">=10GiB").at("size", muster.ReasonBadValue).naming("10GiB")
	w.refused(2, muster.ReasonOutOfRange, "volume", "create", "inputs", "--size", "1KiB").at("size", muster.ReasonOutOfRange).naming("1KiB", "10GiB")
	w.refused(4, muster.ReasonVolumeInUse, "volume", "delete", "cfd-home").naming("muster delete c-[0-9a-z]+ --erase")
}
