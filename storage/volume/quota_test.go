package volume_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/storage/volume/volumetest"
)

// quotaDir names a file system with project quotas, for the child that runs
// within a mount namespace of its own.
const quotaDir = "MUSTER_QUOTA_DIR"

// TestQuota bounds volumes on a real file system, ext4 and xfs, as far as this
// kernel keeps quotas.
func TestQuota(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a file system is mounted")
	}
	for name, mkfs := range map[string][]string{
		"ext4": {"mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota"},
		"xfs":  {"mkfs.xfs", "-q"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(mkfs[0]); err != nil {
				t.Skip("no " + mkfs[0])
			}
			dir := t.TempDir()
			disk := filepath.Join(dir, "disk")
			if err := os.WriteFile(disk, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(disk, 400<<20); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(mkfs[0], append(mkfs[1:], disk)...).CombinedOutput(); err != nil {
				t.Skipf("%s: %s", mkfs[0], out)
			}
			at := filepath.Join(dir, "at")
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			c := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c",
				`mount -o loop,prjquota "$0" "$1" || exit 77; shift; exec "$@"`, disk, at, os.Args[0], "-test.run=^TestQuotaInside$", "-test.v")
			c.Env = append(os.Environ(), quotaDir+"="+at)
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() == 77 {
				t.Skipf("this kernel does not mount %s with project quotas: %s", name, strings.TrimSpace(string(out)))
			}
			if err != nil || strings.Contains(string(out), "--- SKIP") {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// TestQuotaInside is what the child does, on a file system that keeps quotas.
func TestQuotaInside(t *testing.T) {
	at := os.Getenv(quotaDir)
	if at == "" {
		t.Skip("only for the child of TestQuota")
	}
	h := volume.NewHostPath(filepath.Join(at, "volumes"))
	v, other := volumetest.New(muster.VolumeData, muster.DriverHostPath), volumetest.New(muster.VolumeData, muster.DriverHostPath)
	v.Quota, other.Quota = 20<<20, 40<<20
	for _, v := range []muster.Volume{v, other} {
		for range 2 {
			if enforced, err := h.Create(t.Context(), v); err != nil || !enforced {
				t.Fatalf("enforced %v, %v", enforced, err)
			}
		}
	}
	share := func(v muster.Volume) string {
		m, err := h.Mounts(v, "/data", false)
		if err != nil {
			t.Fatal(err)
		}
		return m[0].Share.Path
	}
	write := func(v muster.Volume, name string, size int) error {
		// Root of the host may pass a quota. Nobody else can reach the file by
		// its name, so it is handed over open.
		f, err := os.Create(filepath.Join(share(v), name))
		if err != nil {
			return err
		}
		defer f.Close()
		c := exec.Command("head", "-c", strconv.Itoa(size), "/dev/zero")
		var said strings.Builder
		c.Stdout, c.Stderr = f, &said
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if err := c.Run(); err != nil {
			return errors.New(said.String())
		}
		return f.Sync()
	}
	if err := write(v, "fits", 10<<20); err != nil {
		t.Fatal(err)
	}
	if err := write(v, "too large", 15<<20); err == nil || !strings.Contains(err.Error(), "uota") && !strings.Contains(err.Error(), "space") {
		t.Errorf("20 MiB hold more: %v", err)
	}
	if err := write(other, "fits", 30<<20); err != nil {
		t.Errorf("one volume's bound is another's: %v", err)
	}
	unix.Sync()
	if used, part, err := h.Usage(t.Context(), v); err != nil || part || used < 10<<20 || used > 20<<20+1<<20 {
		t.Errorf("used %d, part %v, %v", used, part, err)
	}
	// A larger bound takes hold when the volume is used next.
	v.Quota = 100 << 20
	if _, err := h.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if err := write(v, "more", 30<<20); err != nil {
		t.Error(err)
	}
	if err := h.Erase(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if err := h.Erase(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(at, "volumes")); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
}
