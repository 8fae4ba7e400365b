package metal

import (
	"context"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

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
			if ctx.Err() != nil || p.o.Kernels.Ready(id) {
				continue
			}
			if _, err := p.o.Kernels.Of(ctx, id); err != nil && ctx.Err() == nil {
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
	k, err := p.o.Kernels.Of(p.ctx, image)
	if err != nil {
		return Files{}, err
	}
	f := Files{Kernel: []string{k.Kernel}, Initramfs: []string{k.Initramfs}, Server: p.o.URL, CA: p.o.CA, Args: p.o.Args}
	if root, ok := k.Manifest.File(muster.FileRoot); ok && kind == wire.BootImage && p.o.Plain != "" {
		f.Root = filepath.Join(k.Dir, root.Name)
	}
	return f, nil
}
