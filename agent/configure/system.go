package configure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// programs runs real programs.
type programs struct{}

// Run implements Runner.
func (programs) Run(ctx context.Context, stdin, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/root", "TZ=UTC"}
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", name, err, lastLine(errOut.String()))
	}
	return out.String(), nil
}

// lastLine of an error output says most.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	const most = 300
	if len(s) > most {
		s = s[:most]
	}
	return s
}

func setHostname(name string) error { return unix.Sethostname([]byte(name)) }

func ownerOf(st fs.FileInfo) (uid, gid int) {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid), int(s.Gid)
	}
	return -1, -1
}

// killUser ends the processes of a user who has left.
func killUser(uid int) error {
	for range 20 { // one that forks faster than it is looked at
		n, err := killOnce(uid)
		if n == 0 || err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("processes of user number %d come again as fast as they are ended", uid)
}

// killOnce ends the processes that a user has now, and counts them.
func killOnce(uid int) (n int, _ error) {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, d := range dirs {
		var pid int
		if _, err := fmt.Sscanf(d.Name(), "%d", &pid); err != nil || pid <= 1 {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// The owner is read after the handle is held: the number cannot pass
		// to another process in between.
		st, err := os.Stat("/proc/" + d.Name())
		if err == nil {
			if u, _ := ownerOf(st); u == uid && !zombie(pid) {
				n++
				err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			}
		}
		_ = unix.Close(fd)
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
	}
	return n, nil
}

// zombie reports whether a process has ended and waits for its parent to notice.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(b, ')')
	return err != nil || i+2 < len(b) && b[i+2] == 'Z'
}
