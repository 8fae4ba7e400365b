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
