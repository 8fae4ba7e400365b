package nfs

import (
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What ganesha knew of its clients is there again, each with the address that it has now: also two that changed places, and one
// whose name is cut into pieces, which are cut elsewhere then.
func TestRestoreClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "kept"), filepath.Join(dir, "recovery")
	long := strings.Repeat("x", 300)
	at := func(root, name string) string {
		path := filepath.Join(root, "v4recov", "node0")
		for len(name) > maxPiece {
			path, name = filepath.Join(path, name[:maxPiece]), name[maxPiece:]
		}
		return filepath.Join(path, name)
	}
	for _, name := range []string{
		"::ffff:10.90.0.2-(3:abc)", "::ffff:10.90.0.3-(3:a-(b)", "10.90.0.4-(3:abc)", "::ffff:10.90.0.5-(300:" + long + ")", "::ffff:10.90.0.6-(1:d)", "what else",
	} {
		if err := os.MkdirAll(at(from, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(from, "v4old", "node0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(at(to, "::ffff:10.90.0.9-(3:old)"), 0o700); err != nil {
		t.Fatal(err)
	}
	ip := netip.MustParseAddr
	moved := map[netip.Addr]netip.Addr{
		ip("10.90.0.2"): ip("10.90.0.3"), ip("10.90.0.3"): ip("10.90.0.2"), ip("10.90.0.4"): ip("10.90.1.4"), ip("10.90.0.5"): ip("10.90.100.155"),
	}
	if err := restoreClients(from, to, moved); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	_ = filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
		if inside, bad := os.ReadDir(path); err == nil && bad == nil && len(inside) == 0 {
			got = append(got, path)
		}
		return err
	})
	for _, name := range []string{
		"::ffff:10.90.0.3-(3:abc)", "::ffff:10.90.0.2-(3:a-(b)", "10.90.1.4-(3:abc)", "::ffff:10.90.100.155-(300:" + long + ")", "::ffff:10.90.0.6-(1:d)", "what else",
	} {
		want = append(want, at(to, name))
	}
	want = append(want, filepath.Join(to, "v4old", "node0"))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
