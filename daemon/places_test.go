package daemon

import "testing"

// Whatever the host gives, connections leave a quarter of the descriptors for the local
// socket, the store and processes, and no address has the places of all.
func TestPlacesLeaveAReserve(t *testing.T) {
	t.Parallel()
	if n := raiseFiles(); n < leastFiles {
		t.Errorf("%d descriptors", n)
	}
	for _, files := range []int{leastFiles, 20_000, wantedFiles, 1 << 20} {
		people, nodes := apiPlaces(files), agentPlaces(files)
		if left := files - people.Total - nodes.Total; left < files/4 {
			t.Errorf("of %d, %d are left", files, left)
		}
		if people.PerAddress > people.Total/2 || nodes.PerAddress > nodes.Total/4 || people.PerAddress < 64 || nodes.PerAddress < 16 {
			t.Errorf("of %d: %+v, %+v", files, people, nodes)
		}
	}
}
