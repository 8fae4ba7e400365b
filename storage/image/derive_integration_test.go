package image

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	muster "github.com/muster-hpc/muster"
	"golang.org/x/sys/unix"
)

// probeRecipe is a small image whose list of mirrors names another one, at an address
// that a test fills in.
const probeRecipe = `
name: probed
base: {suite: trixie}
scheduler: none
agent: {min: 1, max: 1}
packages: [netbase, early]
exclude: [/usr/share/doc/*, /usr/share/man/*, /usr/share/locale/*]
trim: [/srv/early]
files:
  - path: /etc/apt/sources.list.d/site.sources
    early: true
    content: |
      Types: deb
      URIs: %s
      Suites: ./
      Signed-By: /etc/apt/keyrings/site.asc
  - path: /etc/apt/keyrings/site.asc
    early: true
    content: |
      %s
commands:
  - name: mirror
    run: |
      # Perl is in every image; it sets what setcap does.
      touch /srv/base-capability; chown 7:8 /srv/base-capability
      perl -e '%s'
      mknod /srv/base-device c 1 3
`

// setCapability has perl give a file cap_net_raw: no small image has setcap.
func setCapability(file string) string {
	number := map[string]int{"amd64": 188, "arm64": 5}[hostArchitecture()]
	return fmt.Sprintf(`my ($f, $n, $v) = (q(%s), q(security.capability), pack(q(V5), 0x02000001, 1 << 13, 0, 0, 0)); syscall(%d, $f, $n, $v, 20, 0) == 0 or die $!`, file, number)
}

// tellingScript is what a package's own script sees and may, one line each.
const tellingScript = `#!/bin/sh
can() { name=$1; shift; if ( eval "$@" ) >/dev/null 2>&1; then echo "yes $name"; else echo "no $name"; fi; }
{
can reach-host 'perl -e "socket(S, 2, 1, 0) && connect(S, pack(q(SnC4x8), 2, %[1]s, 127, 0, 0, 1)) or exit 1"'
can read-host 'cat %[2]s'
can mount 'mount -t tmpfs none /mnt'
can open-disk 'mknod /srv/disk b 7 0 && head -c1 /srv/disk'
can make-device 'mknod /srv/made-device c 1 3'
rm -f /srv/disk
while read -r line; do case $line in CapBnd*|CapEff*|NoNewPrivs*|Seccomp:*) echo "$line";; esac; done < /proc/self/status
while IFS=: read -r name rest; do case $rest in *[0-9]*) echo "link" $name;; esac; done < /proc/net/dev
# What a program has that the script starts; the shell itself has the script open, too.
ls /proc/self/fd > /srv/fds; while read -r n; do echo "fd $n"; done < /srv/fds; rm /srv/fds
while read -r line; do echo "group ${line#*:*:}"; done < /proc/self/cgroup
} > /srv/told 2>&1
touch /srv/made-capability; chown 1234:4321 /srv/made-capability
perl -e '%[3]s'
`

