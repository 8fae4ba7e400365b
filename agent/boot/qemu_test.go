package boot_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/bootapi"
	"github.com/muster-hpc/muster/metal/initramfs"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

const (
	testMAC  = "52:54:00:12:34:56"
	testMAC2 = "52:54:00:12:34:57"
	// guestServer is where QEMU's user network shows the host.
	guestServer = "10.0.2.2"
)

// lab is what all boots of this test share.
type lab struct {
	kernel, initrd string
	root           string // squashfs
	report         chan found
	reportPort     int
	filler         int // bytes of the image beside its init
}

type found struct {
	Seed, Stages, SeedMode, Hostname, File string
	Scratch, Memory                        string
	Links                                  map[string]string
	Mounts, Root, Args                     []string
	Agent, Unit                            bool
	UpMS                                   int64
}

// site is a server that boots one machine.
type site struct {
	t     *testing.T
	serve func()
	mu    sync.Mutex
	boot  bootapi.Boot
	order *wire.BootTask
	heard []*wire.BootCheckIn
	trust []muster.Trust
	// hold is what a machine is told that was started again; orders is how often a task
	// was given out, and again are the hellos of machines that were started again.
	hold   *wire.BootWait
	orders int
	again  []*wire.BootCheckIn
	url    string
	ca     string
	// file serves the image instead of the plain way; nil: the plain way.
	file http.HandlerFunc
	gets []string
}

func (s *site) Boot(_ context.Context, n string) (bootapi.Boot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n != s.boot.Number {
		return bootapi.Boot{}, muster.Errorf(muster.ENotFound, "none")
	}
	return s.boot, nil
}

// Restarted keeps the order from the new program for as long as the test says.
func (s *site) Restarted(_ context.Context, _ string, h *wire.BootCheckIn) (*wire.BootWait, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = append(s.again, h)
	return s.hold, nil
}

func (s *site) Bind(_ context.Context, _ string, key []byte, _ muster.Trust) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boot.Key == nil {
		s.boot.Key = key
	}
	return s.boot.Key, nil
}

func (s *site) Task(context.Context, string, *wire.BootCheckIn) (*wire.BootTask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders++
	return s.order, nil
}

func (s *site) Refused(context.Context, string, error) {}

func (s *site) Heard(_ context.Context, _ string, h *wire.BootCheckIn, trust muster.Trust) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard, s.trust = append(s.heard, h), append(s.trust, trust)
	return nil
}

func (s *site) hellos() []*wire.BootCheckIn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*wire.BootCheckIn(nil), s.heard...)
}

