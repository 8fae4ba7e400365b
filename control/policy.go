package control

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/metal/enrollment"
	"github.com/muster-hpc/muster/storage/image"
)

// Policy is what a site allows and takes for granted. It can change while the server
// runs.
type Policy struct {
	// Egress lists what clusters may ask for as outgoing traffic. Empty: none
	// and proxy.
	Egress []muster.Egress
	// Doors are those of the SSH gateway that may be open. Empty: all; muster.DoorNone alone: none.
	Doors []muster.Door
	// Defaults fill what requests leave open; users and project are filled
	// for each caller.
	Defaults spec.Defaults
	// MaxWalltime is the longest that a cluster may live. 0: as long as it likes.
	MaxWalltime time.Duration
	// MaxPause is how long a cluster may stay paused until it is deleted. 0: 30 days.
	MaxPause time.Duration
	// MaxQueued is how long a request may wait until it is ended. 0: 30 days.
	MaxQueued time.Duration
	// DefaultWalltime is what a request gets that names none. 0: MaxWalltime, or no end.
	DefaultWalltime time.Duration
	// DerivedPerProject is how many images with added packages the clusters of a project
	// may have at once. Zero: image.DefaultKeep's.
	DerivedPerProject int
	// Versions says which old contents of images stay. Zero: image.DefaultKeepVersions.
	Versions image.KeepVersions
	// Approval are the rules by which machines that come by themselves are taken in.
	// Nil: all of them wait.
	Approval enrollment.Rules
	// IdleBenchmarks says when machines that nobody uses are measured.
	IdleBenchmarks IdleBenchmarks
}

// SetPolicy replaces the site's policy. It holds for what is asked from now on; clusters
// keep what they were given.
func (s *Service) SetPolicy(p Policy) {
	if len(p.Egress) == 0 {
		p.Egress = []muster.Egress{muster.EgressNone, muster.EgressProxy}
	}
	if p.DerivedPerProject == 0 {
		p.DerivedPerProject = image.DefaultKeep().PerProject
	}
	if p.MaxPause == 0 {
		p.MaxPause = 30 * 24 * time.Hour
	}
	if p.MaxQueued == 0 {
		p.MaxQueued = 30 * 24 * time.Hour
	}
	if p.IdleBenchmarks.Host == nil {
		p.IdleBenchmarks.Host = s.host
	}
	s.policy.Store(&p)
}
