package control

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Images lists the images of the server.
func (s *Service) Images(ctx context.Context, who muster.Actor, p wire.Page) (wire.ImageList, error) {
	out := wire.ImageList{Images: []wire.Image{}}
	list, err := s.Config.Images.List()
	if err != nil {
		return out, err
	}
	list = slices.DeleteFunc(list, func(img *muster.Image) bool { return !sees(who, img) })
	list, out.More = wire.Cut(list, p, imageOrder)
	names, askers := s.Config.Images.Names(), s.Config.Images.Askers()
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		use, err := s.lookAtImageUse(tx, true)
		if err != nil {
			return err
		}
		for _, img := range list {
			view := viewImage(img)
			view.Newest = names[img.Name] == img.ID
			if view.InUse, err = use.of(img.ID); err != nil {
				return err
			}
			view.Projects = slices.DeleteFunc(slices.Clone(askers[img.ID]), func(p string) bool { return !who.Admin && !who.In(p) })
			out.Images = append(out.Images, view)
		}
		return nil
	})
	return out, err
}

// imageOrder is where an image stands in the list: the newest first.
func imageOrder(img *muster.Image) string {
	return fmt.Sprintf("%019d.%s", math.MaxInt64-img.Created.UnixNano(), img.ID.Hex())
}

func viewImage(img *muster.Image) wire.Image {
	return wire.Image{
		ID: string(img.ID), Name: img.Name, Summary: img.Summary, Size: img.Size(), Created: img.Created,
		System: img.System, UserRoot: img.UserRoot, Slurm: img.Slurm, Packages: len(img.Packages), Base: string(img.Base), Saved: img.Saved,
	}
}

// Image shows the manifest of an image.
func (s *Service) Image(_ context.Context, who muster.Actor, ref string) (muster.Image, error) {
	img, err := s.Config.Images.Resolve(ref)
	if err == nil && !sees(who, img) {
		err = noImage(ref)
	}
	if err != nil {
		return muster.Image{}, err
	}
	return *img, nil
}

// sees reports whether somebody may see an image: those of nodes' roots are their projects'.
func sees(who muster.Actor, img *muster.Image) bool {
	return img.Saved == nil || who.Admin || who.In(img.Saved.Project)
}

func noImage(ref string) error {
	return muster.Errorf(muster.ENotFound, "there is no image %.64q", ref).Because(muster.ReasonNoSuchImage).WithHint("`muster image list` lists those that you can use")
}

// VerifyImage reads every byte of an image. Only administrators may: it keeps
// the disk busy.
func (s *Service) VerifyImage(ctx context.Context, who muster.Actor, ref string) (wire.ImageVerified, error) {
	if err := administrator(who, "verify images"); err != nil {
		return wire.ImageVerified{}, err
	}
	img, err := s.Config.Images.Resolve(ref)
	if err != nil {
		return wire.ImageVerified{}, err
	}
	if img, err = s.Config.Images.Verify(ctx, img.ID); err != nil {
		return wire.ImageVerified{}, err
	}
	return wire.ImageVerified{ID: string(img.ID), Name: img.Name, OK: true, Bytes: img.Size(), At: s.Clock.Now()}, nil
}

// RemoveImage removes an image that no cluster uses.
func (s *Service) RemoveImage(ctx context.Context, who muster.Actor, ref string) error {
	if err := administrator(who, "remove images"); err != nil {
		return err
	}
	if err := s.Superseded(); err != nil {
		return err // images are not in the store
	}
	img, err := s.Config.Images.Resolve(ref)
	if err != nil {
		return err
	}
	if err := s.Config.Images.Remove(ctx, img.ID, s.ImageUsers()); err != nil {
		return err
	}
	return s.Store.Update(ctx, who, func(tx *store.Tx) error {
		return tx.Note(muster.AuditImage, string(img.ID), "", "removed image "+img.Name)
	})
}

// ImageUsers tells an image store which clusters use an image.
func (s *Service) ImageUsers() image.Users { return usersOfImages{s} }

type usersOfImages struct{ s *Service }

func (u usersOfImages) ImageUsers(ctx context.Context, id muster.ImageID) ([]string, error) {
	var out []string
	err := u.s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		use, err := u.s.lookAtImageUse(tx, false)
		if err == nil {
			out, err = use.of(id)
		}
		return err
	})
	if err != nil || u.s.AbandonedImages == nil {
		return out, err
	}
	more, err := u.s.AbandonedImages(ctx)
	return append(out, more[id]...), err
}

// administrator refuses what only administrators may do.
func administrator(who muster.Actor, what string) error {
	if who.Admin {
		return nil
	}
	return muster.Errorf(muster.EForbidden, "only administrators %s", what).Because(muster.ReasonAdminOnly).
		WithHint("ask an administrator of this site")
}
