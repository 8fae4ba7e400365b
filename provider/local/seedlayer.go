package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/muster-hpc/muster/agent/units"
)

// The seed layer lies over every image: the agent with its unit, masks for
// units that make no sense here, and limits that HPC programs need. It is a
// directory named for its content, so machines that run keep theirs when the
// server is upgraded.

// slice is a node that has its devices before its init starts, and stops soon: what
// it was is deleted. Its kernel's log is the host's, so systemd logs to the journal.
func slice() units.Kind {
	return units.Kind{
		Stop: 5 * time.Second, Manager: []string{"LogTarget=journal"}, Journal: 32,
		Journald: []string{"ForwardToSyslog=yes", "MaxLevelSyslog=info", "ForwardToConsole=no", "Audit=no"},
	}
}

// Filters of system calls are compiled when a service starts, which costs more
// than all the rest of it; the machine's own walls stand around the journal.
const journaldUnit = `[Service]
SystemCallFilter=
SystemCallArchitectures=
RestrictAddressFamilies=
RestrictNamespaces=no
RestrictRealtime=no
RestrictSUIDSGID=no
MemoryDenyWriteExecute=no
LockPersonality=no
ProtectClock=no
IPAddressDeny=
WatchdogSec=0
`

// makeSeedLayer makes the layer below dir unless it is there, and returns its
// path. agent may be "" for machines without one.
func makeSeedLayer(dir, agent string) (string, error) {
	h := sha256.New()
	files := seedFiles()
	names := slices.Sorted(maps.Keys(files))
	for _, n := range names {
		fmt.Fprintf(h, "%s\x00%s\x00", n, files[n])
	}
	fmt.Fprintln(h, masked(), silenced())
	if agent != "" {
		f, err := os.Open(agent)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return "", err
		}
	}
	at := filepath.Join(dir, "seed-"+hex.EncodeToString(h.Sum(nil))[:16])
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	tmp, err := os.MkdirTemp(dir, ".seed-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := fillSeedLayer(tmp, files, agent); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, at); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return at, nil
}

func seedFiles() map[string]string {
	files := slice().Files()
	files[units.Folder+"/systemd-journald.service.d/50-muster.conf"] = journaldUnit
	return files
}

func fillSeedLayer(root string, files map[string]string, agent string) error {
	for name, text := range files {
		if err := putFile(filepath.Join(root, name), text, 0o644); err != nil {
			return err
		}
	}
	for dir, names := range map[string][]string{filepath.Join(root, "etc/systemd/system"): masked(), filepath.Join(root, "etc/systemd/system-generators"): silenced()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, n := range names {
			if err := os.Symlink("/dev/null", filepath.Join(dir, n)); err != nil && !errors.Is(err, os.ErrExist) {
				return err
			}
		}
	}
	if err := os.Symlink(units.DefaultTo, filepath.Join(root, units.Default)); err != nil {
		return err
	}
	if agent != "" {
		b, err := os.ReadFile(agent)
		if err != nil {
			return err
		}
		if err := putFile(filepath.Join(root, units.Agent), string(b), 0o755); err != nil {
			return err
		}
	}
	// The modes of these directories are what the image's own get, so they
	// must not depend on the server's umask.
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
}

func putFile(path, text string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode) // whatever the umask is
}

// dropSeeds removes layers of earlier servers, unless a machine may use them.
func (p *Provider) dropSeeds() {
	running, err := p.Running()
	if err != nil || len(running) > 0 {
		return
	}
	old, err := filepath.Glob(filepath.Join(p.dir, "seed-*"))
	if err != nil {
		return
	}
	for _, dir := range old {
		if dir == p.seed {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			p.cfg.Log.Warn("removing old seed layer failed", "dir", dir, "error", err)
		}
	}
}
