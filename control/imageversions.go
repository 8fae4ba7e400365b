package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// ImageVersions lists the contents that an image has, the newest first, and why they stay; of IMAGE@VERSION the one that it means.
func (s *Service) ImageVersions(ctx context.Context, who muster.Actor, ref string, p wire.Page) (wire.ImageVersionList, error) {
	out := wire.ImageVersionList{Versions: []wire.ImageVersion{}}
	img, err := s.Image(ctx, who, ref)
	if err != nil {
		return out, err
	}
	rule := s.policy.Load().Versions.WithDefaults()
	out.Image, out.Rule = img.Name, wire.ImageRule{Newest: rule.Newest, Age: muster.Duration(max(0, rule.For))}
	list, err := s.Config.Images.Versions(img.Name)
	if err != nil {
		return out, err
	}
	pins, err := s.Config.Images.Pins()
	if err != nil {
		return out, err
	}
	now, current := s.Clock.Now(), s.Config.Images.Names()[img.Name]
	all := make([]wire.ImageVersion, len(list))
	for i, m := range list {
		pin, pinned := pins[m.ID]
		v := wire.ImageVersion{ID: string(m.ID), Ref: versionRef(m), Built: m.Created, Size: m.Size(), Packages: len(m.Packages), Current: m.ID == current, Kept: []string{}}
		if pinned {
			v.Pin = &wire.ImagePin{By: pin.By, At: pin.At, Reason: pin.Reason}
		}
		for _, why := range rule.Reasons(i, now.Sub(m.Created), v.Current, pinned) {
			v.Kept = append(v.Kept, string(why))
		}
		all[i] = v
	}
	if strings.Contains(ref, "@") { // the one that this means
		all = slices.DeleteFunc(all, func(v wire.ImageVersion) bool { return v.ID != string(img.ID) })
	}
	order := func(v wire.ImageVersion) string {
		return imageOrder(&muster.Image{Created: v.Built, ID: muster.ImageID(v.ID)})
	}
	out.Versions, out.More = wire.Cut(all, p, order)
	return out, s.Store.View(ctx, who, func(tx *store.Tx) error { return s.versionUse(tx, out.Versions) })
}

// versionUse adds which versions are in use. Who uses them is said as far as the actor may
// see it.
func (s *Service) versionUse(tx *store.Tx, list []wire.ImageVersion) error {
	all, err := s.lookAtImageUse(tx, false)
	if err != nil {
		return err
	}
	seen, err := s.lookAtImageUse(tx, true)
	if err != nil {
		return err
	}
	for i := range list {
		id := muster.ImageID(list[i].ID)
		used, err := all.of(id)
		if err != nil {
			return err
		}
		if len(used) > 0 {
			list[i].Kept = append(list[i].Kept, string(image.KeptInUse))
		}
		if list[i].InUse, err = seen.of(id); err != nil {
			return err
		}
	}
	return nil
}

// versionRef names exactly one content.
func versionRef(m *muster.Image) string { return m.Name + "@" + m.ID.Short() }

// mostReason is how long a text about a pin may be, in bytes.
const mostReason = 200

// PinImage keeps a content whatever the site's rule says.
func (s *Service) PinImage(ctx context.Context, who muster.Actor, ref string, r wire.PinImage) (wire.ImagePinned, error) {
	reason := cleantext.Line(r.Reason)
	if len(reason) > mostReason || !utf8.ValidString(r.Reason) {
		return wire.ImagePinned{}, muster.Errorf(muster.EInvalid, "the reason is longer than %d bytes", mostReason).Because(muster.ReasonBadValue).WithHint("write one short line")
	}
	return s.changePin(ctx, who, ref, "pin images", func(img *muster.Image) (string, error) {
		return "pinned", s.Config.Images.Pin(img.ID, image.Pin{By: who.Name, At: s.Clock.Now().UTC(), Reason: reason})
	})
}

// UnpinImage leaves a content to the site's rule.
func (s *Service) UnpinImage(ctx context.Context, who muster.Actor, ref string) (wire.ImagePinned, error) {
	return s.changePin(ctx, who, ref, "unpin images", func(img *muster.Image) (string, error) {
		was, err := s.Config.Images.Unpin(img.ID)
		if err == nil && !was {
			return "not-pinned", nil
		}
		return "unpinned", err
	})
}

