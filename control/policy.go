package control

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/approval"
	"github.com/muster-hpc/muster/image"
	"github.com/muster-hpc/muster/spec"
)

// Policy is what a site allows and takes for granted. It can change while the server
// runs.
type Policy struct {
	// Egress lists what clusters may ask for as outgoing traffic. Empty: none
	// and proxy.
	Egress []muster.Egress
	// Defaults fill what requests leave open; users and project are filled
	// for each caller.
	Defaults spec.Defaults
	// MaxWalltime is the longest that a cluster may live. 0: as long as it likes.
	MaxWalltime time.Duration
	// DerivedPerProject is how many images with added packages the clusters of a project
	// may have at once. Zero: image.DefaultKeep's.
	DerivedPerProject int
	// Approval are the rules by which machines that come by themselves are taken in.
	// Nil: all of them wait.
	Approval approval.Rules
	// Idle says when machines that nobody uses are measured.
	Idle IdleMeasuring
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
	s.policy.Store(&p)
}
