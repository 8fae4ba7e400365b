package supervisor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/vm/jail"
	"github.com/muster-hpc/muster/vm/qemu"
	"github.com/muster-hpc/muster/vm/supervisor"
)

// TestMain lets the test binary act as a supervisor, as what becomes QEMU in a jail, and as a server
// that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervisor.Argument:
			os.Exit(supervisor.Run())
		case jail.Argument:
			os.Exit(jail.Enter())
		}
	}
	if dir := os.Getenv("MUSTER_TEST_SERVER"); dir != "" {
		os.Exit(server(dir))
	}
	os.Exit(m.Run())
}

// What guest.s can do.
const (
	stays  = ' '
	off    = 'o'
	resets = 'r'
	disk   = 'd'
	floods = 'f'
	counts = 'c'
)

// makeKernel writes a kernel that is guest.s: as Linux, but for what it does.
func makeKernel(dir string, then byte) (string, error) {
	program, err := os.ReadFile("testdata/guest.bin")
	if err != nil {
		return "", err
	}
	k := make([]byte, 0x800)
	k[0x1f1] = 1                                         // sectors of the part for real mode, beside the first
	binary.LittleEndian.PutUint16(k[0x1fe:], 0xaa55)     // it is bootable
	copy(k[0x200:], "\xeb\x3eHdrS")                      // a jump to 0x240; a header follows
	binary.LittleEndian.PutUint16(k[0x206:], 0x0203)     // version of the header
	binary.LittleEndian.PutUint32(k[0x22c:], 0x37ffffff) // how far up its initramfs may be
	copy(k[0x240:], program)
	k[0x240+len(program)-1] = then
	path := filepath.Join(dir, "kernel-"+string(then))
	return path, os.WriteFile(path, k, 0o444)
}

// machines skips where none can be started.
func machines(t *testing.T) string {
	t.Helper()
	if testing.Short() || os.Getuid() != 0 {
		t.Skip("starts machines in QEMU: needs root, and not with -short")
	}
	kind, err := qemu.Type(t.Context())
	if err != nil {
		t.Skip("needs QEMU: scripts/setup lab")
	}
	return kind
}

const testID = 0x6ffe4321 // of nobody

// spec is a small machine, its files beside its directory.
func spec(dir, kind string, then byte) (supervisor.Spec, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return supervisor.Spec{}, err
	}
	kernel, err := makeKernel(filepath.Dir(dir), then)
	if err != nil {
		return supervisor.Spec{}, err
	}
	initrd := filepath.Join(filepath.Dir(dir), "initramfs")
	return supervisor.Spec{Dir: dir, ID: testID, Kernel: kernel, Initramfs: initrd,
		Machine: qemu.Machine{Name: "vm-test", UUID: "0f0e0d0c-0b0a-4908-8706-050403020100", Type: kind, Cores: 1, Memory: 64 << 20, Append: []string{"quiet"}},
		Task:    json.RawMessage(`{"token":"a-secret-token"}`)}, os.WriteFile(initrd, []byte("nothing"), 0o444)
}

func newSpec(t *testing.T, then byte) supervisor.Spec {
	t.Helper()
	s, err := spec(filepath.Join(t.TempDir(), "vm"), machines(t), then)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a machine that ends with the test.
func start(t *testing.T, s supervisor.Spec) *supervisor.Supervisor {
	t.Helper()
	t.Cleanup(func() {
		if err := supervisor.End(context.Background(), s.Dir); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			b, _ := os.ReadFile(supervisor.Log(s.Dir))
			t.Logf("its log:\n%s", b)
		}
	})
	k, err := supervisor.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// reader reads a console by lines.
func reader(t *testing.T, k *supervisor.Supervisor) (*bufio.Scanner, io.Closer) {
	t.Helper()
	c, err := k.Console(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	timer := time.AfterFunc(2*time.Minute, func() { _ = c.Close() })
	t.Cleanup(func() { timer.Stop() })
	return bufio.NewScanner(c), c
}

// until returns the line that begins so.
func until(t *testing.T, in *bufio.Scanner, prefix string) string {
	t.Helper()
	var all []string
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return rest
		}
		all = append(all, line)
	}
	t.Fatalf("no line begins with %q (%v) in:\n%s", prefix, in.Err(), strings.Join(all, "\n"))
	return ""
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so after a minute: %s", what)
		}
	}
}