func (s *Service) changePin(ctx context.Context, who muster.Actor, ref, what string, change func(*muster.Image) (string, error)) (wire.ImagePinned, error) {
	var out wire.ImagePinned
	if err := administrator(who, what); err != nil {
		return out, err
	}
	if err := s.Superseded(); err != nil {
		return out, err // pins are not in the store
	}
	img, err := s.Config.Images.Resolve(ref)
	if err != nil {
		return out, err
	}
	status, err := change(img)
	if err != nil {
		return out, err
	}
	out = wire.ImagePinned{ID: string(img.ID), Ref: versionRef(img), Status: status}
	if status == "not-pinned" {
		return out, nil
	}
	return out, s.Store.Update(ctx, who, func(tx *store.Tx) error {
		return tx.Note(muster.AuditImage, string(img.ID), "", status+" "+out.Ref)
	})
}

// PruneVersions removes contents of images that nothing keeps any more.
func (s *Service) PruneVersions(ctx context.Context) error {
	if s.Superseded() != nil {
		return nil // images are another server's now
	}
	gone, failed := s.Config.Images.PruneVersions(ctx, s.policy.Load().Versions, s.ImageUsers())
	if len(gone) == 0 {
		return failed
	}
	return errors.Join(failed, s.Store.Update(context.WithoutCancel(ctx), muster.System(), func(tx *store.Tx) error {
		for i := range gone {
			if err := tx.Note(muster.AuditImage, string(gone[i].ID), "", "removed "+versionRef(&gone[i])+", built "+gone[i].Created.UTC().Format(time.DateOnly)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// CompareImages says what differs between two images: packages, and the rest.
func (s *Service) CompareImages(ctx context.Context, who muster.Actor, ref, with string) (wire.ImageComparison, error) {
	a, err := s.Image(ctx, who, ref)
	if err != nil {
		return wire.ImageComparison{}, err
	}
	b, err := s.Image(ctx, who, with)
	if err != nil {
		return wire.ImageComparison{}, err
	}
	d := image.Compare(&a, &b)
	side := func(m *muster.Image) wire.ComparedImage {
		return wire.ComparedImage{ID: string(m.ID), Ref: versionRef(m), Built: m.Created, Packages: len(m.Packages)}
	}
	changes := func(list []image.PackageChange) []wire.PackageChange {
		out := make([]wire.PackageChange, len(list))
		for i, c := range list {
			out[i] = wire.PackageChange{Name: c.Name, Architecture: c.Architecture, From: c.From, To: c.To}
		}
		return out
	}
	var differ []wire.ImageDifference
	for _, o := range image.Others(&a, &b) {
		differ = append(differ, wire.ImageDifference{What: o.What, From: o.From, To: o.To})
	}
	return wire.ImageComparison{
		Differ: differ,
		From:   side(&a), To: side(&b), Newer: changes(d.Newer), Older: changes(d.Older), Added: changes(d.Added), Removed: changes(d.Removed), Same: d.Same,
	}, nil
}

// namedPackages is how many packages a notice names.
const namedPackages = 3

// oldImage says how old a content is that is not the newest of its image, and what has
// newer versions since.
func (s *Service) oldImage(img *muster.Image) []string {
	if _, is := image.VersionOf(img); !is {
		return nil
	}
	newest, err := s.Config.Images.Resolve(img.Name)
	if err != nil || newest.ID == img.ID || !newest.Created.After(img.Created) {
		return nil
	}
	d := image.Compare(img, newest)
	day := func(m *muster.Image) string { return m.Created.UTC().Format(time.DateOnly) }
	text := fmt.Sprintf("image %s was built on %s, %s before the newest of %s (%s)", versionRef(img), day(img), daysBetween(img.Created, newest.Created), img.Name, day(newest))
	if len(d.Newer) == 0 {
		return []string{text + "; none of its packages has a newer version there"}
	}
	var first []string
	for _, c := range d.Newer[:min(namedPackages, len(d.Newer))] {
		first = append(first, c.Name+" "+c.To+" (here "+c.From+")")
	}
	if more := len(d.Newer) - len(first); more > 0 {
		first = append(first, fmt.Sprintf("and %d more", more))
	}
	has := "have newer versions"
	if len(d.Newer) == 1 {
		has = "has a newer version"
	}
	return []string{fmt.Sprintf("%s; %s %s there: %s; `muster image compare %s %s` lists all", text, plaintext.Count(len(d.Newer), "package"), has, strings.Join(first, ", "), versionRef(img), img.Name)}
}

// daysBetween counts days as a calendar does: how many midnights of UTC lie between.
func daysBetween(a, b time.Time) string {
	const day = 24 * time.Hour
	n := int(b.UTC().Truncate(day).Sub(a.UTC().Truncate(day)) / day)
	if n == 0 {
		return "some hours"
	}
	return plaintext.Count(n, "day")
}