// newSite starts a server with an authority of its own.
func newSite(t *testing.T, l *lab, number string) *site {
	t.Helper()
	s := &site{t: t, boot: bootapi.Boot{
		Number: number, Machine: "m1", Kind: wire.BootImage, MACs: []string{testMAC},
		Address: netip.MustParseAddr("127.0.0.1"), // what QEMU's user network makes of it
	}}
	const key = "the-key-of-this-boot"
	authority := newAuthority(t)
	s.ca = authority.Fingerprint()
	desk, err := bootapi.New(bootapi.Config{Registry: s, Log: slog.New(slog.NewTextHandler(testLog{t}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(wire.BootPath, desk.Handler())
	mux.HandleFunc(wire.BootFilePath+"root", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.mu.Lock()
		s.gets = append(s.gets, r.Header.Get("Range"))
		s.mu.Unlock()
		if s.file != nil {
			s.file(w, r)
			return
		}
		http.ServeFile(w, r, l.root)
	})
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{
		Handler: mux, TLSConfig: authority.NodeTLS(nil, []netip.Addr{netip.MustParseAddr(guestServer)}),
		ErrorLog: slog.NewLogLogger(slog.NewTextHandler(testLog{t}, nil), slog.LevelWarn),
	}
	// Served from when a machine is started: what a test says of the site before is
	// said once.
	s.serve = sync.OnceFunc(func() {
		done := make(chan struct{})
		go func() { defer close(done); _ = srv.ServeTLS(listen, "", "") }()
		t.Cleanup(func() { _ = srv.Close(); <-done })
	})
	s.url = fmt.Sprintf("https://%s:%d", guestServer, listen.Addr().(*net.TCPAddr).Port)
	s.order = &wire.BootTask{
		Kind: wire.BootImage, Machine: "m1", Attempt: 3, Hostname: "n01", GiveUp: muster.Duration(120 * time.Second),
		Image: &wire.BootFiles{ID: "sha256:0123456789abcdef", Root: pieces(t, l.root), Key: key, Memory: 1 << 20},
		Links: []wire.BootLink{
			{MAC: testMAC, Name: "mgmt0", Address: netip.MustParsePrefix("10.0.2.15/24"), Gateway: netip.MustParseAddr(guestServer), Default: true},
			{MAC: testMAC2, Name: "msg0", Address: netip.MustParsePrefix("10.91.0.7/24"), MTU: 1400},
		},
		Bootstrap: &wire.Bootstrap{Server: s.url, Token: "a-token", Machine: "m1", Attempt: 3},
		Files:     []wire.File{{Path: "/etc/extra", Mode: 0o644, Content: "extra"}},
	}
	return s
}

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.OpenAuthority(filepath.Join(t.TempDir(), "keys"), muster.SystemClock{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Logf("server: %s", bytes.TrimSpace(b))
	return len(b), nil
}

// pieces describes a file as a task does.
func pieces(t *testing.T, name string) wire.BootFile {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f := wire.BootFile{Path: "root", Size: int64(len(b)), Piece: 1 << 20}
	for at := int64(0); at < f.Size; at += f.Piece {
		sum := sha256.Sum256(b[at:min(at+f.Piece, f.Size)])
		f.Pieces = append(f.Pieces, sum[:])
	}
	return f
}

// machine is a QEMU that runs.
type machine struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	lines []string
	over  chan struct{}
}

// start starts a machine; more is added to QEMU's arguments.
func (l *lab) start(t *testing.T, s *site, ca string, more ...string) *machine {
	t.Helper()
	s.serve()
	args := append([]string{
		// Without cmpxchg16b: QEMU 7.2 spoils the flags now and then when it emulates
		// it, and the kernel dies in the middle of allocating memory.
		"-accel", "tcg", "-cpu", cpu(), "-smp", "1", "-m", "768", "-nodefaults", "-nographic", "-no-reboot",
		"-serial", "stdio", "-kernel", l.kernel, "-initrd", l.initrd,
		"-append", fmt.Sprintf("console=ttyS0 quiet panic=-1 muster.server=%s muster.ca=sha256:%s muster.boot=%s BOOTIF=01-%s",
			s.url, ca, s.boot.Number, strings.ReplaceAll(testMAC, ":", "-")),
		"-netdev", "user,id=n0", "-device", "virtio-net-pci,netdev=n0,romfile=,mac=" + testMAC,
		"-netdev", "user,id=n1,net=10.0.9.0/24,restrict=on", "-device", "virtio-net-pci,netdev=n1,romfile=,mac=" + testMAC2,
		"-device", "virtio-rng-pci",
	}, more...)
	m := &machine{cmd: exec.Command("qemu-system-x86_64", args...), over: make(chan struct{})}
	m.cmd.Stderr = testLog{t}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.over)
		in := bufio.NewScanner(out)
		for in.Scan() {
			line := strings.TrimRight(in.Text(), "\r")
			t.Logf("%6.2f %s", time.Since(began).Seconds(), line)
			m.mu.Lock()
			m.lines = append(m.lines, line)
			m.mu.Unlock()
		}
		_ = m.cmd.Wait()
	}()
	t.Cleanup(func() { _ = m.cmd.Process.Kill(); <-m.over })
	return m
}

// cpu is the processor that QEMU pretends.
func cpu() string {
	if c := os.Getenv("MUSTER_TEST_CPU"); c != "" {
		return c
	}
	return "Opteron_G3,-misalignsse,+ssse3,+sse4.1,+sse4.2,-cx16" // as in package lab
}

// prints waits for a line with this text.
func (m *machine) prints(t *testing.T, text string, within time.Duration) {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		m.mu.Lock()
		all := strings.Join(m.lines, "\n")
		m.mu.Unlock()
		if strings.Contains(all, text) {
			return
		}
		select {
		case <-m.over:
			if !strings.Contains(all, text) {
				t.Fatalf("the machine went off without %q", text)
			}
		default:
		}
	}
	t.Fatalf("no %q within %v", text, within)
}

