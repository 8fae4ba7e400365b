package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// ChangeRequest changes a cluster that has not started yet. What is left out stays.
type ChangeRequest struct {
	Start    string `json:"start,omitempty" doc:"When, as in a request; now: as soon as there is room"`
	Walltime string `json:"walltime,omitempty" doc:"How long, such as 8h or 2d"`
	Nodes    int    `json:"nodes,omitempty" doc:"How many compute nodes"`
	Raise    string `json:"raise,omitempty" doc:"How much longer it counts as having waited, such as 2d; administrators only, and everybody sees it"`
}

// Changed is the reply to a ChangeRequest.
type Changed struct {
	ID     muster.ClusterID    `json:"id"`
	Name   string              `json:"name"`
	Status muster.ClusterPhase `json:"status"`
	Answer muster.Answer       `json:"answer"`
}

// CalendarKind is what an entry of the calendar is.
type CalendarKind string

// What entries are.
const (
	CalendarCluster     CalendarKind = "cluster"     // has its machines
	CalendarPromise     CalendarKind = "promise"     // a time that binds
	CalendarEstimate    CalendarKind = "estimate"    // a request that waits
	CalendarPause       CalendarKind = "pause"       // a cluster that is away
	CalendarMaintenance CalendarKind = "maintenance" // machines that are kept free
)

// CalendarEntry is one thing in the calendar.
type CalendarEntry struct {
	Kind    CalendarKind     `json:"kind"`
	Cluster muster.ClusterID `json:"cluster,omitempty"`
	// Name is "busy" where the asker may not see whose it is.
	Name    string `json:"name"`
	Project string `json:"project,omitempty"`
	Class   string `json:"class,omitempty"`
	// Machines counts those that it has, or needs.
	Machines int `json:"machines"`
	// Start and End are when its people can log in, and when their time is over. Zero:
	// no time is known; it has no end.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// StartSpread is how far off estimates were lately.
	StartSpread muster.Duration `json:"start_spread_seconds,omitempty"`
	Text        string          `json:"text,omitempty"`
}

// Calendar is what the machines of a site do from one time until another.
type Calendar struct {
	From     time.Time       `json:"from"`
	Until    time.Time       `json:"until"`
	Machines int             `json:"machines"` // in service; of those that share a part, as many as can be in use at once
	Entries  []CalendarEntry `json:"entries"`  // by their start
}

// CalendarQuery narrows a calendar.
type CalendarQuery struct {
	From  string // a time as a request's start is written; "": now
	Until string // "": a week later
	Class string // only this class
	Mine  bool   // only what the asker's projects have
}

// MaintenanceRequest enters a time in which machines are kept free of tenants.
type MaintenanceRequest struct {
	Machines []string `json:"machines,omitempty" doc:"Machines, by name or range such as n[01-16]"`
	Rack     string   `json:"rack,omitempty" doc:"All machines of a rack"`
	Class    string   `json:"class,omitempty" doc:"All machines of a class"`
	From     string   `json:"from" doc:"When it begins, as a request's start is written"`
	Until    string   `json:"until,omitempty" doc:"When it ends; default: when it is removed"`
	Why      string   `json:"why,omitempty"`
	Force    bool     `json:"force,omitempty" doc:"Enter it although promises or clusters are in the way"`
}

// Maintenance is a window with what is in its way.
type Maintenance struct {
	Window muster.MaintenanceWindow `json:"window"`
	// Breaks are promises that move, or clusters that are on its machines when it begins.
	Breaks []string `json:"breaks,omitempty"`
}

// MaintenanceList is every window that is entered.
type MaintenanceList struct {
	Windows []muster.MaintenanceWindow `json:"windows"`
	More
}
