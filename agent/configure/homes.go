package configure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/muster-hpc/muster/wire"
)

// homes makes the home directories, on the head only: the others mount what
// the head has made. A home that exists is its user's and is left alone.
//
// Users can write to /home's directories while this runs as root, so nothing
// here follows a link out of /home (os.Root).
func (c *Configurer) homes(cfg *wire.NodeConfig) error {
	if !cfg.Head || len(cfg.Users) == 0 {
		return nil
	}
	at := c.files.at("/home")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var errs []error
	for _, u := range cfg.Users {
		if err := c.home(root, u, cfg); err != nil {
			errs = append(errs, fmt.Errorf("home of %s: %w", u.Name, err))
		}
	}
	return errors.Join(errs...)
}

// home makes one under another name and renames it when it is complete: what
// an interrupted Apply left is never taken for somebody's home, nor the other
// way round.
func (c *Configurer) home(root *os.Root, u wire.Account, cfg *wire.NodeConfig) error {
	if _, err := root.Lstat(u.Name); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	h := home{root: root, name: ".muster-" + u.Name, uid: u.UID, gid: u.GID, noOwners: c.files.noOwners}
	if err := root.RemoveAll(h.name); err != nil {
		return err
	}
	if err := root.Mkdir(h.name, 0o700); err != nil {
		return err
	}
	if err := h.skeleton(c.files.at("/etc/skel")); err != nil {
		return err
	}
	if err := h.keys(u.Name + "@" + cfg.ClusterName); err != nil {
		return err
	}
	if err := root.Chmod(h.name, 0o750); err != nil {
		return err
	}
	if err := h.give(""); err != nil {
		return err
	}
	return root.Rename(h.name, u.Name)
}

// home is one being made.
type home struct {
	root     *os.Root
	name     string
	uid, gid int
	noOwners bool
}

func (h home) give(path string) error {
	if h.noOwners {
		return nil
	}
	return h.root.Lchown(filepath.Join(h.name, path), h.uid, h.gid)
}

func (h home) mkdir(path string, perm fs.FileMode) error {
	if err := h.root.Mkdir(filepath.Join(h.name, path), perm); err != nil {
		return err
	}
	return h.give(path)
}

func (h home) write(path string, content []byte, perm fs.FileMode) error {
	if err := h.root.WriteFile(filepath.Join(h.name, path), content, perm); err != nil {
		return err
	}
	return h.give(path)
}

// skeleton copies the image's first files of a home.
func (h home) skeleton(from string) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." || rel == ".ssh" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return h.mkdir(rel, info.Mode().Perm())
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return h.write(rel, b, info.Mode().Perm())
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// keys makes the pair by which a user goes from node to node.
func (h home) keys(comment string) error {
	private, public, err := keyPair(comment)
	if err != nil {
		return err
	}
	if err := h.mkdir(".ssh", 0o700); err != nil {
		return err
	}
	if err := h.write(".ssh/id_ed25519", []byte(private), 0o600); err != nil {
		return err
	}
	if err := h.write(".ssh/id_ed25519.pub", []byte(public), 0o644); err != nil {
		return err
	}
	return h.write(".ssh/authorized_keys", []byte(public), 0o600)
}
