package jail_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/vm/jail"
)

// TestMain lets the test binary act as the process that becomes the program of a jail.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == jail.Argument {
		os.Exit(jail.Enter())
	}
	if order := os.Getenv("MUSTER_TEST_JAIL"); order != "" {
		os.Exit(parent(order))
	}
	os.Exit(m.Run())
}

const testID = 0x6ffe1234 // of nobody

// parent starts a jail and waits to be killed.
func parent(order string) int {
	var o jail.Order
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		return 1
	}
	c, err := jail.Start([]string{"/proc/self/exe"}, &o, nil, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(c.PID())
	<-c.Done()
	return 0
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("namespaces and users: needs root")
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so after a minute: %s", what)
		}
	}
}

// runs reports whether a process has become a program.
func runs(pid int, program string) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(b)) == program
}

// TestConfined looks at a jail from outside, in /proc: nothing that the program itself says counts.
func TestConfined(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	dir := t.TempDir()
	kernel := filepath.Join(dir, "kernel")
	if err := os.WriteFile(kernel, []byte("a kernel"), 0o444); err != nil {
		t.Fatal(err)
	}
	given, err := os.Open(kernel)
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()
	secret, err := os.Open("/etc/passwd") // not given, and not meant for it
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	c, _ := start(t, &jail.Order{Program: "/usr/bin/sleep", Args: []string{"600"}, ID: testID, Files: map[string]string{"/boot/kernel": kernel}, KVM: true}, given)
	eventually(t, "the program runs", func() bool { return runs(c.PID(), "sleep") })
	at := fmt.Sprintf("/proc/%d/", c.PID())
	status, err := os.ReadFile(at + "status")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for line := range strings.Lines(string(status)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		said[k] = strings.Join(strings.Fields(v), " ")
	}
	id := fmt.Sprint(testID)
	for k, want := range map[string]string{
		"Uid": strings.Join([]string{id, id, id, id}, " "), "Gid": strings.Join([]string{id, id, id, id}, " "), "Groups": "",
		"CapInh": strings.Repeat("0", 16), "CapPrm": strings.Repeat("0", 16), "CapEff": strings.Repeat("0", 16),
		"CapBnd": strings.Repeat("0", 16), "CapAmb": strings.Repeat("0", 16), "NoNewPrivs": "1", "Seccomp": "2", "NSpid": fmt.Sprint(c.PID()) + " 1",
	} {
		if said[k] != want {
			t.Errorf("%s is %q, not %q", k, said[k], want)
		}
	}
	for _, ns := range []string{"mnt", "pid", "net", "ipc", "uts"} {
		mine, err := os.Readlink("/proc/self/ns/" + ns)
		its, err2 := os.Readlink(at + "ns/" + ns)
		if err != nil || err2 != nil || mine == its {
			t.Errorf("%s: %s and %s: %v, %v", ns, mine, its, err, err2)
		}
	}
	if b, err := os.ReadFile(at + "net/dev"); err != nil || strings.Count(string(b), ":") != 1 || !strings.Contains(string(b), "lo:") {
		t.Errorf("devices of its network: %v\n%s", err, b)
	}
	limits, err := os.ReadFile(at + "limits")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(limits)), " "), "Max core file size 0 0") {
		t.Errorf("%v\n%s", err, limits)
	}
	looksAtRoot(t, at+"root")
	var open []string
	list, err := os.ReadDir(at + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		to, _ := os.Readlink(at + "fd/" + e.Name())
		open = append(open, e.Name()+" "+strings.Split(to, ":")[0])
	}
	if want := []string{"0 /dev/null", "1 pipe", "2 pipe", "4 " + kernel}; !slices.Equal(open, want) {
		t.Errorf("it has %q open, not %q", open, want)
	}
}

// looksAtRoot sees that a jail's root holds what it must, and nothing more.
func looksAtRoot(t *testing.T, root string) {
	t.Helper()
	list, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !slices.Contains([]string{"boot", "dev", "etc", "lib", "lib64", "usr"}, e.Name()) {
			t.Errorf("its root holds %s", e.Name())
		}
	}
	for dir, want := range map[string][]string{"dev": {"kvm", "null", "urandom", "zero"}, "etc": {"ld.so.cache"}, "boot": {"kernel"}} {
		var names []string
		list, _ := os.ReadDir(filepath.Join(root, dir))
		for _, e := range list {
			names = append(names, e.Name())
		}
		if !slices.Equal(names, want) {
			t.Errorf("its /%s holds %v, not %v", dir, names, want)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "x"), nil, 0o600); err == nil {
		t.Error("its root can be written to")
	}
	if err := os.WriteFile(filepath.Join(root, "usr/muster-jail"), nil, 0o600); err == nil {
		_ = os.Remove(filepath.Join(root, "usr/muster-jail"))
		t.Error("its /usr can be written to")
	}
}

// start starts a jail that ends with the test. What it printed comes once it has ended.
func start(t *testing.T, o *jail.Order, files ...*os.File) (*jail.Jail, <-chan string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c, err := jail.Start([]string{"/proc/self/exe"}, o, files, w)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	printed := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(r)
		_ = r.Close()
		printed <- string(b)
	}()
	t.Cleanup(func() { c.Kill(); <-c.Done() })
	return c, printed
}

// What the program tries from inside fails: there is nobody to signal, nothing to read, no user to
// become.
func TestInside(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	script := `cat /etc/passwd; cat /proc/1/status; ls /home /root /var /run /sys; echo x >/tmp/x; echo x >/x
kill -0 2; kill -0 ` + fmt.Sprint(os.Getpid()) + `; setpriv --reuid=0 true; unshare -U true; unshare -n true; chroot /usr true; echo end`
	_, printed := start(t, &jail.Order{Program: "/usr/bin/dash", Args: []string{"-c", script}, ID: testID})
	var said string
	select {
	case said = <-printed:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	for _, want := range []string{"/etc/passwd: No such file", "/proc/1/status: No such file", "'/home': No such file", "'/root': No such file", "'/var': No such file",
		"'/run': No such file", "'/sys': No such file", "cannot create /tmp/x", "cannot create /x", "No such process", "end\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, line := range []string{"setpriv:", "unshare:", "chroot:"} {
		if !strings.Contains(said, line) {
			t.Errorf("%s nothing failed", line)
		}
	}
	if t.Failed() {
		t.Log(said)
	}
}

// A jail ends with whoever started it, also by kill -9.
func TestEndsWithParent(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	order, err := json.Marshal(jail.Order{Program: "/usr/bin/sleep", Args: []string{"600"}, ID: testID})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "MUSTER_TEST_JAIL="+string(order))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the program runs", func() bool { return runs(pid, "sleep") })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the jail has ended", func() bool { return !runs(pid, "sleep") })
}

// An order that would give more than a jail has is refused, with all that is wrong.
func TestRefuses(t *testing.T) {
	t.Parallel()
	_, err := jail.Start([]string{"/proc/self/exe"}, &jail.Order{Program: "/usr/../bin/sh", ID: 0, Files: map[string]string{"/etc/shadow": "/etc/shadow"}, Locked: -1,
		Devices: []jail.Device{{Address: "0000:41:10.0", Group: 3}, {Address: "0000:41:10.0", Group: 3}, {Address: "../../x", Group: -1}}}, nil, nil)
	for _, field := range []string{"id:", "program:", "files:", "locked_bytes:", "is there twice", "is no PCI device"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
}
