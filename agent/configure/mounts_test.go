package configure

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

// This host has no NFS: what is mounted and served is looked at as the calls
// that are made for it.
func TestMountsComeAndGo(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	var calls []string
	table := filepath.Join(root, "proc/self/mountinfo")
	if err := os.MkdirAll(filepath.Dir(table), 0o755); err != nil {
		t.Fatal(err)
	}
	set := func(targets ...string) {
		var b strings.Builder
		for _, m := range targets {
			b.WriteString("36 35 0:31 / " + m + " rw - nfs4 files:/x rw\n")
		}
		if err := os.WriteFile(table, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set()
	var fail error
	c.o.Mount = func(m wire.Mount, target string) error {
		calls = append(calls, "mount "+m.Source+" "+strings.TrimPrefix(target, root))
		return fail
	}
	c.o.Unmount = func(target string) error {
		calls = append(calls, "unmount "+strings.TrimPrefix(target, root))
		return nil
	}
	cfg := config()
	cfg.Slurm = nil
	cfg.Mounts = []wire.Mount{
		{Source: "10.0.0.1:/home", Target: "/home", Type: "nfs4"},
		{Source: "10.0.0.1:/data", Target: "/home/data", Type: "nfs4", Options: "ro"},
	}
	apply := func(want ...string) {
		t.Helper()
		calls = nil
		cfg.Generation++
		err := c.Apply(t.Context(), copied(cfg), newReport(t))
		if (err != nil) != (fail != nil) || !slices.Equal(calls, want) {
			t.Errorf("%q instead of %q, %v", calls, want, err)
		}
	}
	fail = errors.New("no route to host")
	apply("mount 10.0.0.1:/home /home")
	fail = nil
	apply("mount 10.0.0.1:/home /home", "mount 10.0.0.1:/data /home/data")
	set("/home", "/home/data")
	apply()
	cfg.Mounts = nil
	apply("unmount /home/data", "unmount /home")
	set()
	apply()
	cfg.Mounts = []wire.Mount{{Source: "x:/y", Target: "/home/../etc", Type: "nfs4"}}
	if err := c.Apply(t.Context(), copied(cfg), newReport(t)); err == nil {
		t.Error("mounted somewhere else")
	}
}

func TestMountOptions(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]struct {
		flags uintptr
		data  string
	}{
		"":                          {unix.MS_NOSUID | unix.MS_NODEV, ""},
		"ro,vers=4.2,noatime,hard":  {unix.MS_NOSUID | unix.MS_NODEV | unix.MS_RDONLY | unix.MS_NOATIME, "vers=4.2,hard"},
		"rw,nosuid,defaults,noexec": {unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
	} {
		if flags, data := mountOptions(options); flags != want.flags || data != want.data {
			t.Errorf("%q: %x %q", options, flags, data)
		}
	}
}

// An empty volume over the database's place gets the image's database; what is
// there stays.
func TestDatabaseIsCopiedOnce(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	for _, p := range []string{"mysql/user.frm", "ibdata1", "slurm_acct_db/t.ibd"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, p)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, p), []byte(p), 0o660); err != nil {
			t.Fatal(err)
		}
	}
	// Half of an interrupted copy.
	if err := os.MkdirAll(filepath.Join(to, ".mysql.part/rest"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := copyDatabase(from, to); err != nil {
		if errors.Is(err, os.ErrPermission) {
			t.Skip("owners need root")
		}
		t.Fatal(err)
	}
	got := tree(t, to)
	if len(got) != 3 || !strings.HasSuffix(got["/mysql/user.frm"], " mysql/user.frm") || !strings.HasPrefix(got["/ibdata1"], "660 ") && !strings.HasPrefix(got["/ibdata1"], "640 ") {
		t.Errorf("%q", got)
	}
}

// A job that waits for a mount does not hold up the end of an Apply.
func TestMountThatHangs(t *testing.T) {
	t.Parallel()
	c, _, _ := node(t)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	c.o.Mount = func(wire.Mount, string) error { <-hang; return nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.mountOne(ctx, wire.Mount{Target: "/home"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
