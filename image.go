package muster

import (
	"strings"
	"time"
)

// Image is the manifest of an image: what it is made of, what it needs from a
// machine, and the digests that its files must have. It lies beside the files
// as manifest.json and never changes once published.
type Image struct {
	// Format is the version of the manifest's form and of the builder. It is
	// part of the content ID.
	Format int `json:"format"`
	// ID names the content: the same recipe and the same package versions
	// give the same ID.
	ID      ImageID `json:"id"`
	Name    string  `json:"name"` // of the recipe; of a derived image, of its base
	Summary string  `json:"summary,omitempty"`
	// Recipe is the SHA-256 of the normalized recipe, in hexadecimal.
	Recipe string `json:"recipe"`
	// Base and Added are set on a derived image: what it was derived from and
	// the packages that were asked for, sorted.
	Base  ImageID  `json:"base,omitempty"`
	Added []string `json:"added,omitempty"`

	// Saved is set on an image that was made of a node's root file system: only clusters of
	// that project may run it.
	Saved *ImageSaved `json:"saved,omitempty"`

	Created      time.Time `json:"created"`
	Architecture string    `json:"architecture"` // as Debian says it: amd64
	Distribution string    `json:"distribution"` // debian
	Suite        string    `json:"suite"`        // trixie
	System       string    `json:"system"`       // "Debian GNU/Linux 13 (trixie)"

	Files []ImageFile `json:"files"`
	// Uncompressed is the size of the root file system's files in bytes.
	Uncompressed int64 `json:"uncompressed_bytes"`
	// Packages are all installed packages, sorted by name and architecture.
	Packages []ImagePackage `json:"packages"`

	Requires ImageNeeds `json:"requires"`
	// UserRoot: the user of a cluster is root on its nodes.
	UserRoot bool `json:"user_root"`
	// Slurm is the upstream version of the scheduler ("24.11.5"), empty when
	// the image has none.
	Slurm string `json:"slurm,omitempty"`
	// Kernel is the release of the image's kernel, empty when it has none
	// (machines of provider local need none).
	Kernel string `json:"kernel,omitempty"`
	// Modaliases are the patterns of the devices that the image's kernel has
	// drivers for, in the form of modules.alias.
	Modaliases []string `json:"modaliases,omitempty"`
	// Agent is the range of agent protocol versions that the image works with.
	Agent VersionRange `json:"agent"`
	// Accounts are the fixed numbers of system users and groups.
	Accounts []ImageAccount `json:"accounts,omitempty"`
	// Names are the users and groups that the image has, sorted: no person can have
	// one of these names on its nodes. Empty in images of an older builder.
	Names []string `json:"names,omitempty"`
	// NamespaceMasks are the units that have no use when the image runs in
	// namespaces instead of on hardware. They are enabled in the image; the
	// provider masks them.
	NamespaceMasks []string `json:"namespace_masks,omitempty"`
}

// ImageSaved is where the root file system of an image comes from.
type ImageSaved struct {
	Project string    `json:"project"`
	Name    string    `json:"name"`    // of the template
	Cluster string    `json:"cluster"` // its name
	Node    string    `json:"node"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Base    ImageID   `json:"base"` // what the node ran
}

// For reports whether clusters of a project may run the image.
func (i *Image) For(project string) bool { return i.Saved == nil || i.Saved.Project == project }

// ImageNeeds is what an image asks of a machine.
type ImageNeeds struct {
	// Memory in bytes, beyond the root file system itself where that is kept
	// in memory.
	Memory int64 `json:"memory_bytes,omitempty"`
	// CPULevel is 1..4 for x86-64-v1..v4; 0 elsewhere.
	CPULevel int `json:"cpu_level,omitempty"`
	// Devices are patterns of which each must match a Modalias of the machine
	// ("pci:v000010DE*" asks for hardware of one maker).
	Devices []string `json:"devices,omitempty"`
}

// ImageFile is one file of an image.
type ImageFile struct {
	Role   FileRole `json:"role"`
	Name   string   `json:"name"` // within the image's directory
	Size   int64    `json:"size_bytes"`
	SHA256 string   `json:"sha256"` // hexadecimal
}

// FileRole says what a file of an image is for.
type FileRole string

// File roles.
const (
	FileRoot    FileRole = "root"    // squashfs of the root file system
	FileKernel  FileRole = "kernel"  // bootable kernel
	FileInitrd  FileRole = "initrd"  // Debian's own initial RAM disk
	FileModules FileRole = "modules" // tar of /usr/lib/modules/RELEASE
)

// ImagePackage is one installed package.
type ImagePackage struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
}

// ImageAccount is a system user (UID set) or a bare group (UID -1).
type ImageAccount struct {
	Name string `json:"name"`
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
}

// VersionRange is closed: Min and Max both belong to it.
type VersionRange struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Has reports whether v is in the range.
func (r VersionRange) Has(v int) bool { return v >= r.Min && v <= r.Max }

// Hex is the ID without its "sha256:" prefix: the name of the image's directory.
func (id ImageID) Hex() string { return strings.TrimPrefix(string(id), "sha256:") }

// Short is enough of the ID for people to tell images apart.
func (id ImageID) Short() string {
	h := id.Hex()
	return h[:min(12, len(h))]
}

// File returns the file of a role.
func (i *Image) File(role FileRole) (ImageFile, bool) {
	for _, f := range i.Files {
		if f.Role == role {
			return f, true
		}
	}
	return ImageFile{}, false
}

// Size is the sum of the sizes of all files, in bytes.
func (i *Image) Size() int64 {
	var n int64
	for _, f := range i.Files {
		n += f.Size
	}
	return n
}
