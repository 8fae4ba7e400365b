package volume_test

import (
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/storage/volume/volumetest"
)

func TestHostDir(t *testing.T) {
	t.Parallel()
	volumetest.Suite(t, muster.DriverHostPath, func(t *testing.T) (volume.Driver, string) {
		dir := filepath.Join(t.TempDir(), "volumes")
		return volume.NewHostPath(dir), dir
	})
}
