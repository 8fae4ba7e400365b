package local

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSeedShare: an empty share gets what the image has, with owners and modes;
// one that was in use is left alone; a copy that was cut short is made anew.
func TestSeedShare(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: owners are copied")
	}
	t.Parallel()
	image, share := t.TempDir(), t.TempDir()
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	try(os.MkdirAll(filepath.Join(image, "db", "empty"), 0o700))
	try(os.WriteFile(filepath.Join(image, "db", "table"), []byte("rows"), 0o640))
	try(os.Symlink("db/table", filepath.Join(image, "link")))
	try(unix.Mkfifo(filepath.Join(image, "fifo"), 0o600))
	for path, mode := range map[string]os.FileMode{"": 0o751, "db": 0o2750, "db/table": 0o640} {
		at := filepath.Join(image, path)
		try(os.Chown(at, 904, 905))
		try(unix.Chmod(at, uint32(mode)))
	}
	seed := func() {
		t.Helper()
		fd, err := unix.Open(share, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		try(err)
		defer func() { _ = unix.Close(fd) }()
		try(seedShare(fd, image))
	}
	check := func() {
		t.Helper()
		for path, mode := range map[string]uint32{"": 0o751, "db": 0o2750, "db/table": 0o640} {
			var st unix.Stat_t
			try(unix.Stat(filepath.Join(share, path), &st))
			if st.Uid != 904 || st.Gid != 905 || st.Mode&0o7777 != mode {
				t.Errorf("%q belongs to %d:%d with mode %o", path, st.Uid, st.Gid, st.Mode&0o7777)
			}
		}
		if to, err := os.Readlink(filepath.Join(share, "link")); err != nil || to != "db/table" {
			t.Error(to, err)
		}
		if list, err := os.ReadDir(share); err != nil || len(list) != 2 {
			t.Errorf("it holds %v, %v", list, err)
		}
	}
	seed()
	check()
	// In use: what changed since stays.
	try(os.WriteFile(filepath.Join(share, "db", "table"), []byte("more rows"), 0o640))
	seed()
	if b, _ := os.ReadFile(filepath.Join(share, "db", "table")); string(b) != "more rows" {
		t.Errorf("what was in use became %q", b)
	}
	// Cut short.
	try(os.WriteFile(filepath.Join(share, seeding), nil, 0o600))
	try(os.Remove(filepath.Join(share, "link")))
	try(os.WriteFile(filepath.Join(share, "half"), nil, 0o600))
	seed()
	check()
	if b, _ := os.ReadFile(filepath.Join(share, "db", "table")); string(b) != "rows" {
		t.Errorf("seeded anew it is %q", b)
	}
}