// A machine has its task once, by its channel and by nothing else; the clock comes with it.
func TestTask(t *testing.T) {
	t.Parallel()
	s := newSpec(t, floods)
	before := time.Now().Add(-time.Second)
	k := start(t, s)
	in, _ := reader(t, k)
	var first struct {
		Protocol int
		Now      time.Time
		Task     struct{ Token string }
	}
	if err := json.Unmarshal([]byte(until(t, in, "first: ")), &first); err != nil {
		t.Fatal(err)
	}
	if first.Protocol != 1 || first.Task.Token != "a-secret-token" || first.Now.Before(before) || first.Now.After(time.Now()) {
		t.Errorf("%+v", first)
	}
	again := until(t, in, "again: ")
	if strings.Contains(again, "secret") || !strings.Contains(again, "had its task") {
		t.Errorf("asked again, it hears %s", again)
	}
	// Noise on the channel and the console harms nobody, and is not kept.
	until(t, in, "flooded")
	st, err := k.Status(t.Context())
	if err != nil || !st.Given || st.Supervisor != k.PID() {
		t.Errorf("%+v, %v", st, err)
	}
	var said []string
	for _, pid := range []int{st.QEMU, st.Supervisor} {
		for _, f := range []string{"cmdline", "environ"} {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, f))
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, string(b))
		}
	}
	list, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if b, err := os.ReadFile(filepath.Join(s.Dir, e.Name())); err == nil {
			said = append(said, string(b))
		}
	}
	if strings.Contains(strings.Join(said, "\n"), "secret") {
		t.Error("the token is said elsewhere")
	}
	t.Logf("supervisor: %s", rss(t, st.Supervisor))
}

// rss is the memory of a process, for people.
func rss(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return err.Error()
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "Rss:" || f[0] == "Pss:" || f[0] == "Private_Dirty:") {
			out = append(out, strings.Join(f, " "))
		}
	}
	return strings.Join(out, ", ")
}

// A machine's QEMU is confined, as it looks from outside.
func TestConfined(t *testing.T) {
	t.Parallel()
	k := start(t, newSpec(t, stays))
	in, _ := reader(t, k)
	until(t, in, "here")
	st, err := k.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("/proc/%d/", st.QEMU)
	threads, err := os.ReadDir(at + "task")
	if err != nil || len(threads) < 2 {
		t.Fatal(threads, err)
	}
	for _, th := range threads { // what a thread may is its own
		b, err := os.ReadFile(at + "task/" + th.Name() + "/status")
		if err != nil {
			continue // it has ended
		}
		text := strings.ReplaceAll(string(b), "\t", " ")
		for _, want := range []string{"CapEff: 0000000000000000", "CapPrm: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2", fmt.Sprintf("Uid: %d %d %d %d", testID, testID, testID, testID)} {
			if !strings.Contains(text, want) {
				t.Errorf("thread %s has not %s", th.Name(), want)
			}
		}
		// The jail's filter, and QEMU's own after it.
		if _, n, ok := strings.Cut(text, "Seccomp_filters: "); !ok || !strings.HasPrefix(n, "2\n") && !strings.HasPrefix(n, "3\n") {
			t.Errorf("thread %s has other filters: %.3q", th.Name(), n)
		}
	}
	fds, err := os.ReadDir(at + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range fds {
		to, _ := os.Readlink(at + "fd/" + e.Name())
		switch kind, _, _ := strings.Cut(to, ":"); {
		case kind == "socket" || kind == "anon_inode" || kind == "/dev/null":
		case kind == "pipe" && (e.Name() == "1" || e.Name() == "2"): // what it has to say
		default:
			t.Errorf("it has %s open", to)
		}
	}
	for _, path := range []string{"/proc", "/sys", "/home", "/root", "/run", "/var", "/tmp"} {
		if _, err := os.Stat(at + "root" + path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is in its root: %v", path, err)
		}
	}
	if b, err := os.ReadFile(at + "net/unix"); err != nil || strings.Contains(string(b), "control.sock") {
		t.Errorf("sockets of its network: %v\n%s", err, b)
	}
}

// A disk that is for reading cannot be written, whatever root of the guest does; its file is the host's.
func TestDisk(t *testing.T) {
	t.Parallel()
	s := newSpec(t, disk)
	dir := t.TempDir()
	path := filepath.Join(dir, "image")
	if err := os.WriteFile(path, append([]byte("an image"), make([]byte, 1<<20-8)...), 0o400); err != nil {
		t.Fatal(err)
	}
	image, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	s.Machine.Disks, s.Disks = []qemu.Disk{{Serial: "image", ReadOnly: true}}, []*os.File{image}
	k := start(t, s)
	in, _ := reader(t, k)
	if said := until(t, in, "disk: "); !strings.HasPrefix(said, "an image") { // the BIOS may print a dot beside it
		t.Error(said)
	}
	if said := until(t, in, "written: "); said != "no" {
		t.Error("it can be written")
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(b, []byte("an image")) {
		t.Error("it was written")
	}
}

// A disk for scratch is a file without a name: it goes with the last process that has it.
func TestScratch(t *testing.T) {
	t.Parallel()
	s := newSpec(t, disk)
	fd, err := unix.Open(t.TempDir(), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Skip("no file without a name here:", err)
	}
	scratch := os.NewFile(uintptr(fd), "scratch")
	defer scratch.Close()
	if _, err := scratch.Write(append([]byte("a disk"), make([]byte, 1<<20-6)...)); err != nil {
		t.Fatal(err)
	}
	s.Machine.Disks, s.Disks = []qemu.Disk{{Serial: "scratch"}}, []*os.File{scratch}
	k := start(t, s)
	in, _ := reader(t, k)
	if said := until(t, in, "disk: "); !strings.HasPrefix(said, "a disk") {
		t.Error(said)
	}
	if said := until(t, in, "written: "); said != "yes" {
		t.Error("it cannot be written")
	}
	if err := k.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	mine, err := scratch.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range list {
		if st, err := os.Stat(at); err == nil && os.SameFile(st, mine) && !strings.HasPrefix(at, fmt.Sprintf("/proc/%d/", os.Getpid())) {
			t.Errorf("%s has it still", at)
		}
	}
}

// A machine that goes off, or starts again, is over, and so is its supervisor.
func TestOff(t *testing.T) {
	t.Parallel()
	for _, then := range []byte{off, resets} {
		s := newSpec(t, then)
		k := start(t, s)
		st, err := k.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(3 * time.Minute); k.Alive(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%c: the supervisor is there", then)
			}
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", st.QEMU)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%c: QEMU is there", then)
		}
		if _, err := supervisor.Find(s.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%c: its supervisor is found: %v", then, err)
		}
	}
}

