package image

import (
	muster "github.com/muster-hpc/muster"
)

// Format is the version of the manifest: one of another version is not read.
const Format = 1

// Limits on recipes: what is over them is a mistake or an attack.
const (
	maxRecipeBytes = 1 << 20
	maxPackages    = 2000
	maxFiles       = 500
	maxCommands    = 100
	maxTextBytes   = 256 << 10
	maxFileBytes   = 64 << 20 // of one file beside a recipe
)

// Recipe says what an image is made of. Its fields are those of the recipe
// file; docs/operators/images.md describes them for people.
type Recipe struct {
	Name    string `json:"name"`
	Summary string `json:"-"` // not content
	// Abstract recipes are only there to be extended.
	Abstract bool   `json:"-"`
	Extends  string `json:"-"` // gone once resolved

	Base     Base      `json:"base"`
	Packages []string  `json:"packages"`
	Accounts []Account `json:"accounts"`
	Files    []File    `json:"files"`
	Commands []Command `json:"commands"`
	Keep     []string  `json:"keep"` // units left enabled; all others are disabled
	Mask     []string  `json:"mask"`
	// Exclude are paths that no package brings, also none that is added later: manuals.
	// Trim are paths that only the image's own packages do without.
	Exclude   []string `json:"exclude"`
	Trim      []string `json:"trim"`
	NSMasks   []string `json:"namespace-masks"`
	Kernel    Kernel   `json:"kernel"`
	UserRoot  bool     `json:"user-root"`
	Scheduler string   `json:"scheduler"` // slurm, none

	Requires Requires            `json:"requires"`
	Agent    muster.VersionRange `json:"agent"`

	// The keys above are part of what the hash of a recipe is taken of: another key, and
	// all images are built again.

	// set remembers which scalar fields the file names, so that extending
	// works: a field that is not named is inherited.
	set map[string]bool
}

// Base is the distribution to start from.
type Base struct {
	Distribution string   `json:"distribution"` // debian
	Suite        string   `json:"suite"`        // bookworm, trixie
	Components   []string `json:"components"`
	// Mirror and SecurityMirror are where packages come from and what is
	// written into the image. They are not content: two mirrors hold the same
	// packages.
	Mirror         string `json:"-"`
	SecurityMirror string `json:"-"`
}

// Account is a system user or group with a number that is the same in all
// images, so that files on a volume keep their owner when the image changes.
type Account struct {
	Name  string `json:"name"`
	UID   int    `json:"uid"` // -1: only a group
	GID   int    `json:"gid"`
	Home  string `json:"home"`
	Shell string `json:"shell"`
	// Group is false when GID is a group that exists already.
	Group bool `json:"group"`
}

// File is a file that the recipe brings.
type File struct {
	Path    string `json:"path"`
	Mode    uint32 `json:"mode"`
	Content string `json:"content"`
	// From is where the content lies beside the recipe, instead of Content: a
	// file, or a directory whose files all come, below Path. Once a recipe is
	// loaded there are only files with their content.
	From string `json:"-"`
	// Mirror is where the content lies on the distribution's mirror, instead of
	// Content: pool/main/h/hpcc/hpcc_1.5.0.orig.tar.gz. SHA256 is its digest in
	// hexadecimal: whatever else comes is refused.
	Mirror string `json:"mirror,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Early files are there before the packages are installed.
	Early bool `json:"early"`
}

// Command is run by /bin/sh as root inside the image, without a network.
type Command struct {
	Name string `json:"name"`
	Run  string `json:"run"`
}

// Requires is what the image asks of a machine.
type Requires struct {
	Architecture string   `json:"architecture"` // amd64, arm64; empty: this host's
	CPULevel     int      `json:"cpu-level"`
	Memory       int64    `json:"memory"`
	Devices      []string `json:"devices"`
}
