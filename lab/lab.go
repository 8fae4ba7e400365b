package lab

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/lab/machine"
)

// Lab is the lab of a directory, which is up or not.
type Lab struct {
	dir string // absolute, without links
	id  string
}

// Files of a lab in its directory.
const (
	configFile = "lab.json"
	machineDir = "machines"
	switchDir  = "switch"
)

// Limits of paths: of a socket's, and of a switch's name, in which its directory is.
const (
	maxSocket = 107
	maxSwitch = 64
)

// Open names the lab of a directory. It touches nothing.
func Open(dir string) (*Lab, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	// A lab keeps its name by whatever way its directory is reached.
	if parent, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(parent, filepath.Base(abs))
	}
	over := max(len(abs)+len("/"+machineDir+"/m000/")+machine.LongestFile()-maxSocket, len("ovs:"+abs+"/"+switchDir)-maxSwitch)
	if over > 0 {
		return nil, muster.Errorf(muster.EInvalid, "%s is too long for a lab by %d letters: what is in it has names in which it is", dir, over).
			WithHint("use a --dir with a shorter path")
	}
	sum := sha256.Sum256([]byte(abs))
	return &Lab{dir: abs, id: strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))}, nil
}

// Dir is where it lies.
func (l *Lab) Dir() string { return l.dir }

// Namespace is the network namespace in which the server's end of the management
// network is, unless it has an uplink, and the addresses of the controllers.
func (l *Lab) Namespace() string { return "muster-lab-" + l.id }

// wires is the network namespace of the switch and its ports. Nothing in it has an
// address: what a machine sends is seen by the switch and by nobody else.
func (l *Lab) wires() string { return "muster-lab-" + l.id + "-sw" }

func (l *Lab) switchDir() string { return filepath.Join(l.dir, switchDir) }

func (l *Lab) machineDir(name string) string { return filepath.Join(l.dir, machineDir, name) }

// Config reads what the lab consists of. Returns ENotFound when there is none.
func (l *Lab) Config() (Config, error) {
	b, err := os.ReadFile(filepath.Join(l.dir, configFile))
	if errors.Is(err, os.ErrNotExist) {
		return Config{}, muster.Errorf(muster.ENotFound, "there is no lab in %s", l.dir).WithHint("make one: muster lab up --dir %s; or name another", l.dir)
	}
	if errors.Is(err, os.ErrPermission) {
		return Config{}, muster.Errorf(muster.EForbidden, "the lab in %s is not yours to see", l.dir).WithHint("use sudo").Wrap(err)
	}
	if err != nil {
		return Config{}, err
	}
	return parseConfig(b)
}

func parseConfig(b []byte) (Config, error) {
	c, err := configDoc.Decode("the lab's "+configFile, b)
	var e *muster.Error
	if errors.As(err, &e) && e.Code == muster.EConflict {
		return Config{}, e.WithHint("run 'muster lab down', then 'muster lab up'")
	}
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return Config{}, muster.Errorf(muster.ECorrupt, "the lab's %s cannot be read", configFile).WithHint("run 'muster lab down', then 'muster lab up'").Wrap(err)
	}
	return c, nil
}

func (c Config) write(dir string) error {
	b, err := configDoc.Encode(&c)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, configFile), append(b, '\n'), 0o600)
}

// lock allows one Up or Down at a time. It is a lock of the directory itself: nothing
// is left of it, and one whose directory was taken away meanwhile is no lock.
func (l *Lab) lock(ctx context.Context) (*os.File, error) {
	for tries := 0; ; tries++ {
		f, err := os.Open(l.dir)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			if held, err1 := f.Stat(); err1 == nil {
				if now, err2 := os.Stat(l.dir); err2 == nil && os.SameFile(held, now) {
					return f, nil
				}
			}
			_ = f.Close()
			return nil, os.ErrNotExist
		}
		_ = f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, err
		}
		if tries == 300 {
			return nil, muster.Errorf(muster.EConflict, "another command works on the lab in %s", l.dir).WithHint("wait for it, or end it")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// root refuses who cannot make namespaces.
func root() error {
	if os.Geteuid() != 0 {
		return muster.Errorf(muster.EForbidden, "only root can have a lab: it makes network namespaces and devices").WithHint("use sudo")
	}
	return nil
}

// Told is one line of progress.
type Told func(format string, args ...any)

func (t Told) say(format string, args ...any) {
	if t != nil {
		t(format, args...)
	}
}

// name of the n-th machine, from 0.
func name(n int) string { return fmt.Sprintf("m%02d", n+1) }
