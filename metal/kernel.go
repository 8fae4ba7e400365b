package metal

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/initramfs"
	"github.com/muster-hpc/muster/wire"
)

// kernels has the kernel and the initramfs of each image. The initramfs is made when it
// is asked for first: the agent with the drivers of that kernel, which takes seconds. Images
// with the same drivers share it.
type kernels struct {
	dir    string
	agent  []byte
	print  string // of the agent
	images Images

	mu   sync.Mutex
	made map[muster.ImageID]*kernel
	// making is held while an initramfs is made: another image may want the same one.
	making sync.Mutex
}

// kernel is one image's, once it was made.
type kernel struct {
	mu              sync.Mutex
	vmlinuz, initrd string
	manifest        *muster.Image
	dir             string // of the image's files
}

func openKernels(dir, agent string, images Images) (*kernels, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(agent)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the agent program %s cannot be read", agent).Because(muster.ReasonFileUnreadable).WithHint("build it (make build) or name it with --agent").Wrap(err)
	}
	sum := sha256.Sum256(b)
	k := &kernels{dir: dir, agent: b, print: hex.EncodeToString(sum[:8]), images: images, made: map[muster.ImageID]*kernel{}}
	return k, k.tidy()
}

// tidy removes what was made for other agents, and what a crash left half made.
func (k *kernels) tidy() error {
	entries, err := os.ReadDir(k.dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "-"+k.print) {
			err = errors.Join(err, os.Remove(filepath.Join(k.dir, e.Name())))
		}
	}
	return err
}

// of returns the kernel of an image. EInvalid: it has none.
func (k *kernels) of(ctx context.Context, id muster.ImageID) (*kernel, error) {
	k.mu.Lock()
	one := k.made[id]
	if one == nil {
		one = &kernel{}
		k.made[id] = one
	}
	k.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	m, dir, err := k.images.Boot(ctx, id)
	if err != nil {
		return nil, err
	}
	if one.initrd != "" {
		if _, err := os.Stat(one.initrd); err == nil {
			return one, nil
		}
	}
	vmlinuz, has := m.File(muster.FileKernel)
	modules, also := m.File(muster.FileModules)
	if !has || !also {
		return nil, muster.Errorf(muster.EInvalid, "image %s has no kernel: it cannot run on a bare machine", m.Name).Because(muster.ReasonImageLacks).
			WithHint("add `kernel: generic` to its recipe and build it again")
	}
	name := id.Hex()
	if b, err := hex.DecodeString(modules.SHA256); err == nil && len(b) == sha256.Size {
		name = hex.EncodeToString(b)
	}
	at := filepath.Join(k.dir, name+"-"+k.print)
	if err := k.make(filepath.Join(dir, modules.Name), at); err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the initramfs of image %s cannot be made", m.Name).
			WithHint("see whether the disk with the state directory is full").Wrap(err)
	}
	one.vmlinuz, one.initrd, one.manifest, one.dir = filepath.Join(dir, vmlinuz.Name), at, m, dir
	return one, nil
}

// make writes the archive for the kernel whose modules are in a tar, unless it is there.
func (k *kernels) make(modules, at string) (err error) {
	k.making.Lock()
	defer k.making.Unlock()
	if _, err := os.Stat(at); err == nil {
		return nil
	}
	in, err := os.Open(modules)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	tree, err := initramfs.FromTar(in, st.Size())
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(k.dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	_, err = initramfs.Build(w, initramfs.Options{Agent: k.agent, Modules: tree})
	if err = errors.Join(err, w.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), at)
}

// prepareEvery is how often new images are looked for.
const prepareEvery = 30 * time.Second

// prepare makes the initramfs of each image before somebody asks for a machine with it:
// the first one need not wait for that.
func (p *Provider) prepare(ctx context.Context) {
	for {
		list, err := p.o.Images.Bootable(ctx)
		if err != nil && ctx.Err() == nil {
			p.o.Log.Warn("listing images failed", "error", err)
		}
		for _, id := range list {
			if ctx.Err() != nil || p.kernels.ready(id) {
				continue
			}
			if _, err := p.kernels.of(ctx, id); err != nil && ctx.Err() == nil {
				p.o.Log.Debug("preparing image failed", "image", id, "error", err) // who asks for it is told
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-p.o.Clock.After(prepareEvery):
		}
	}
}

// ready reports whether an image's kernel was asked for before.
func (k *kernels) ready(id muster.ImageID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.made[id] != nil
}

// files are what a machine loads for a task: those of its image, or of the site's own
// where it runs none.
func (p *Provider) files(id muster.MachineID, kind wire.BootKind) (Files, error) {
	image := muster.ImageID("")
	if kind == wire.BootImage {
		image = p.boots.imageOf(id)
	}
	var err error
	if image == "" {
		if image, err = p.o.Images.Discovery(p.ctx); err != nil {
			return Files{}, err
		}
	}
	k, err := p.kernels.of(p.ctx, image)
	if err != nil {
		return Files{}, err
	}
	f := Files{Kernel: []string{k.vmlinuz}, Initramfs: []string{k.initrd}, Server: p.o.URL, CA: p.o.CA, Args: p.o.Args}
	if root, ok := k.manifest.File(muster.FileRoot); ok && kind == wire.BootImage && p.o.Plain != "" {
		f.Root = filepath.Join(k.dir, root.Name)
	}
	return f, nil
}
