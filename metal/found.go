package metal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Found is a bare machine that was told to run an image for a cluster, as the notes of its
// boot say, whatever the store knows.
type Found struct {
	Machine muster.MachineID
	Cluster muster.ClusterID
	Attempt int64
}

// FindBoots lists the machines that boot or run an image for a cluster, by the notes below
// dir (the folder metal of a state directory). It changes nothing. A note that cannot be
// read tells nothing: its machine is started anew, as one of which nothing is known. One of
// another version is an error.
func FindBoots(dir string) ([]Found, error) {
	list, err := os.ReadDir(filepath.Join(dir, "boots"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Found
	for _, e := range list {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		path := filepath.Join(dir, "boots", e.Name())
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		r, err := recordDoc.Decode(path, b)
		if muster.CodeOf(err) == muster.EConflict {
			return nil, err
		}
		if err != nil || string(r.Machine) != name {
			continue
		}
		if r.Kind == wire.BootImage && !r.Step.over() {
			out = append(out, Found{r.Machine, muster.ClusterID(r.For), r.Attempt})
		}
	}
	return out, nil
}
