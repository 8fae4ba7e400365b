package cli

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/wire"
)

func openImages(state string) (*image.Store, error) {
	return image.Open(filepath.Join(state, "images"), slog.New(slog.DiscardHandler))
}

func listImages(store *image.Store) ([]wire.Image, error) {
	list, err := store.List()
	if err != nil {
		return nil, err
	}
	names, askers := store.Names(), store.Askers()
	var out []wire.Image
	for _, img := range list {
		view := imageView(img)
		view.Newest = names[img.Name] == img.ID
		view.Projects = askers[img.ID]
		out = append(out, view)
	}
	return out, nil
}

func imageView(img *muster.Image) wire.Image {
	return wire.Image{
		ID: string(img.ID), Name: img.Name, Summary: img.Summary, Size: img.Size(), Created: img.Created,
		System: img.System, UserRoot: img.UserRoot, Slurm: img.Slurm, Packages: len(img.Packages), Base: string(img.Base), Saved: img.Saved,
	}
}

func verifyImage(ctx context.Context, store *image.Store, ref string) (wire.ImageVerified, error) {
	img, err := store.Resolve(ref)
	if err != nil {
		return wire.ImageVerified{}, err
	}
	if img, err = store.Verify(ctx, img.ID); err != nil {
		return wire.ImageVerified{}, err
	}
	return wire.ImageVerified{ID: string(img.ID), Name: img.Name, OK: true, Bytes: img.Size(), At: time.Now().UTC()}, nil
}
