package seccomp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/executable"
)

// TestMain makes this program one that tries what a filter leaves it.
func TestMain(m *testing.M) {
	if open, ok := os.LookupEnv("SECCOMP_TEST_OPEN"); ok {
		tryDoors(strings.Fields(open))
		return
	}
	os.Exit(m.Run())
}

// tryDoors loads a filter and prints what each call answers.
func tryDoors(open []string) {
	runtime.LockOSThread()
	f, err := New(open)
	if err == nil {
		_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		err = f.Load()
	}
	if err != nil {
		println("LOAD", err.Error())
		os.Exit(1)
	}
	if binary := os.Getenv("SECCOMP_TEST_EXEC"); binary != "" {
		if err := unix.Exec(binary, []string{binary}, nil); err != nil {
			os.Exit(200)
		}
	}
	say := func(name string, e error) {
		if e == nil {
			e = unix.Errno(0)
		}
		var no unix.Errno
		errors.As(e, &no)
		_, _ = os.Stdout.WriteString(name + " " + strconv.Itoa(int(no)) + "\n")
	}
	for _, family := range []int{1, 2, 10, 16, 17, 21, 29, 38, 40, 43, 44} {
		kind := unix.SOCK_DGRAM
		if family == 17 || family == 16 {
			kind = unix.SOCK_RAW
		}
		fd, err := unix.Socket(family, kind, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		say("family"+strconv.Itoa(family), err)
	}
	_, err = unix.Socketpair(40, unix.SOCK_STREAM, 0)
	say("pair40", err)
	for name, nr := range map[string]uintptr{"io_uring_setup": unix.SYS_IO_URING_SETUP, "io_uring_enter": unix.SYS_IO_URING_ENTER,
		"io_uring_register": unix.SYS_IO_URING_REGISTER, "add_key": unix.SYS_ADD_KEY, "request_key": unix.SYS_REQUEST_KEY,
		"keyctl": unix.SYS_KEYCTL, "perf_event_open": unix.SYS_PERF_EVENT_OPEN} {
		_, _, e := unix.Syscall(nr, 0, 0, 0)
		say(name, e)
	}
	_, _, e := unix.Syscall(x32Bit|unix.SYS_GETPID, 0, 0, 0)
	say("x32", e)
	say("getpid", nil)
}

func answers(t *testing.T, open string) map[string]int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SECCOMP_TEST_OPEN="+open)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the program under the filter: %v\n%s", err, out)
	}
	got := map[string]int{}
	for line := range strings.Lines(string(out)) {
		name, no, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[name], _ = strconv.Atoi(no)
	}
	if len(got) < 15 {
		t.Fatalf("the program under the filter said only %q", out)
	}
	return got
}

func TestWhatIsClosed(t *testing.T) {
	got := answers(t, "")
	for _, family := range []string{"family17", "family21", "family29", "family38", "family40", "family43", "family44", "pair40"} {
		if got[family] != int(unix.EAFNOSUPPORT) {
			t.Errorf("%s answers %v, want %v", family, unix.Errno(got[family]), unix.EAFNOSUPPORT)
		}
	}
	for _, d := range Doors() {
		for _, call := range d.Calls {
			if got[call] != int(unix.ENOSYS) {
				t.Errorf("%s answers %v, want %v", call, unix.Errno(got[call]), unix.ENOSYS)
			}
		}
	}
	for _, family := range []string{"family1", "family2", "family10", "family16"} {
		if no := unix.Errno(got[family]); no == unix.EAFNOSUPPORT && family != "family10" || no == unix.ENOSYS {
			t.Errorf("%s is closed: %v", family, no)
		}
	}
	if runtime.GOARCH == "amd64" && got["x32"] != int(unix.ENOSYS) {
		t.Errorf("a call of the x32 ABI answers %v, want %v", unix.Errno(got["x32"]), unix.ENOSYS)
	}
}

