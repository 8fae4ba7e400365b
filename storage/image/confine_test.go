package image

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	muster "github.com/muster-hpc/muster"
	"golang.org/x/sys/unix"
)

// tree makes a small root file system of the host's own programs.
func tree(t *testing.T, programs ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"proc", "sys", "run", "dev", "tmp", "etc", "var/cache/apt/archives", "bin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]bool{}
	for _, p := range programs {
		at, err := exec.LookPath(p)
		if err != nil {
			t.Skipf("this host has no %s", p)
		}
		if at, err = filepath.EvalSymlinks(at); err != nil {
			t.Fatal(err)
		}
		copyFile(t, at, filepath.Join(root, "bin", p))
		out, err := exec.Command("ldd", at).Output()
		if err != nil {
			t.Fatal(err)
		}
		for word := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(word, "/") {
				files[word] = true
			}
		}
	}
	for f := range files {
		copyFile(t, f, filepath.Join(root, f))
	}
	return root
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// confinedOutput runs a script as packages' scripts are run.
func confinedOutput(ctx context.Context, t *testing.T, root, script string) (string, error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	err = s.installing(ctx, job{log: &log, confined: &confinement{
		Root: root, ReadOnly: map[string]string{"var/cache/apt/archives": s.dir},
		Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/bin"},
	}})
	return log.String(), err
}