// server starts a machine, says so and waits to be killed.
func server(dir string) int {
	s, err := spec(dir, os.Getenv("MUSTER_TEST_TYPE"), stays)
	var k *supervisor.Supervisor
	if err == nil {
		k, err = supervisor.Start(context.Background(), s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(k.PID())
	time.Sleep(time.Hour)
	return 0
}

// A machine outlives the server that started it, is found again with what it printed, and its end is proven.
func TestAdopted(t *testing.T) {
	t.Parallel()
	kind := machines(t)
	// A path that is longer than that of a socket may be.
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-", 30), "vm")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "MUSTER_TEST_SERVER="+dir, "MUSTER_TEST_TYPE="+kind)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = supervisor.End(context.Background(), dir) })
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	k, err := supervisor.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if k.PID() != pid {
		t.Errorf("found %d, not %d", k.PID(), pid)
	}
	in, c := reader(t, k)
	until(t, in, "here") // printed while nobody was there, or later
	_ = c.Close()
	run, err := k.Command(t.Context(), "query-status", nil)
	if err != nil || !strings.Contains(string(run), `"running":true`) {
		t.Errorf("%s, %v", run, err)
	}
	if _, err := k.Command(t.Context(), "no-such-command", nil); err == nil {
		t.Error("a command that there is not is executed")
	}
	st, err := k.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone(t, st.QEMU)
	gone(t, pid)
}

// gone sees that a process has ended: at most its number is left, for its parent.
func gone(t *testing.T, pid int) {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err == nil && !strings.Contains(string(b), ") Z ") {
		t.Errorf("process %d is there", pid)
	}
}

// QEMU ends with its supervisor, also with one that is killed, or stands still.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	s := newSpec(t, stays)
	k := start(t, s)
	st, err := k.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(st.Supervisor)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the supervisor has ended", func() bool { return !k.Alive() })
	eventually(t, "QEMU has ended", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/exe", st.QEMU))
		return err != nil
	})
	if err := supervisor.End(t.Context(), s.Dir); err != nil {
		t.Error(err)
	}
	gone(t, st.QEMU)
}

// What cannot be started leaves nothing, and says why.
func TestDoesNotStart(t *testing.T) {
	t.Parallel()
	s := newSpec(t, stays)
	s.Machine.Type = "pc-q35-999.9"
	if _, err := supervisor.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "unsupported machine type") {
		t.Error(err)
	}
	if _, err := supervisor.Find(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a supervisor is found: %v", err)
	}
	s = newSpec(t, stays)
	s.Enter = func(int) error { return errors.New("no room") }
	if _, err := supervisor.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Error(err)
	}
	s = newSpec(t, stays)
	s.ID = 0
	if _, err := supervisor.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "root") {
		t.Error(err)
	}
}
