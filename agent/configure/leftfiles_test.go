package configure

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

const slice = `1 0 0:1 / / rw - overlay overlay rw
2 1 0:2 / /tmp rw,nosuid - tmpfs tmpfs rw
3 1 0:3 / /dev rw shared:2 - devtmpfs dev rw
4 3 0:4 / /dev/shm rw master:1 shared:2 - tmpfs tmpfs rw
`

func TestPassingDirs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table  string
		shared []string
		want   string
	}{
		"nothing is known":   {"", nil, ""},
		"a slice":            {slice, nil, "/tmp /var/tmp /dev/shm"},
		"disks":              {slice + "5 1 8:1 / /scratch rw - ext4 /dev/sda rw\n6 1 8:2 / /scratch2 rw - xfs /dev/sdb rw\n", nil, "/tmp /var/tmp /dev/shm /scratch /scratch2"},
		"a volume":           {slice + "5 1 8:1 / /scratch rw - ext4 /dev/sda rw\n", []string{"/home", "/scratch"}, "/tmp /var/tmp /dev/shm"},
		"a server":           {slice + "5 1 0:9 / /scratch rw - nfs4 fs:/x rw\n", nil, "/tmp /var/tmp /dev/shm"},
		"a server's above":   {slice + "5 1 0:9 / /var rw - nfs4 fs:/x rw\n", nil, "/tmp /dev/shm"},
		"a volume above":     {slice + "5 1 0:9 / /var rw - xfs /dev/sda rw\n", []string{"/var/"}, "/tmp /dev/shm"},
		"hidden by a server": {slice + "5 2 0:9 / /tmp rw - nfs4 fs:/x rw\n", nil, "/var/tmp /dev/shm"},
		"only alike":         {slice + "5 1 8:1 / /scratchy rw - ext4 /dev/sda rw\n", []string{"/tm", "/dev/shmem"}, "/tmp /var/tmp /dev/shm"},
		"cut off":            {"1 0 0:1 / / rw - \n2 1 0:2 / /tmp", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(passingDirs(c.table, c.shared), " "); got != c.want {
				t.Errorf("%q instead of %q", got, c.want)
			}
		})
	}
}

func FuzzPassingDirs(f *testing.F) {
	f.Add(slice, "/scratch")
	f.Add("1 0 0:1 / /scratch rw - ext4 x rw", "/")
	f.Fuzz(func(t *testing.T, table, shared string) {
		for _, dir := range passingDirs(table, []string{shared}) {
			if below(dir, shared) || below(dir, "/home") || strings.Contains(dir, "..") || !strings.HasPrefix(dir, "/") {
				t.Fatalf("%q", dir)
			}
		}
	})
}