// TestOpened opens one door after the other: what answers then is the kernel.
func TestOpened(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("packet sockets need root")
	}
	got := answers(t, "packet keys perf")
	if got["family17"] != 0 {
		t.Errorf("packet sockets are opened and answer %v", unix.Errno(got["family17"]))
	}
	if got["keyctl"] == int(unix.ENOSYS) && kernelHas(unix.SYS_KEYCTL) {
		t.Error("keyctl is opened and answers ENOSYS")
	}
	if got["perf_event_open"] == int(unix.ENOSYS) && kernelHas(unix.SYS_PERF_EVENT_OPEN) {
		t.Error("perf_event_open is opened and answers ENOSYS")
	}
	if got["family40"] != int(unix.EAFNOSUPPORT) {
		t.Errorf("vsock was not opened and answers %v", unix.Errno(got["family40"]))
	}
}

func kernelHas(call uintptr) bool {
	_, _, e := unix.Syscall(call, 0, 0, 0)
	return e != unix.ENOSYS
}

// TestForeignABI calls the kernel as programs for the processor's old ABI do, past the
// numbers of the new one.
func TestForeignABI(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the program of this test is one for i386")
	}
	for _, c := range []struct {
		name      string
		call, arg uint32
		closed    unix.Errno
	}{
		{name: "socket", call: 359, arg: 40, closed: unix.EAFNOSUPPORT},
		{name: "socket packet", call: 359, arg: 17, closed: unix.EAFNOSUPPORT},
		{name: "socketcall", call: 102, arg: 1, closed: unix.ENOSYS},
		{name: "keyctl", call: 288, arg: 0, closed: unix.ENOSYS},
		{name: "io_uring_setup", call: 425, arg: 0, closed: unix.ENOSYS},
		{name: "perf_event_open", call: 336, arg: 0, closed: unix.ENOSYS},
		{name: "socket unix", call: 359, arg: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "old")
			if err := executable.Write(file, oldProgram(c.call, c.arg), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := exec.Command(file).Run(); err != nil {
				var status *exec.ExitError
				if !errors.As(err, &status) || status.ExitCode() < 0 {
					t.Skipf("this kernel runs no programs for i386: %v", err)
				}
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "SECCOMP_TEST_OPEN=", "SECCOMP_TEST_EXEC="+file)
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != int(c.closed) {
				t.Errorf("it answers %v, want %v", unix.Errno(code), c.closed)
			}
		})
	}
}

// oldProgram is a program for i386 that makes one call and exits with the error that
// it got, or 0.
func oldProgram(call, arg uint32) []byte {
	code := []byte{0xb8}
	code = binary.LittleEndian.AppendUint32(code, call) // mov eax, call
	code = append(code, 0xbb)
	code = binary.LittleEndian.AppendUint32(code, arg) // mov ebx, arg
	code = append(code,
		0xb9, 1, 0, 0, 0, // mov ecx, 1
		0x31, 0xd2, // xor edx, edx
		0xcd, 0x80, // int 0x80
		0x31, 0xdb, // xor ebx, ebx
		0x85, 0xc0, // test eax, eax
		0x79, 0x04, // jns over the next two
		0xf7, 0xd8, // neg eax
		0x89, 0xc3, // mov ebx, eax
		0xb8, 1, 0, 0, 0, // mov eax, 1 (exit)
		0xcd, 0x80)
	const base, head = 0x08048000, 52 + 32
	var b bytes.Buffer
	b.Write([]byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, v := range []any{uint16(2), uint16(3), uint32(1), uint32(base + head), uint32(52), uint32(0), uint32(0),
		uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(0), uint32(base), uint32(base), uint32(head + len(code)), uint32(head + len(code)), uint32(5), uint32(0x1000)} {
		_ = binary.Write(&b, binary.LittleEndian, v)
	}
	b.Write(code)
	return b.Bytes()
}

func TestUnknown(t *testing.T) {
	if got := Unknown([]string{"packets", "perf", "Perf"}); !slices.Equal(got, []string{"packets", "Perf"}) {
		t.Errorf("unknown doors are %q", got)
	}
}
