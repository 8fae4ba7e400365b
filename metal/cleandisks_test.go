package metal

import (
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// A disk that was write-protected from the beginning is told to the cleaning as one, and one
// that nobody could tell from others does not matter when nobody can write to it.
func TestCleanDisks(t *testing.T) {
	t.Parallel()
	r := muster.Registration{Facts: &muster.Facts{Disks: []muster.Disk{
		{Name: "sda", Serial: "A", Size: 5}, {Name: "sdb", Serial: "B", Size: 5, ReadOnly: true}, {Name: "sdc", Size: 5, ReadOnly: true},
		{Name: "sdd", Size: 5}, {Name: "sde", Serial: "E"},
	}}}
	disks, nameless := cleanDisks(r)
	want := []wire.CleanDisk{{Serial: "A", Size: 5}, {Serial: "B", Size: 5, ReadOnly: true}}
	if !slices.Equal(disks, want) || !slices.Equal(nameless, []string{"sdd"}) {
		t.Errorf("%+v, %q", disks, nameless)
	}
}