// tenants makes files, whose owner is the number, and links ("name -> target").
func tenants(t *testing.T, root string, owners map[string]int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("makes files of other users: needs root")
	}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		path, target, link := strings.Cut(name, " -> ")
		at := filepath.Join(root, path)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(filepath.Join(root, target), at)
		case strings.HasSuffix(path, "/"):
			err = os.MkdirAll(at, 0o755)
		default:
			err = os.WriteFile(at, []byte("x"), 0o600)
		}
		if err == nil {
			err = os.Lchown(at, owners[name], owners[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// left are the paths that are there, but for directories with something in them.
func left(t *testing.T, root string, dirs ...string) string {
	t.Helper()
	var out []string
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				out = append(out, strings.TrimPrefix(path, root))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// What a person who left had in memory goes; what others have there, homes, volumes and
// what links lead to stay.
func TestFilesOfThoseWhoLeft(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	const alice, bob = 20000, 20001
	tenants(t, root, map[string]int{
		"/proc/self/":        0,
		"/home/bob/data":     bob,
		"/home/alice/data":   alice,
		"/scratch/data":      bob,
		"/tmp/b/":            bob,
		"/tmp/b/c/":          bob,
		"/tmp/b/c/file":      bob,
		"/tmp/mixed/":        bob,
		"/tmp/mixed/a":       alice,
		"/tmp/mixed/b":       bob,
		"/tmp/a/":            alice,
		"/tmp/a/b":           bob,
		"/tmp/a/a":           alice,
		"/tmp/z -> home/bob": bob,
		"/tmp/y -> home/bob": alice,
		"/var/tmp/file":      bob,
		"/var/tmp/root":      0,
		"/dev/shm/file":      bob,
	})
	if err := os.WriteFile(filepath.Join(root, "/proc/self/mountinfo"), []byte(slice+"5 1 8:1 / /scratch rw - ext4 /dev/sda rw\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config()
	cfg.Mounts = []wire.Mount{{Target: "/scratch"}}
	before := left(t, root, "home", "scratch", "tmp", "var/tmp", "dev/shm")
	for _, gone := range []map[string]int{{}, {"al": alice}, {"system": 0}} { // alice has another name now
		if err := c.endFiles(t.Context(), cfg, memory{}, gone); err != nil {
			t.Fatal(err)
		}
	}
	if after := left(t, root, "home", "scratch", "tmp", "var/tmp", "dev/shm"); after != before {
		t.Errorf("files of those who stay are gone: %s", after)
	}
	if err := c.endFiles(t.Context(), cfg, memory{}, map[string]int{"bob": bob}); err != nil {
		t.Error(err)
	}
	want := "/home/alice/data /home/bob/data /scratch/data /tmp/a/a /tmp/mixed/a /tmp/y /var/tmp/root"
	if after := left(t, root, "home", "scratch", "tmp", "var/tmp", "dev/shm"); after != want {
		t.Errorf("%s\ninstead of\n%s", after, want)
	}
	for dir, want := range map[string]bool{"/tmp/b": false, "/tmp/mixed": true, "/tmp/a": true} {
		if _, err := os.Lstat(filepath.Join(root, dir)); (err == nil) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// Out of time, it says that it is not done, and goes on when it is called again.
func TestFilesOfThoseWhoLeftTakeTime(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	tenants(t, root, map[string]int{"/tmp/file": 20001, "/proc/self/": 0})
	if err := os.WriteFile(filepath.Join(root, "/proc/self/mountinfo"), []byte(slice), 0o600); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.endFiles(over, config(), memory{}, map[string]int{"bob": 20001}); err == nil || left(t, root, "tmp") != "/tmp/file" {
		t.Errorf("%v", err)
	}
	if err := c.endFiles(t.Context(), config(), memory{}, map[string]int{"bob": 20001}); err != nil || left(t, root, "tmp") != "" {
		t.Errorf("%v", err)
	}
}

// What is mounted below is not entered, though it is of the same file system.
func TestFilesOfThoseWhoLeftStayOnMounts(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const bob = 20001
	tenants(t, root, map[string]int{"/home/file": bob, "/tmp/in/": bob, "/tmp/in/home/": bob, "/tmp/file": bob, "/link -> home": bob})
	if err := unix.Mount(filepath.Join(root, "home"), filepath.Join(root, "tmp/in/home"), "", unix.MS_BIND, ""); err != nil {
		t.Skip("mounts: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(filepath.Join(root, "tmp/in/home"), unix.MNT_DETACH) })
	s := leftFiles{ctx: t.Context(), uids: map[uint32]bool{bob: true}}
	for _, dir := range []string{"tmp", "link", "none"} {
		if err := s.sweep(filepath.Join(root, dir)); err != nil {
			t.Error(err)
		}
	}
	if got := left(t, root, "home", "tmp"); len(s.errs) > 0 || got != "/home/file /tmp/in/home/file" {
		t.Errorf("%q, %v", got, s.errs)
	}
}

// A tree as deep as somebody likes opens only so many directories, and the rest goes.
func TestFilesOfThoseWhoLeftLieDeep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const bob = 20001
	tenants(t, root, map[string]int{"/" + strings.Repeat("d/", leftFilesDepth) + "deep": bob, "/file": bob})
	s := leftFiles{ctx: t.Context(), uids: map[uint32]bool{bob: true}}
	if err := s.sweep(root); err != nil || len(s.errs) > 0 || !s.deep {
		t.Errorf("%v, %v, %v", err, s.errs, s.deep)
	}
	if got := left(t, root, "."); !strings.HasSuffix(got, "/deep") || strings.Contains(got, " ") {
		t.Errorf("%q", got)
	}
}

// A configuration without somebody takes that person's files with it, and nobody else's.
func TestApplyEndsFilesOfThoseWhoLeft(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	tenants(t, root, map[string]int{"/tmp/alice": 20000, "/tmp/bob": 20001, "/proc/self/": 0})
	if err := os.WriteFile(filepath.Join(root, "/proc/self/mountinfo"), []byte(slice), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config()
	cfg.Users = append(cfg.Users, wire.Account{Name: "bob", UID: 20001, GID: 20001})
	for _, want := range []string{"/tmp/alice /tmp/bob", "/tmp/alice"} {
		if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err != nil {
			t.Fatal(err)
		}
		if got := left(t, root, "tmp"); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
		cfg.Users, cfg.Generation = cfg.Users[:1], 2
	}
}