// debRepository makes a flat repository of packages, each with a script of its own.
func debRepository(t *testing.T, dir string, scripts map[string]string) {
	t.Helper()
	for name, script := range scripts {
		from := filepath.Join(t.TempDir(), name)
		depends := ""
		if name == "needing" {
			depends = "Depends: early\n"
		}
		owned := filepath.Join(from, "srv", name)
		if err := errors.Join(os.MkdirAll(filepath.Join(from, "DEBIAN"), 0o755), os.MkdirAll(filepath.Dir(owned), 0o755),
			os.WriteFile(filepath.Join(from, "DEBIAN/control"), fmt.Appendf(nil, "Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: Muster <root@localhost>\n%sDescription: tells what its script may\n", name, depends), 0o644),
			os.WriteFile(filepath.Join(from, "DEBIAN/postinst"), []byte(script), 0o755),
			os.WriteFile(owned, []byte(name), 0o755), os.Chown(owned, 12, 34), os.Chmod(owned, 0o755|os.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("dpkg-deb", "--build", from, filepath.Join(dir, name+"_1_all.deb")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	scan := exec.Command("dpkg-scanpackages", "--multiversion", ".")
	scan.Dir = dir
	packages, err := scan.Output()
	if err != nil {
		t.Fatal(err)
	}
	release := fmt.Sprintf("Date: %s\nSHA256:\n %x %d Packages\n", time.Now().UTC().Format(time.RFC1123), sha256.Sum256(packages), len(packages))
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "Packages"), packages, 0o644), os.WriteFile(filepath.Join(dir, "Release"), []byte(release), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// signRepository signs a repository with a new key, which it returns.
func signRepository(t *testing.T, dir string) (key string) {
	t.Helper()
	home := t.TempDir()
	gpg := func(args ...string) []byte {
		cmd := exec.Command("gpg", append([]string{"--homedir", home, "--batch", "--passphrase", "", "--pinentry-mode", "loopback"}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("gpg %q: %v", args, err)
		}
		return out
	}
	t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run() })
	gpg("--quick-gen-key", "site@example.org", "rsa3072", "sign", "never")
	gpg("--output", filepath.Join(dir, "InRelease"), "--clearsign", filepath.Join(dir, "Release"))
	return string(gpg("--armor", "--export"))
}

// What a package brings runs confined when an image is derived as users derive them, the
// image has everything that it made, and a script that fails ends the request.
func TestDeriveConfines(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("downloads packages: not with -short")
	}
	if err := ready(); err != nil {
		t.Skipf("cannot build here: %v", err)
	}
	for _, p := range []string{"dpkg-deb", "dpkg-scanpackages", "gpg"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("this host has no %s", p)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	if !mirrorAnswers(ctx) {
		t.Skip("no Debian mirror answers")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	canary := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(canary, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	debRepository(t, dir, map[string]string{
		"telling": fmt.Sprintf(tellingScript, port, canary, setCapability("/srv/made-capability")),
		"early":   "#!/bin/sh\n",
		"needing": "#!/bin/sh\ntest -e /srv/early\n",
		"broken":  "#!/bin/sh\necho \"update-alternatives: error: alternative path /usr/bin/broken doesn't exist\" >&2\nexit 2\n",
		"full":    "#!/bin/sh\necho 'cp: error writing: No space left on device' >&2\nexit 1\n",
	})
	mirror := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer mirror.Close()
	key := strings.ReplaceAll(signRepository(t, dir), "\n", "\n      ")
	rec, err := book(map[string]string{"probed": fmt.Sprintf(probeRecipe, mirror.URL, key, setCapability("/srv/base-capability"))}).Load("probed")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t)
	base, err := s.Build(ctx, rec, BuildOptions{})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	d, err := s.Derive(ctx, base.Image.ID, []string{"telling"}, BuildOptions{For: Asker{Project: "bio"}})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	if got := s.Askers()[d.Image.ID]; len(got) != 1 || got[0] != "bio" {
		t.Errorf("asked for by %v", got)
	}
	root := unpack(t, s, d.Image)
	checkTold(t, filepath.Join(root, "srv/told"))
	checkNode(t, filepath.Join(root, "srv/telling"), unix.S_IFREG|unix.S_ISUID|0o755, 12, 34)
	for _, made := range []struct {
		file     string
		uid, gid uint32
	}{{"srv/made-capability", 1234, 4321}, {"srv/base-capability", 7, 8}} {
		checkNode(t, filepath.Join(root, made.file), unix.S_IFREG|0o644, made.uid, made.gid)
		// Twenty bytes: the attribute names no user namespace, and counts on bare machines.
		if n, err := unix.Lgetxattr(filepath.Join(root, made.file), "security.capability", make([]byte, 64)); err != nil || n != 20 {
			t.Errorf("%s has a capability of %d bytes, %v", made.file, n, err)
		}
	}
	for _, device := range []string{"srv/made-device", "srv/base-device"} {
		checkNode(t, filepath.Join(root, device), unix.S_IFCHR|0o644, 0, 0)
	}

	// What the image trims, comes with the first package that needs it.
	if _, err := os.Lstat(filepath.Join(root, "srv/early")); err == nil {
		t.Error("the image has what it trims")
	}
	needing, err := s.Derive(ctx, base.Image.ID, []string{"needing=1"}, BuildOptions{})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	if _, err := os.Lstat(filepath.Join(unpack(t, s, needing.Image), "srv/early")); err != nil {
		t.Error("a package is there without what it depends on")
	}

	_, err = s.Derive(ctx, base.Image.ID, []string{"broken"}, BuildOptions{})
	if muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), "dpkg: error processing package broken (--configure)") ||
		!strings.Contains(err.Error(), "alternative path /usr/bin/broken doesn't exist") {
		t.Errorf("a package whose script fails: %s, %v", muster.CodeOf(err), err)
	}
	if _, err = s.Derive(ctx, base.Image.ID, []string{"full"}, BuildOptions{}); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("a package for which there was no room: %s, %v", muster.CodeOf(err), err)
	}
}

// checkTold looks at what a package's script saw.
func checkTold(t *testing.T, file string) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	want := map[string]bool{
		"no reach-host": true, "no read-host": true, "no mount": true, "no open-disk": true, "yes make-device": true,
		"CapBnd:\t00000000a80405fb": true, "CapEff:\t00000000a80405fb": true, "NoNewPrivs:\t1": true, "Seccomp:\t2": true,
		"link lo": true, "group /": true,
		// Standard input, output and error, and the directory that ls reads.
		"fd 0": true, "fd 1": true, "fd 2": true, "fd 3": true,
	}
	seen := map[string]bool{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line := lines.Text()
		if seen[line] = true; !want[line] {
			t.Errorf("the script of a package: %q", line)
		}
	}
	for line := range want {
		if !seen[line] {
			t.Errorf("the script of a package does not say %q", line)
		}
	}
}

// checkNode looks at the kind, mode and owner of a file of an image.
func checkNode(t *testing.T, file string, mode, uid, gid uint32) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(file, &st); err != nil || st.Mode != mode || st.Uid != uid || st.Gid != gid {
		t.Errorf("%s: mode %o, owner %d:%d, want %o, %d:%d (%v)", filepath.Base(file), st.Mode, st.Uid, st.Gid, mode, uid, gid, err)
	}
	if mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev != unix.Mkdev(1, 3) {
		t.Errorf("%s is device %x", filepath.Base(file), st.Rdev)
	}
}
