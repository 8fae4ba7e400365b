package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// prepare writes what SSH needs for this launch, and the program's files.
func (l *Launcher) prepare(o wire.LaunchOrder) error {
	if err := l.clear(); err != nil {
		return err
	}
	if err := l.folder(l.o.Home); err != nil {
		return err
	}
	dir := filepath.Join(l.o.Home, ".ssh")
	if err := l.folder(dir); err != nil {
		return err
	}
	files := []wire.File{
		{Path: ".ssh/id_ed25519", Content: o.Key},
		{Path: ".ssh/id_ed25519-cert.pub", Content: o.Certificate},
		{Path: ".ssh/config", Content: sshConfig},
	}
	for _, f := range o.Files {
		if !plainName(f.Path) {
			return muster.Errorf(muster.EInvalid, "%q is not a file name", f.Path)
		}
		files = append(files, f)
	}
	for _, f := range files {
		if err := l.write(f); err != nil {
			return err
		}
	}
	return nil
}

// sshConfig asks nobody, and takes only hosts that the cluster vouches for.
const sshConfig = `BatchMode yes
StrictHostKeyChecking yes
UserKnownHostsFile /dev/null
IdentitiesOnly yes
IdentityFile ~/.ssh/id_ed25519
LogLevel ERROR
ConnectTimeout 10
ServerAliveInterval 5
ServerAliveCountMax 6
`

func (l *Launcher) folder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return l.own(path)
}

func (l *Launcher) write(f wire.File) error {
	path := filepath.Join(l.o.Home, f.Path)
	if err := os.WriteFile(path, []byte(f.Content), 0o600); err != nil {
		return err
	}
	return l.own(path)
}

func (l *Launcher) own(path string) error {
	if l.o.UID < 0 {
		return nil
	}
	return os.Lchown(path, l.o.UID, l.o.GID)
}

// clear removes what a launch needed: its key must not outlive it. The home stays:
// programs that others launch run there, too.
func (l *Launcher) clear() error {
	list, err := os.ReadDir(l.o.Home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range list {
		err = errors.Join(err, os.RemoveAll(filepath.Join(l.o.Home, d.Name())))
	}
	if err != nil {
		return fmt.Errorf("what a launch left cannot be removed: %w", err)
	}
	return nil
}

// sweep ends every process of the account: nothing may run beside a launch.
func (l *Launcher) sweep() error {
	if l.o.UID <= 0 {
		return nil
	}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid <= 1 {
			continue
		}
		if err := l.kill(pid); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// kill ends a process if it is the account's. Its owner is read after a handle
// is held: the number cannot pass to another process in between.
func (l *Launcher) kill(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &st); err != nil {
		return err
	}
	if int(st.Uid) != l.o.UID {
		return nil
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}
