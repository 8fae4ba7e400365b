// Command guest is the first process of a machine that mounts what a test serves, and
// does with it what it is told over its second serial line.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/agent/boot"
	"github.com/muster-hpc/muster/agent/configure"
	"github.com/muster-hpc/muster/wire"
)

// order is one thing to do; what is not needed is empty.
type order struct {
	Do   string     `json:"do"`
	Path string     `json:"path"`
	Text string     `json:"text"`
	UID  int        `json:"uid"`
	MiB  int        `json:"mib"`
	As   wire.Mount `json:"mount"`
}

func main() {
	if boot.IsModprobe(os.Args) {
		os.Exit(boot.Modprobe(os.Args[1:]))
	}
	line, err := prepare()
	if err != nil {
		fmt.Println("guest:", err)
		time.Sleep(time.Hour)
	}
	fmt.Fprintln(line, `{"ok":"ready"}`)
	in := bufio.NewScanner(line)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var o order
		reply := map[string]string{}
		err := json.Unmarshal(in.Bytes(), &o)
		if err == nil {
			reply["ok"], err = do(o)
		}
		if err != nil {
			reply = map[string]string{"error": err.Error()}
		}
		b, _ := json.Marshal(reply)
		fmt.Fprintln(line, string(b))
	}
}

// prepare mounts what every system has, and sets up the network card.
func prepare() (*os.File, error) {
	for _, m := range [][3]string{{"proc", "/proc", "proc"}, {"sysfs", "/sys", "sysfs"}, {"devtmpfs", "/dev", "devtmpfs"}} {
		_ = os.MkdirAll(m[1], 0o755)
		if err := unix.Mount(m[0], m[1], m[2], 0, ""); err != nil {
			return nil, fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	boot.Modprobe([]string{"virtio_pci", "virtio_net"})
	cmdline, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return nil, err
	}
	for _, word := range strings.Fields(string(cmdline)) {
		if a, ok := strings.CutPrefix(word, "guest.address="); ok {
			if err := address(net.ParseIP(a)); err != nil {
				return nil, err
			}
		}
	}
	if err := unix.Sethostname([]byte("n01")); err != nil { // as in every cluster
		return nil, err
	}
	line, err := os.OpenFile("/dev/ttyS1", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(line.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	t.Iflag, t.Oflag = 0, 0
	t.Lflag = unix.ICANON // lines, and no echo
	return line, unix.IoctlSetTermios(int(line.Fd()), unix.TCSETS, t)
}

func address(ip net.IP) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	r, err := unix.NewIfreq("eth0")
	if err != nil {
		return err
	}
	if err := r.SetInet4Addr(ip.To4()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCSIFADDR, r); err != nil {
		return fmt.Errorf("eth0: %w", err)
	}
	if err := r.SetInet4Addr([]byte{255, 255, 255, 0}); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCSIFNETMASK, r); err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
}

var held *os.File

func do(o order) (string, error) {
	// The kernel asks the server with the numbers of this thread, which is not used
	// again.
	if o.UID != 0 {
		done := make(chan struct{})
		var text string
		var err error
		go func() {
			defer close(done)
			runtime.LockOSThread()
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSGID, uintptr(o.UID), 0, 0)
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, uintptr(o.UID), 0, 0)
			text, err = one(o)
		}()
		<-done
		return text, err
	}
	return one(o)
}

func one(o order) (string, error) {
	switch o.Do {
	case "mount":
		if err := configure.Mount(o.As, o.As.Target); err != nil {
			return "", err
		}
		b, err := os.ReadFile("/proc/mounts")
		return string(b), err
	case "write":
		return "", os.WriteFile(o.Path, []byte(o.Text), 0o640)
	case "mkdir":
		if err := os.Mkdir(o.Path, 0o755); err != nil {
			return "", err
		}
		return "", os.Chown(o.Path, 1000, 1000)
	case "read":
		b, err := os.ReadFile(o.Path)
		return string(b), err
	case "stat":
		var st unix.Stat_t
		err := unix.Stat(o.Path, &st)
		return fmt.Sprintf("%d:%d %o", st.Uid, st.Gid, st.Mode&0o7777), err
	case "open": // and lock
		var err error
		if held, err = os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return "", err
		}
		return "", unix.FcntlFlock(held.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	case "address":
		return "", address(net.ParseIP(o.Text))
	case "append":
		if _, err := held.WriteString(o.Text); err != nil {
			return "", err
		}
		return "", held.Sync()
	case "lock":
		f, err := os.OpenFile(o.Path, os.O_RDWR, 0)
		if err != nil {
			return "", err
		}
		defer f.Close()
		return "", unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	case "speed":
		return speed(o)
	}
	return "", fmt.Errorf("cannot %q", o.Do)
}

// speed writes a file to the server's disk, and reads it with nothing in memory here.
func speed(o order) (string, error) {
	block := make([]byte, 1<<20)
	f, err := os.Create(o.Path)
	if err != nil {
		return "", err
	}
	began := time.Now()
	for range o.MiB {
		if _, err := f.Write(block); err != nil {
			return "", err
		}
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	wrote := time.Since(began)
	_ = f.Close()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0o200); err != nil {
		return "", err
	}
	if f, err = os.Open(o.Path); err != nil {
		return "", err
	}
	defer f.Close()
	began = time.Now()
	for range o.MiB {
		if _, err := io.ReadFull(f, block); err != nil {
			return "", err
		}
	}
	read := time.Since(began)
	began = time.Now()
	for i := range 100 {
		if err := os.WriteFile(fmt.Sprint(o.Path, i), nil, 0o600); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("write %.0f MiB/s, read %.0f MiB/s, %.1f ms for a new file", float64(o.MiB)/wrote.Seconds(), float64(o.MiB)/read.Seconds(),
		float64(time.Since(began).Microseconds())/100_000), nil
}
