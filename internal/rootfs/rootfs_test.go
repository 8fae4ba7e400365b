package rootfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/rootfs"
)

// TestEnter puts a small root together in a mount namespace of one thread, enters it, and
// looks what is there.
func TestEnter(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounts: needs root")
	}
	root := t.TempDir()
	errs := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
		errs <- inside(root)
	}()
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(root); err != nil || len(list) > 0 {
		t.Errorf("the host sees the mounts: %v, %v", list, err)
	}
}

func inside(root string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return err
	}
	if err := rootfs.Private(); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID, "mode=755,size=1m"); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(root, name) }
	err := errors.Join(os.Mkdir(at("dev"), 0o755), os.Mkdir(at("fixed"), 0o755), os.Mkdir(at("same"), 0o755),
		os.WriteFile(at("told"), []byte("of the host"), 0o644),
		rootfs.Devices(at("dev"), unix.MS_NOSUID|unix.MS_NOEXEC),
		rootfs.Bind(at("fixed"), at("fixed"), unix.MS_RDONLY),
		rootfs.Bind(at("same"), at("same"), 0),
		rootfs.Hide(at("told"), 0), rootfs.Hide(at("absent"), 0),
		rootfs.Enter(root))
	if err != nil {
		return err
	}
	if err := os.WriteFile("/fixed/file", nil, 0o600); !errors.Is(err, unix.EROFS) {
		return errors.New("what is shown read-only can be written")
	}
	if b, err := os.ReadFile("/told"); err != nil || len(b) > 0 {
		return errors.New("what is hidden can be read")
	}
	if err := os.WriteFile("/dev/null", []byte("x"), 0); err != nil {
		return err
	}
	var st unix.Statfs_t
	if err := unix.Statfs("/same", &st); err != nil || st.Flags&unix.ST_NOSUID == 0 {
		return errors.New("what is shown without flags lost those that it had")
	}
	// The root of the host is nowhere above.
	if _, err := os.Lstat("/../../" + root); !errors.Is(err, os.ErrNotExist) {
		return errors.New("the host's tree is still there")
	}
	return nil
}