// TestConfined tries what a script of a package must not manage, as root of a build.
func TestConfined(t *testing.T) {
	t.Parallel()
	root := tree(t, "sh", "ls", "cat", "mkdir", "mount", "mknod", "chroot", "chown", "head", "dd", "perl", "setcap", "touch", "stat", "nice", "sleep", "unshare", "hostname", "umount", "grep", "wc", "true")
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
	// Modules of perl are not in the tree: these need none.
	reach := `perl -e "socket(S, 2, 1, 0) && connect(S, pack(q(SnC4x8), 2, ` + port + `, 127, 0, 0, 1)) or exit 1"`
	ring := `perl -e "\$! = 0; syscall(425, 0, 0); exit(\$! + 0 == 38 ? 1 : 0)"`
	file := `cat ` + canary
	// What must fail within works outside: a probe that works nowhere shows nothing.
	for name, probe := range map[string]string{"network": reach, "host-files": file} {
		if out, err := exec.Command("sh", "-c", probe).CombinedOutput(); err != nil {
			t.Fatalf("the probe %s does not work outside: %v\n%s", name, err, out)
		}
	}
	if exec.Command("sh", "-c", ring).Run() != nil {
		t.Log("this kernel has no io_uring: nothing is shown of it")
	}
	said, err := confinedOutput(t.Context(), t, root, `
hole() { name=$1; shift; if ( eval "$@" ) >/dev/null 2>&1; then echo "HOLE $name"; else echo "held $name"; fi; }
works() { name=$1; shift; if ( eval "$@" ) >/tmp/said 2>&1; then echo "works $name"; else echo "BROKEN $name: $(cat /tmp/said)"; fi; }
hole network '`+reach+`'
hole interfaces 'ls /sys/class/net/eth0'
hole mount 'mkdir /tmp/m; mount -t tmpfs none /tmp/m'
hole unmount 'umount /proc/sys'
hole namespaces 'unshare -m true'
hole disk 'mknod /tmp/disk b 7 0 && head -c1 /tmp/disk'
hole memory 'mknod /dev/mem2 c 1 1 && head -c1 /dev/mem2'
hole sysctl 'echo x > /proc/sys/kernel/core_pattern'
hole sysrq 'echo h > /proc/sysrq-trigger'
hole kcore 'head -c1 /proc/kcore | grep -q .'
hole processes 'test -e /proc/400 || test $(ls -d /proc/[0-9]* | wc -l) -gt 40'
hole host-files '`+file+`'
hole escape 'mkdir -p /tmp/x; chroot /tmp/x true; perl -e "chroot(q(/tmp/x)); chdir(q(..)) for 1..20; chroot(q(.)); exit(-e q(/proc/1/root/etc/hostname) || -e q(/usr/local/go) ? 0 : 1)"'
hole cache 'touch /var/cache/apt/archives/poison'
hole priority 'nice -n -10 true 2>&1 | { read x && exit 1; exit 0; }'
hole environment 'grep -zvE "^PATH=" /proc/1/environ'
hole io_uring '`+ring+`'
hole packets 'perl -e "socket(my \$s, 17, 3, 0) or exit 1"'
hole hostname 'hostname evil'
works owner 'touch /tmp/f; chown 1000:1000 /tmp/f; test $(stat -c %u /tmp/f) = 1000'
works device 'mknod /tmp/null c 1 3'
works capability 'setcap cap_net_raw+ep /tmp/f'
works null 'echo > /dev/null; head -c1 /dev/urandom > /dev/null'
works user 'perl -e "\$) = 1000; \$> = 1000; exit(\$> == 1000 ? 0 : 1)"'
works loopback 'perl -e "socket(L, 2, 1, 0) && bind(L, pack(q(SnC4x8), 2, 4321, 127, 0, 0, 1)) && listen(L, 1) && socket(S, 2, 1, 0) && connect(S, pack(q(SnC4x8), 2, 4321, 127, 0, 0, 1)) or exit 1"'
works control-groups '! grep -v ":/\$" /proc/self/cgroup'
echo "descriptors $(ls /proc/self/fd | wc -l)"
while read line; do case $line in CapBnd*|NoNewPrivs*|Seccomp:*) echo "$line";; esac; done < /proc/self/status
`)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if strings.Contains(said, "HOLE") || strings.Contains(said, "BROKEN") || strings.Count(said, "held") != 19 || strings.Count(said, "works") != 7 {
		t.Errorf("packages' scripts can do more or less than they should:\n%s", said)
	}
	// Standard input, output and error, and the directory that ls reads.
	for _, want := range []string{"descriptors 4\n", "NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t00000000a80405fb"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in:\n%s", want, said)
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(root, "tmp/f"), &st); err != nil || st.Uid != 1000 {
		t.Errorf("the owner of a file of the image: %d, %v", st.Uid, err)
	}
	// The attribute names no user namespace: it counts on bare machines, too.
	b := make([]byte, 64)
	n, err := unix.Lgetxattr(filepath.Join(root, "tmp/f"), "security.capability", b)
	if err != nil || n != 20 {
		t.Errorf("a capability of a file of the image: %d bytes, %v", n, err)
	}
	if err := unix.Lstat(filepath.Join(root, "tmp/null"), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != unix.Mkdev(1, 3) {
		t.Errorf("a device of the image: %+v, %v", st, err)
	}
}

// TestConfinedEnds sees that what waits for ever ends with the build, and all that it
// started.
func TestConfinedEnds(t *testing.T) {
	t.Parallel()
	root := tree(t, "sh", "sleep")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	_, err := confinedOutput(ctx, t, root, `sleep 97531 & sleep 97531`)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Minute {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if out, err := exec.Command("pgrep", "-f", "sleep 97531").Output(); err == nil {
		t.Errorf("it left processes %s", out)
	}
}

// TestAfterInstall sees that links that a package made lead nowhere on the host.
func TestAfterInstall(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), filepath.Join(t.TempDir(), "shadow")
	for _, dir := range []string{"usr/sbin", "etc/apt"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600), os.Symlink(outside, filepath.Join(root, "etc/apt/sources.list")),
		os.Symlink(outside, filepath.Join(root, "usr/sbin/policy-rc.d"))); err != nil {
		t.Fatal(err)
	}
	if err := afterInstall(root, []byte("deb http://mirror x\n")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "secret" {
		t.Errorf("a file of the host is now %q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(root, "etc/apt/sources.list")); err != nil || string(b) != "deb http://mirror x\n" {
		t.Errorf("the list of mirrors is %q, %v", b, err)
	}
}

// TestMirrorProxy lets a build reach its mirrors, and where they send it, and nothing else.
func TestMirrorProxy(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl here")
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("elsewhere")) }))
	defer elsewhere.Close()
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) }))
	defer secret.Close()
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, elsewhere.URL+"/there", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("package"))
	}))
	defer mirror.Close()
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("sealed")) }))
	defer tls.Close()
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	none := func(*url.URL) (*url.URL, error) { return nil, nil }
	var log bytes.Buffer
	err = s.run(t.Context(), job{log: &log, mirrors: newMirrorProxy([]string{"deb [x=y] " + mirror.URL + " suite main", tls.URL}, none), argv: []string{"/bin/sh", "-c",
		`get() { echo "$1 $(curl -sSk -m 10 $3 "$2" 2>&1)"; }
		get mirror "$1/pool"; get moved "$1/moved" -L; get tls "$2"; get secret "$3"; get direct "$3" "--noproxy *"; get mirror-direct "$1" "--noproxy *"`,
		"sh", mirror.URL, tls.URL, secret.URL}})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	said := log.String()
	for _, want := range []string{"mirror package\n", "moved elsewhere\n", "tls sealed\n", "is not a mirror of this build\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in:\n%s", want, said)
		}
	}
	if strings.Contains(said, "secret secret") || strings.Contains(said, "direct secret") || strings.Contains(said, "mirror-direct package") {
		t.Errorf("a build reaches what is no mirror:\n%s", said)
	}
}

