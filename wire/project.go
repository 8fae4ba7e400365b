package wire

import "github.com/muster-hpc/muster"

// ProjectUse is a project with what is in use of its limits.
type ProjectUse struct {
	muster.Project
	Members []string `json:"members"`
	// Use is that of the whole project, and Users of each member who holds anything.
	Use   LimitUse            `json:"use"`
	Users map[string]LimitUse `json:"users,omitempty"`
	// Lifted are living clusters for which limits do not hold.
	Lifted []LiftedCluster `json:"lifted,omitempty"`
	// Kept: it has a record of its own; otherwise the site's rules for all projects hold.
	Kept bool `json:"kept"`
}

// LiftedCluster is a cluster for which limits do not hold.
type LiftedCluster struct {
	ID   muster.ClusterID `json:"id"`
	Name string           `json:"name"`
	muster.Lift
}

// LimitUse is what somebody has of what limits bound.
type LimitUse struct {
	Machines     int             `json:"machines"`
	Cores        int             `json:"cores"`
	Accelerators int             `json:"accelerators"`
	Promises     int             `json:"promises"`
	MachineTime  muster.Duration `json:"machine_time_seconds"`
}

// ProjectList is a page of projects.
type ProjectList struct {
	Projects []ProjectUse `json:"projects"`
	More
}

// ProjectLimits changes limits, hours and rights. Each of Set is "machines=8",
// "user.cores=64", "walltime=7d", "machine-time=2000h/30d", "classes=a,b", "racks=no",
// "hours=fri 18:00-mon 08:00 Europe/Berlin:2", or "machines=none" for no limit.
type ProjectLimits struct {
	Set   []string `json:"set"`
	Force bool     `json:"force,omitempty" doc:"Also where more is in use: nobody is ended, and new requests are refused"`
}

// ProjectMember makes somebody a member or a manager of a project, or neither.
type ProjectMember struct {
	User string `json:"user"`
	Role string `json:"role" doc:"member, manager or none"`
}

// ProjectLicence lets the nodes of a project's clusters reach a licence server, or not any more.
type ProjectLicence struct {
	Server string `json:"server" maxLength:"300" doc:"HOST:PORT of TCP, as Muster's server resolves the name"`
	Revoke bool   `json:"revoke,omitempty" doc:"They do not reach it any more; connections end"`
}

// ProjectAllow lifts the limits of a project for one cluster.
type ProjectAllow struct {
	Cluster string `json:"cluster" doc:"Name or ID; it need not exist yet"`
	Until   string `json:"until,omitempty" doc:"Until when it may be asked for; default: always"`
	Why     string `json:"why,omitempty"`
	Revoke  bool   `json:"revoke,omitempty"`
}
