package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/internal/executable"
)

// pretend gives a store programs that only look like mmdebstrap and mksquashfs:
// the first makes a tree with the packages that it was asked for, the second
// packs names and contents. They run without root and without a network.
func pretend(t *testing.T, before string) *Store {
	t.Helper()
	s := open(t)
	bin := t.TempDir()
	script := func(name, text string) string {
		file := filepath.Join(bin, name)
		if err := executable.Write(file, []byte("#!/bin/sh\nset -eu\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	s.tools = tools{
		apt: func(context.Context) (string, string) { return "", "" },
		mmdebstrap: script("mmdebstrap", before+`
echo "I: running apt-get update..."
include= root= seen=
for a; do
	case $a in
	--include=*) include=${a#--include=};;
	-*|deb*) ;;
	*) if [ -z "$seen" ]; then seen=1; else root=$a; fi;;
	esac
done
echo "I: installing remaining packages inside the chroot..."
mkdir -p "$root/var/lib/dpkg" "$root/etc" "$root/usr/lib" "$root/var/log/apt" "$root/etc/ssh"
for p in $(echo "$include" | tr , ' '); do
	printf 'Package: %s\nStatus: install ok installed\nArchitecture: amd64\nVersion: 24.11.5-4\n\n' "$p" >> "$root/var/lib/dpkg/status"
done
echo 'PRETTY_NAME="Pretend 1"' > "$root/usr/lib/os-release"
echo log > "$root/var/log/apt/term.log"
echo key > "$root/etc/ssh/ssh_host_rsa_key"
echo 'root:*:12345:0:99999:7:::' > "$root/etc/shadow"
date +%N > "$root/etc/machine-id"
echo built >> "${0%/*}/count"
`),
		mksquashfs: script("mksquashfs", `cd "$1"; find . -type f | sort | xargs sha256sum > "$2"
find . -printf '%p %T@\n' | sort >> "$2"`),
		unsquashfs: "/bin/false", aptGet: "/bin/false", aptCache: "/bin/false",
	}
	return s
}

func builds(s *Store) int {
	data, _ := os.ReadFile(filepath.Join(filepath.Dir(s.tools.mmdebstrap), "count"))
	return strings.Count(string(data), "built")
}

func pretendRecipe(t *testing.T, more string) *Recipe {
	t.Helper()
	text := strings.Replace(goodRecipe, "architecture: amd64", "architecture: "+runtime.GOARCH, 1)
	rec, err := book(map[string]string{"small": text + more}).Load("small")
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestBuildOnceThenReuse(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := pretend(t, "")
	rec := pretendRecipe(t, "")
	first, err := s.Build(ctx, rec, BuildOptions{})
	if err != nil || !first.Built {
		t.Fatalf("%+v, %v", first, err)
	}
	m := first.Image
	if m.Name != "small" || m.System != "Pretend 1" || len(m.Packages) != 2 || m.Slurm != "" || m.Requires.CPULevel != 2 || m.Agent.Max != 2 || m.Uncompressed == 0 {
		t.Errorf("manifest = %+v", m)
	}
	second, err := s.Build(ctx, rec, BuildOptions{})
	if err != nil || second.Built || second.Image.ID != m.ID || builds(s) != 1 {
		t.Errorf("%+v, %v, %d builds", second, err, builds(s))
	}
	// Rebuilt from the same packages it is the same image, to the byte. (The
	// mirror of this test answers nothing, so that a refresh builds.)
	third, err := s.Build(ctx, rec, BuildOptions{Refresh: true})
	if err != nil || third.Image.ID != m.ID || third.Image.Files[0].SHA256 != m.Files[0].SHA256 {
		t.Errorf("%+v, %v", third, err)
	}
	other, err := s.Build(ctx, pretendRecipe(t, "user_root: true\n"), BuildOptions{})
	if err != nil || !other.Built || other.Image.ID == m.ID {
		t.Errorf("%+v, %v", other, err)
	}
	if got, err := s.Resolve("small"); err != nil || got.ID != other.Image.ID {
		t.Errorf("the name means %v, %v", got, err)
	}
	// A damaged image is not reused.
	damage(t, s, other.Image, "damaged")
	if again, err := s.Build(ctx, pretendRecipe(t, "user_root: true\n"), BuildOptions{}); err != nil || !again.Built {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := s.Verify(ctx, other.Image.ID); err != nil {
		t.Error(err)
	}
	left, _ := os.ReadDir(filepath.Join(s.dir, "tmp"))
	if len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestConcurrentBuildersBuildOnce(t *testing.T) {
	t.Parallel()
	s := pretend(t, "sleep 0.2")
	rec := pretendRecipe(t, "")
	var group sync.WaitGroup
	var mu sync.Mutex
	built := 0
	for range 4 {
		group.Go(func() {
			other, err := Open(s.dir, nil) // as another process would
			if err != nil {
				t.Error(err)
				return
			}
			other.tools = s.tools
			r, err := other.Build(context.Background(), rec, BuildOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if r.Built {
				built++
			}
		})
	}
	group.Wait()
	if built != 1 || builds(s) != 1 {
		t.Errorf("%d built, %d builds", built, builds(s))
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	s := pretend(t, `echo "E: Unable to locate package nanoo"; exit 1`)
	_, err := s.Build(context.Background(), pretendRecipe(t, ""), BuildOptions{})
	var me *muster.Error
	if !asError(err, &me) || me.Code != muster.EUnavailable || me.Reason != muster.ReasonBuildFailed || !strings.Contains(me.Message, "nanoo") || me.Hint == "" {
		t.Errorf("err = %+v", err)
	}
	if _, err := s.Resolve("small"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("err = %v", err)
	}
	left, _ := os.ReadDir(filepath.Join(s.dir, "tmp"))
	ids, _ := s.ids()
	if len(left)+len(ids) != 0 {
		t.Errorf("left: %v %v", left, ids)
	}
	if log, err := os.ReadFile(s.logPath("small")); err != nil || !strings.Contains(string(log), "nanoo") {
		t.Errorf("log = %q, %v", log, err)
	}
}

func TestCancelledBuildEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := pretend(t, "sleep 300")
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := s.Build(ctx, pretendRecipe(t, ""), BuildOptions{}); err == nil || time.Since(began) > 2*time.Minute {
		t.Errorf("err = %v after %v", err, time.Since(began))
	}
	left, _ := os.ReadDir(filepath.Join(s.dir, "tmp"))
	if len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	s := pretend(t, "")
	ctx := context.Background()
	rec := pretendRecipe(t, "")
	for what, o := range map[string]BuildOptions{"mirror": {Mirror: "ftp://x"}, "level": {Level: 23}} {
		if _, err := s.Build(ctx, rec, o); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%s: err = %v", what, err)
		}
	}
	abstract := *rec
	abstract.Abstract = true
	if _, err := s.Build(ctx, &abstract, BuildOptions{}); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("err = %v", err)
	}
	foreign := *rec
	foreign.Requires.Architecture = map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	if _, err := s.Build(ctx, &foreign, BuildOptions{}); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("err = %v", err)
	}
	slurmless := *rec
	slurmless.Scheduler = "slurm"
	if _, err := s.Build(ctx, &slurmless, BuildOptions{}); muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), "slurmd") {
		t.Errorf("err = %v", err)
	}
}

func TestDeriveWithoutWork(t *testing.T) {
	t.Parallel()
	s := pretend(t, "")
	ctx := context.Background()
	base, err := s.Build(ctx, pretendRecipe(t, ""), BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Derive(ctx, base.Image.ID, []string{"nano", "openssh-server=24.11.5-4"}, BuildOptions{})
	if err != nil || r.Built || r.Image.ID != base.Image.ID {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = s.Derive(ctx, base.Image.ID, []string{"ok", "-o=x", "NO"}, BuildOptions{})
	if muster.CodeOf(err) != muster.EInvalid || errortest.Brief(err) != "packages[1] bad-value; packages[2] bad-value" {
		t.Errorf("err = %v", err)
	}
	if _, err := s.Derive(ctx, base.Image.ID, make([]string, maxAdded+1), BuildOptions{}); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("err = %v", err)
	}
	if _, err := s.Derive(ctx, muster.ImageID("sha256:"+strings.Repeat("0", 64)), nil, BuildOptions{}); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("err = %v", err)
	}
}

func TestUnknownPackage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"muster: unknown fooo":                         "fooo",
		"E: Version '1' for 'nano' was not found":      "'nano'",
		"E: Package 'x' has no installation candidate": "'x'",
	} {
		if p, ok := unknownPackage(line); !ok || !strings.Contains(p.Message, want) {
			t.Errorf("%q = %+v", line, p)
		}
	}
	if _, ok := unknownPackage("E: Sub-process returned an error code"); ok {
		t.Error("not about a package")
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	var p policy
	for line := range strings.Lines("adduser:\n  Installed: (none)\n  Candidate: 3.134\n  Version table:\n     3.134 500\ng++:\n  Candidate: (none)\n") {
		p.line(strings.TrimSuffix(line, "\n"))
	}
	if p.candidates["adduser"] != "3.134" || p.candidates["g++"] != "(none)" || len(p.candidates) != 2 {
		t.Errorf("%v", p.candidates)
	}
}