// TestWayOut finds the proxy that the host's apt or its environment names.
func TestWayOut(t *testing.T) {
	t.Parallel()
	config := "Acquire::http::Proxy \"http://proxy:3128\";\nAcquire::http::Proxy::inner.example \"DIRECT\";\nAcquire::https::Proxy::tls.example \"http://other:1\";\n"
	for to, want := range map[string]string{
		"http://mirror.example/debian": "http://proxy:3128", "http://inner.example/": "", "https://mirror.example/": "http://proxy:3128",
		"https://tls.example/": "http://other:1",
	} {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		via, err := wayOut(config)(u)
		if got := ""; err != nil || (via == nil) != (want == "") || via != nil && via.String() != want {
			t.Errorf("%s by %v %s, want %q (%v)", to, via, got, want, err)
		}
	}
	if got := withoutProxies(config + "Acquire::Retries \"3\";\n"); got != "Acquire::Retries \"3\";\n" {
		t.Errorf("settings without proxies: %q", got)
	}
}

// TestPermanentFailures reports what trying again mends from what it does not.
func TestPermanentFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		said []string
		code muster.Code
		want string
	}{
		{"a package's script", []string{
			"Setting up clang (1:19.0-63) ...",
			"update-alternatives: error: alternative path /usr/bin/clang++ doesn't exist",
			"dpkg: error processing package clang (--configure):",
			" installed clang package post-installation script subprocess returned error exit status 2",
			"E: Sub-process /usr/bin/dpkg returned an error code (1)"}, muster.EInvalid, "alternative path /usr/bin/clang++ doesn't exist"},
		{"a full disk", []string{
			"dpkg: error processing archive big.deb (--unpack):",
			" cannot copy extracted data: failed to write (No space left on device)",
			"E: Sub-process /usr/bin/dpkg returned an error code (1)"}, muster.EUnavailable, "No space left"},
		{"a mirror that is away", []string{"E: Failed to fetch http://mirror/x.deb  Connection failed"}, muster.EUnavailable, "Failed to fetch"},
		{"a script that was killed", []string{
			"dpkg: error processing package big (--configure):",
			" installed big package post-installation script subprocess was killed by signal (Killed)"}, muster.EUnavailable, "big"},
		{"packages that exclude each other", []string{"E: Unable to correct problems, you have held broken packages."}, muster.EInvalid, "held broken packages"},
	} {
		err := explainBuild("hpc with clang", "/x.log", &jobError{program: "apt-get", err: errors.New("exit status 100"), said: c.said})
		if muster.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v (%s), want %s with %q", c.name, err, muster.CodeOf(err), c.code, c.want)
		}
	}
}

// TestFilesThatHoldUp sees that pipes and devices where files should be are no trap for
// who reads an image.
func TestFilesThatHoldUp(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("devices need root")
	}
	dir := t.TempDir()
	for _, sub := range []string{"usr/lib", "var/lib/dpkg", "etc", "var/log"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, pipe := range []string{"usr/lib/os-release", "var/lib/dpkg/status", "etc/shadow", "etc/machine-id"} {
		if err := unix.Mkfifo(filepath.Join(dir, pipe), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mknod(filepath.Join(dir, "etc/passwd"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	done := make(chan error, 3)
	go func() {
		done <- inspect(dir, &muster.Image{})
		done <- tidyFiles(in)
		_, err := accountNames(in)
		done <- err
	}()
	for _, what := range []string{"inspect", "tidy", "read the accounts"} {
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s waits for ever", what)
		}
	}
}
