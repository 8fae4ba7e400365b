package image

import (
	"slices"
	"testing"
	"time"

	muster "github.com/muster-hpc/muster"
)

// Two contents with the same packages say what is not the same; one content has nothing to say.
func TestOthers(t *testing.T) {
	t.Parallel()
	a := &muster.Image{ID: "sha256:aa", Recipe: "r1", Format: 7, Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Kernel: "6.12.1", Suite: "trixie",
		Files: []muster.ImageFile{{Name: "root.squashfs", Size: 1 << 20, SHA256: "aaaa"}, {Name: "gone", SHA256: "cc"}}}
	b := *a
	if got := Others(a, &b); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	b.ID, b.Recipe, b.Created, b.Kernel = "sha256:bb", "r2", a.Created.AddDate(0, 0, 1), "6.12.2"
	b.Files = []muster.ImageFile{{Name: "root.squashfs", Size: 1 << 20, SHA256: "bbbb"}, {Name: "new", SHA256: "dd"}}
	var words []string
	for _, o := range Others(a, &b) {
		if o.From == o.To {
			t.Errorf("%+v is the same", o)
		}
		words = append(words, o.What)
	}
	if want := []string{"content", "built", "recipe", "kernel", "gone", "new", "root.squashfs"}; !slices.Equal(words, want) {
		t.Errorf("%q, not %q", words, want)
	}
}