// TestMachine boots real kernels in QEMU.
func TestMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("boots machines in QEMU: not with -short")
	}
	l := newLab(t)
	t.Run("boots", func(t *testing.T) {
		s := newSite(t, l, "b-boots-0001")
		l.start(t, s, s.ca)
		l.becomes(t, s)
	})
	t.Run("resumes", func(t *testing.T) {
		s := newSite(t, l, "b-resumes-01")
		var n int
		s.file = func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			n++
			cutOff := n <= 6
			s.mu.Unlock()
			if cutOff { // each of the first answers ends early
				w = &short{ResponseWriter: w, left: 300 << 10}
			}
			http.ServeFile(w, r, l.root)
		}
		l.start(t, s, s.ca)
		l.becomes(t, s)
		var first, within int
		s.mu.Lock()
		gets := slices.Clone(s.gets)
		s.mu.Unlock()
		for _, g := range gets {
			var a, b int64
			_, _ = fmt.Sscanf(g, "bytes=%d-%d", &a, &b)
			if a%(1<<20) == 0 {
				first++
			} else {
				within++
			}
		}
		if within < 6 || first != len(s.order.Image.Root.Pieces) {
			t.Errorf("%d requests from the start of a piece, %d within: not resumed\n%v", first, within, gets)
		}
	})
	t.Run("digest", func(t *testing.T) {
		s := newSite(t, l, "b-digest-001")
		s.order.GiveUp = muster.Duration(20 * time.Second)
		b, err := os.ReadFile(l.root)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		s.file = func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "root", time.Time{}, bytes.NewReader(b))
		}
		m := l.start(t, s, s.ca)
		m.prints(t, "image: FAILED: the image that arrives is not the one of the task", 5*time.Minute)
		m.prints(t, "given up; off", 5*time.Minute)
		select {
		case <-m.over:
		case <-time.After(5 * time.Minute):
			t.Error("the machine is not off")
		}
		var failure *wire.BootFailure
		for _, h := range s.hellos() {
			if h.Failure != nil {
				failure = h.Failure
			}
		}
		if failure == nil || failure.Code != "digest" || failure.Stage != "image" || !failure.Final {
			t.Errorf("the server heard %+v", failure)
		}
	})
	t.Run("by a channel", func(t *testing.T) { l.byChannel(t) })
	t.Run("started again", func(t *testing.T) { l.startedAgain(t) })
	t.Run("cleans", func(t *testing.T) { l.cleans(t) })
	t.Run("scratch", func(t *testing.T) { l.scratch(t) })
	t.Run("hibernates", func(t *testing.T) { l.hibernates(t) })
	t.Run("tests", func(t *testing.T) { l.tests(t) })
	t.Run("a disk that fails", func(t *testing.T) { l.fails(t) })
	t.Run("another authority", func(t *testing.T) {
		s := newSite(t, l, "b-authority1")
		m := l.start(t, s, newAuthority(t).Fingerprint())
		m.prints(t, "check-in: FAILED: what answers at the server's address shows another authority than muster.ca says", 5*time.Minute)
		if n := len(s.hellos()); n > 0 {
			t.Errorf("%d hellos reached a server that was not believed", n)
		}
	})
}

// short cuts an answer off.
type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Write(b []byte) (int, error) {
	if s.left -= len(b); s.left < 0 {
		if c, _, err := http.NewResponseController(s.ResponseWriter).Hijack(); err == nil {
			_ = c.Close()
		}
		return 0, io.ErrClosedPipe
	}
	return s.ResponseWriter.Write(b)
}

func (s *short) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// becomes waits until the image's init has told what it found, and checks that.
func (l *lab) becomes(t *testing.T, s *site) {
	t.Helper()
	var f found
	select {
	case f = <-l.report:
	case <-time.After(5 * time.Minute):
		t.Fatal("the image's init does not report")
	}
	var seed wire.Bootstrap
	if err := json.Unmarshal([]byte(f.Seed), &seed); err != nil || seed.Token != "a-token" || seed.Machine != "m1" || !strings.Contains(seed.CA, "BEGIN CERTIFICATE") {
		t.Errorf("seed %+v: %v", f.Seed, err)
	}
	if f.SeedMode != "-r--------" || f.Hostname != "n01" || f.File != "extra" || !f.Agent || !f.Unit {
		t.Errorf("%+v", f)
	}
	if f.Links["mgmt0"] != "10.0.2.15/24" || f.Links["msg0"] != "10.91.0.7/24" {
		t.Errorf("links %v", f.Links)
	}
	for _, name := range f.Root {
		if name == "init" || name == "lib" {
			t.Errorf("the root holds what belongs to the initramfs: %v", f.Root)
		}
	}
	var st []wire.BootStage
	if err := json.Unmarshal([]byte(f.Stages), &st); err != nil || len(st) != 8 {
		t.Errorf("stages %s: %v", f.Stages, err)
	}
	text := ""
	for _, x := range st {
		text += fmt.Sprintf(" %s %.2f", x.Name, x.After.Seconds())
	}
	t.Logf("stages in seconds:%s, image's init %.2f", text, float64(f.UpMS)/1000)
	hellos := s.hellos()
	if len(hellos) == 0 || hellos[0].Facts == nil || hellos[0].MAC != testMAC || hellos[0].Facts.Memory < 512<<20 || len(hellos[0].MACs) != 2 {
		t.Errorf("hellos %+v", hellos)
	} else {
		b, _ := json.Marshal(hellos[0].Facts)
		t.Logf("facts: %s", b)
	}
}

