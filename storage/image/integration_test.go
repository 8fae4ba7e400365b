package image

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
)

// tinyRecipe is a real image of the fewest packages, with one of everything
// that a recipe can have.
const tinyRecipe = `
name: tiny
base: {suite: trixie}
scheduler: none
agent: {min: 1, max: 1}
packages: [netbase]
accounts:
  - {name: munge, uid: 903}
  - {name: rdma, gid: 912}
exclude: [/usr/share/doc/*, /usr/share/man/*, /usr/share/locale/*]
files:
  - {path: /etc/early, content: "e", early: true}
  - {path: /usr/bin/late, mode: "0755", content: "#!/bin/sh\necho late\n"}
commands:
  - name: alone
    run: |
      /usr/bin/late > /etc/from-command
      # No network but the loopback device, and nothing outlives this.
      test "$(grep -c : /proc/net/dev)" = 1
      sleep 1000 &
`

// A real image is built twice without anything in common but packages, and
// comes out the same to the byte; then packages are added to it.
func TestRealImage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("downloads packages: not with -short")
	}
	if err := ready(); err != nil {
		t.Skipf("cannot build here: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	if !mirrorAnswers(ctx) {
		t.Skip("no Debian mirror answers")
	}
	rec, err := book(map[string]string{"tiny": tinyRecipe}).Load("tiny")
	if err != nil {
		t.Fatal(err)
	}
	s, other := open(t), open(t)
	r, err := s.Build(ctx, rec, BuildOptions{})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Logf("built in %v, %d KiB: %v", r.Took, r.Image.Size()>>10, r.Stages)
	shareCache(t, s, other)
	again, err := other.Build(ctx, rec, BuildOptions{})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	if again.Image.ID != r.Image.ID || again.Image.Files[0] != r.Image.Files[0] {
		t.Errorf("built twice: %v and %v", r.Image.Files, again.Image.Files)
	}
	checkTiny(t, s, r.Image)

	refreshed, err := s.Build(ctx, rec, BuildOptions{Refresh: true})
	if err != nil || refreshed.Image.ID != r.Image.ID {
		t.Errorf("refresh: %+v, %v", refreshed, err)
	}
	d, err := s.Derive(ctx, r.Image.ID, []string{"hello"}, BuildOptions{})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Logf("derived in %v: %v", d.Took, d.Stages)
	root := unpack(t, s, d.Image)
	if _, err := os.Stat(filepath.Join(root, "usr/bin/hello")); err != nil || d.Image.Base != r.Image.ID {
		t.Errorf("derived: %v, %v", d.Image.Added, err)
	}
	for _, gone := range []string{"usr/sbin/policy-rc.d", "etc/resolv.conf", "etc/apt/apt.conf.d/99mmdebstrap", "usr/share/man/man1/hello.1.gz"} {
		if _, err := os.Lstat(filepath.Join(root, gone)); err == nil {
			t.Errorf("%s stays in the derived image", gone)
		}
	}
	warm, err := s.Derive(ctx, r.Image.ID, []string{"hello"}, BuildOptions{})
	if err != nil || warm.Built || warm.Image.ID != d.Image.ID {
		t.Errorf("%+v, %v", warm, err)
	}
	_, err = s.Derive(ctx, r.Image.ID, []string{"hellow", "netbaseq"}, BuildOptions{})
	if muster.CodeOf(err) != muster.EInvalid || len(errortest.Listed(err)) != 2 || !strings.Contains(err.Error(), `"netbase"`) {
		t.Errorf("unknown packages: %v", err)
	}

	_, err = s.Derive(ctx, r.Image.ID, []string{"firmware-bnx2x"}, BuildOptions{})
	if said := errortest.Listed(err); len(said) != 1 || !strings.Contains(said[0].Hint, "components: [main, non-free-firmware]") {
		t.Errorf("a package of another component: %v", err)
	}

	// Killed in the middle, it leaves no process, no mount and no room taken.
	short, stop := context.WithTimeout(ctx, 2500*time.Millisecond)
	defer stop()
	if _, err := open(t).Build(short, rec, BuildOptions{}); err == nil {
		t.Error("a build of two seconds?")
	}
	if table := mountTable(t); strings.Contains(table, s.dir) || strings.Contains(table, other.dir) {
		t.Errorf("mounts stay: %s", table)
	}
	for _, store := range []*Store{s, other} {
		if left, _ := os.ReadDir(filepath.Join(store.dir, "tmp")); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func checkTiny(t *testing.T, s *Store, m *muster.Image) {
	t.Helper()
	root := unpack(t, s, m)
	for name, want := range map[string]string{"etc/early": "e", "etc/from-command": "late\n", "etc/machine-id": ""} {
		if data, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(data) != want {
			t.Errorf("%s = %q, %v", name, data, err)
		}
	}
	passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil || !strings.Contains(string(passwd), "\nmunge:x:903:903:") {
		t.Errorf("passwd = %s, %v", passwd, err)
	}
	for _, dir := range []string{"usr/share/man/man1", "var/lib/apt/lists", "var/cache/apt/archives", "dev"} {
		if left, _ := os.ReadDir(filepath.Join(root, dir)); len(left) != 0 {
			t.Errorf("%s is not empty: %v", dir, left)
		}
	}
	lists, err := os.ReadFile(filepath.Join(root, "etc/apt/sources.list"))
	if err != nil || !bytes.Contains(lists, []byte("deb "+defaultMirror()+" trixie main\n")) {
		t.Errorf("sources.list = %s, %v", lists, err)
	}
	if m.System != "Debian GNU/Linux 13 (trixie)" || m.Architecture != runtime.GOARCH || !slices.ContainsFunc(m.Packages, func(p muster.ImagePackage) bool { return p.Name == "netbase" }) {
		t.Errorf("manifest: %s, %s", m.System, m.Architecture)
	}
}

func unpack(t *testing.T, s *Store, m *muster.Image) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	if out, err := exec.Command("unsquashfs", "-no-progress", "-quiet", "-d", root, filepath.Join(s.Path(m.ID), rootFile)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root
}

// shareCache spares the mirror a second download of the same packages.
func shareCache(t *testing.T, from, to *Store) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", filepath.Join(from.dir, "cache"), to.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func mirrorAnswers(ctx context.Context) bool {
	_, mirror := hostApt(ctx)
	if mirror == "" {
		mirror = defaultMirror()
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return exec.CommandContext(ctx, "/usr/lib/apt/apt-helper", "-q", "download-file", mirror+"/dists/trixie/InRelease", os.DevNull).Run() == nil ||
		exec.CommandContext(ctx, "apt-get", "-q", "--print-uris", "update").Run() == nil
}

func mountTable(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