func TestAptAnswers(t *testing.T) {
	t.Parallel()
	dump := "APT::Architecture \"amd64\";\nAcquire::http::Proxy \"http://p:3128\";\nAcquire::http::Proxy::deb.example \"DIRECT\";\nAcquire::http::Proxyx \"no\";\nAcquire::Check-Date \"\";\n"
	got := keepSettings(dump, aptSettings())
	if got != "Acquire::http::Proxy \"http://p:3128\";\nAcquire::http::Proxy::deb.example \"DIRECT\";\n" {
		t.Errorf("%q", got)
	}
	targets := "Ubuntu http://archive.example/ubuntu/\nDebian http://security.example/debian-security/\nDebian http://mirror.example/debian/\nDebian http://second.example/debian/\n"
	if got := debianMirror(targets); got != "http://mirror.example/debian" {
		t.Errorf("mirror = %q", got)
	}
	if got := debianMirror("nonsense\n\nDebian file:/x\n"); got != "" {
		t.Errorf("mirror = %q", got)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	b := Base{Suite: "trixie", Components: []string{"main"}, Mirror: "http://m/debian", SecurityMirror: "http://s/debian-security"}
	got := fmt.Sprint(sources(b, "/k"))
	for _, want := range []string{"deb [signed-by=/k] http://m/debian trixie main", "m/debian trixie-updates", "s/debian-security trixie-security"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	b.Suite = "sid"
	if got := sources(b, ""); len(got) != 1 {
		t.Errorf("sid = %v", got)
	}
}

func TestJobErrorShowsTheReason(t *testing.T) {
	t.Parallel()
	e := &jobError{program: "x", said: []string{"noise", "E: the reason", "noise", "noise"}}
	if got := e.complaints(); len(got) != 1 || got[0] != "E: the reason" {
		t.Errorf("%v", got)
	}
}

func TestPrerequisitesNamePackages(t *testing.T) {
	t.Parallel()
	for _, p := range Prerequisites() {
		if p.Name == "" || p.Why == "" || p.OK == (p.Problem != "") {
			t.Errorf("%+v", p)
		}
	}
	if p := keyringPrerequisite([]string{"/nonexistent"}); p.OK || p.Package != "debian-archive-keyring" {
		t.Errorf("%+v", p)
	}
}
