package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const sshDir = "muster-ssh-"

// sshDirAge is how old a directory is before it can be one that nobody uses:
// processes of another container may share the place and not our numbers.
const sshDirAge = time.Minute

// keyDir makes a directory for the key of one connection, which only we can
// read. It lies in memory that goes when the person logs out, if there is such
// a place. What killed processes left behind there goes first.
func (a *app) keyDir() (string, error) {
	place := os.TempDir()
	if dir := a.env.getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && unix.Access(dir, unix.W_OK|unix.X_OK) == nil {
		place = dir
	}
	sweepKeys(place, time.Now())
	return os.MkdirTemp(place, fmt.Sprintf("%s%d-", sshDir, os.Getpid()))
}

// sweepKeys removes our own directories whose process is gone, and those that
// no session needs any more: ssh reads its key once, when it starts.
func sweepKeys(place string, now time.Time) {
	list, _ := filepath.Glob(filepath.Join(place, sshDir+"*"))
	for _, path := range list {
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
			continue
		}
		age := now.Sub(time.Unix(st.Mtim.Unix()))
		word, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), sshDir), "-")
		pid, err := strconv.Atoi(word)
		ended := err == nil && pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
		if age > 24*time.Hour || ended && age > sshDirAge {
			_ = os.RemoveAll(path)
		}
	}
}
