package kernels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/muster-hpc/muster"
)

// Images are where kernels come from.
type Images interface {
	// Boot returns an image whose files were compared with their digests, and the
	// directory in which they are.
	Boot(ctx context.Context, id muster.ImageID) (*muster.Image, string, error)
}

// Store has the kernel and the initramfs of each image. They are made when they are asked for
// first: the agent with the drivers of that kernel, which takes seconds. Images with the same
// files share them.
type Store struct {
	dir    string
	agent  []byte
	print  string // of the agent
	images Images

	mu   sync.Mutex
	made map[muster.ImageID]*entry
	// making is held while a file is made: another image may want the same one.
	making sync.Mutex
}

// Kernel is what starts one image.
type Kernel struct {
	Kernel, Initramfs string // files
	Manifest          *muster.Image
	Dir               string // of the image's own files
}

type entry struct {
	mu   sync.Mutex
	made *Kernel
}

// Open opens the store in a directory of its own. agent is the program that becomes the first
// process of machines.
func Open(dir, agent string, images Images) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(agent)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the agent program %s cannot be read", agent).Because(muster.ReasonFileUnreadable).WithHint("build it (make build) or name it with --agent").Wrap(err)
	}
	sum := sha256.Sum256(b)
	s := &Store{dir: dir, agent: b, print: hex.EncodeToString(sum[:8]), images: images, made: map[muster.ImageID]*entry{}}
	return s, s.tidy()
}

// tidy removes what was made for other agents, and what a crash left half made.
func (s *Store) tidy() error {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "-"+s.print) {
			err = errors.Join(err, os.Remove(filepath.Join(s.dir, e.Name())))
		}
	}
	return err
}

// Of returns the kernel of an image. EInvalid: it has none.
func (s *Store) Of(ctx context.Context, id muster.ImageID) (*Kernel, error) {
	s.mu.Lock()
	one := s.made[id]
	if one == nil {
		one = &entry{}
		s.made[id] = one
	}
	s.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	m, dir, err := s.images.Boot(ctx, id)
	if err != nil {
		return nil, err
	}
	if one.made != nil && exist(one.made.Kernel, one.made.Initramfs) {
		return one.made, nil
	}
	vmlinuz, has := m.File(muster.FileKernel)
	modules, also := m.File(muster.FileModules)
	if !has || !also {
		return nil, muster.Errorf(muster.EInvalid, "image %s has no kernel: it cannot run on a bare machine or as a virtual one", m.Name).Because(muster.ReasonImageLacks).
			WithHint("add `kernel: generic` to its recipe and build it again")
	}
	k := &Kernel{Manifest: m, Dir: dir, Kernel: s.path(id, vmlinuz, "-kernel"), Initramfs: s.path(id, modules, "")}
	if err := errors.Join(
		s.make(k.Kernel, copyOf(filepath.Join(dir, vmlinuz.Name))),
		s.make(k.Initramfs, s.initramfs(filepath.Join(dir, modules.Name))),
	); err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "kernel and initramfs of image %s cannot be made", m.Name).
			WithHint("see whether the disk with the state directory is full").Wrap(err)
	}
	one.made = k
	return k, nil
}

// Ready reports whether an image's kernel was asked for before.
func (s *Store) Ready(id muster.ImageID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[id] != nil
}

// path is that of what is made of an image's file. The same file makes the same.
func (s *Store) path(id muster.ImageID, f muster.ImageFile, kind string) string {
	name := id.Hex()
	if b, err := hex.DecodeString(f.SHA256); err == nil && len(b) == sha256.Size {
		name = hex.EncodeToString(b)
	}
	return filepath.Join(s.dir, name+kind+"-"+s.print)
}

func exist(paths ...string) bool {
	for _, p := range paths {
		if _, err := os.Stat(p); err != nil {
			return false
		}
	}
	return true
}
