package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Image is an image as a client sees it.
type Image struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Summary  string    `json:"summary,omitempty"`
	Size     int64     `json:"size_bytes"` // bytes of all files
	Created  time.Time `json:"created"`
	System   string    `json:"system"` // "Debian GNU/Linux 13 (trixie)"
	UserRoot bool      `json:"user_root"`
	Slurm    string    `json:"slurm,omitempty"`
	Packages int       `json:"packages"`
	Base     string    `json:"base,omitempty"` // of a derived image
	// Saved is where an image comes from that was made of a node's root.
	Saved *muster.ImageSaved `json:"saved,omitempty"`
	// Projects asked for a derived image: those of them that who asks is in, all for an
	// administrator.
	Projects []string `json:"projects,omitempty"`
	InUse    []string `json:"in_use,omitempty"`
	Newest   bool     `json:"newest"` // what the name means now
}

// ImageVersion is one content among those that an image had over time.
type ImageVersion struct {
	ID       string    `json:"id"`
	Ref      string    `json:"ref"` // names it in requests: hpc@0ddd19d63a2e
	Built    time.Time `json:"built"`
	Size     int64     `json:"size_bytes"`
	Packages int       `json:"packages"`
	Current  bool      `json:"current"` // what the name alone means
	// Kept is why it stays: current, in-use, pinned, newest, age. Empty: it is removed soon.
	Kept []string `json:"kept"`
	// InUse is what uses it, as far as who asks may see it.
	InUse []string  `json:"in_use,omitempty"`
	Pin   *ImagePin `json:"pin,omitempty"`
}

// ImagePin says who keeps a content, and why.
type ImagePin struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// ImageRule is which contents stay that nobody uses and that are not pinned.
type ImageRule struct {
	Newest int             `json:"newest"`      // of each image
	Age    muster.Duration `json:"age_seconds"` // those that are younger; 0: age keeps none
}

// ImageVersionList is the reply to a listing of the contents of an image, the newest first.
type ImageVersionList struct {
	Image    string         `json:"image"`
	Rule     ImageRule      `json:"rule"`
	Versions []ImageVersion `json:"versions"`
	More
}

// PinImage asks that a content stays.
type PinImage struct {
	Reason string `json:"reason,omitempty" maxLength:"200" doc:"Shown with the content"`
}

// ImagePinned is the reply to pinning and unpinning.
type ImagePinned struct {
	ID     string `json:"id"`
	Ref    string `json:"ref"`
	Status string `json:"status"` // pinned, unpinned, not-pinned
}

// ImageComparison is how one image differs from another.
type ImageComparison struct {
	From    ComparedImage   `json:"from"`
	To      ComparedImage   `json:"to"`
	Newer   []PackageChange `json:"newer"`   // in To
	Older   []PackageChange `json:"older"`   // in To
	Added   []PackageChange `json:"added"`   // only in To
	Removed []PackageChange `json:"removed"` // only in From
	Same    int             `json:"same"`
	// Differ is what else is not the same, one word each: kernel, recipe, base.
	Differ []ImageDifference `json:"differ,omitempty" doc:"What else is not the same"`
}

// ImageDifference is something of two images that is not the same, beside their packages.
type ImageDifference struct {
	What string `json:"what" doc:"content, built, recipe, builder, base, added, kernel, suite, files, units or saved"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// ComparedImage is one side of a comparison.
type ComparedImage struct {
	ID       string    `json:"id"`
	Ref      string    `json:"ref"`
	Built    time.Time `json:"built"`
	Packages int       `json:"packages"`
}

// PackageChange is a package of which two images have different versions.
type PackageChange struct {
	Name         string `json:"name"`
	Architecture string `json:"architecture"`
	From         string `json:"from,omitempty"`
	To           string `json:"to,omitempty"`
}