// newLab makes kernel, initramfs and image.
func newLab(t *testing.T) *lab {
	t.Helper()
	for _, tool := range []string{"qemu-system-x86_64", "mksquashfs"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s: install qemu-system-x86 and squashfs-tools", tool)
		}
	}
	tree := kernelTree(t)
	dir := t.TempDir()
	l := &lab{initrd: filepath.Join(dir, "initrd"), root: filepath.Join(dir, "root.squashfs"), report: make(chan found, 4), filler: 24 << 20}
	kernels, err := filepath.Glob(filepath.Join(tree, "boot/vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		t.Skipf("%s holds %d kernels, not one", tree, len(kernels))
	}
	l.kernel = kernels[0]
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var f found
		if json.NewDecoder(r.Body).Decode(&f) == nil {
			l.report <- f
		}
	})}
	go func() { _ = srv.Serve(listen) }()
	t.Cleanup(func() { _ = srv.Close() })
	l.reportPort = listen.Addr().(*net.TCPAddr).Port

	agent := filepath.Join(dir, "muster-agent")
	build(t, agent, "../../cmd/muster-agent")
	program, err := os.ReadFile(agent)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := initramfs.FromFS(os.DirFS(tree))
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(l.initrd)
	if err != nil {
		t.Fatal(err)
	}
	r, err := initramfs.Build(out, initramfs.Options{Agent: program, Modules: modules})
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("initramfs: %+v; the agent alone %d bytes", r, len(program))
	if r.Size > 12<<20 {
		t.Errorf("the initramfs has %d bytes: more than 12 MiB", r.Size)
	}
	l.image(t, filepath.Join(dir, "image"))
	return l
}

// image makes a small squashfs with an init.
func (l *lab) image(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{"sbin", "etc", "proc", "sys", "dev", "run", "tmp", "usr/lib"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build(t, filepath.Join(dir, "sbin/init"), "./testdata/init")
	filler := make([]byte, l.filler)
	if _, err := rand.Read(filler); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"etc/report": fmt.Appendf(nil, "%s:%d", guestServer, l.reportPort), "usr/lib/filler": filler} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("mksquashfs", dir, l.root, "-noappend", "-quiet", "-no-progress", "-comp", "zstd", "-all-root").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func build(t *testing.T, to, pkg string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", pkg, err, out)
	}
}

// kernelTree is a folder with an unpacked kernel of Debian for machines in a cloud:
// MUSTER_TEST_KERNEL_TREE, or fetched with apt and kept.
func kernelTree(t *testing.T) string {
	t.Helper()
	if tree := os.Getenv("MUSTER_TEST_KERNEL_TREE"); tree != "" {
		return tree
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("nowhere to keep a kernel: %v", err)
	}
	at := filepath.Join(cache, "muster-test", "linux-image-cloud-amd64")
	if list, err := filepath.Glob(filepath.Join(at, "boot/vmlinuz-*")); err == nil && len(list) == 1 {
		return at
	}
	if err := fetchKernel(t, at); err != nil {
		t.Skipf("no kernel to boot: %v; MUSTER_TEST_KERNEL_TREE names a folder with boot and usr/lib/modules", err)
	}
	return at
}

// fetchKernel fetches and unpacks the kernel of Debian 13. Nothing is installed.
func fetchKernel(t *testing.T, to string) error {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	conf := fmt.Sprintf("Dir::State::Lists %q;\nDir::Cache %q;\nDir::Etc::sourcelist %q;\nDir::Etc::sourceparts \"/dev/null\";\nDir::State::status \"/dev/null\";\nAPT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n",
		dir+"/lists", dir, dir+"/sources.list")
	source := "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main\n"
	for name, text := range map[string]string{"apt.conf": conf, "sources.list": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	run := func(name string, args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "APT_CONFIG="+dir+"/apt.conf")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, args[0], err)
		}
		return out, nil
	}
	if _, err := run("apt-get", "update", "-q"); err != nil {
		return err
	}
	out, err := run("apt-cache", "depends", "linux-image-cloud-amd64")
	if err != nil {
		return err
	}
	_, name, _ := strings.Cut(string(out), "Depends: ")
	name, _, _ = strings.Cut(name, "\n")
	if _, err := run("apt-get", "download", "-q", strings.TrimSpace(name)); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("%d packages came", len(debs))
	}
	tmp := to + ".new"
	_ = os.RemoveAll(tmp)
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	if _, err := run("dpkg-deb", "-x", debs[0], tmp); err != nil {
		return err
	}
	_ = os.RemoveAll(to)
	return os.Rename(tmp, to)
}
