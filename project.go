package muster

import "time"

// Project is a group of people who share clusters, volumes and limits.
type Project struct {
	Name string `json:"name"`
	// Managers may add members and lift limits of the project's people, within the limits
	// of the project. Members are those whose record names the project.
	Managers []string `json:"managers,omitempty"`
	// Limits bound the project as a whole, and EachUser every one of its people.
	Limits   Limits `json:"limits,omitzero"`
	EachUser Limits `json:"each_user,omitzero"`
	// Hours are other limits that hold in some hours of the week: the stricter one counts.
	Hours []HourLimit `json:"hours,omitempty"`
	// Rights are what its people may ask for.
	Rights Rights `json:"rights,omitzero"`
	// Exceptions lift limits for one cluster each, for everybody to see.
	Exceptions []Exception `json:"exceptions,omitempty"`
	// Licences are servers outside that the nodes of its clusters reach.
	Licences []LicenceServer `json:"licences,omitempty"`
}

// Limits bound what may be held, booked and asked for. Zero fields bound nothing.
type Limits struct {
	// Machines, Cores and Accelerators at once.
	Machines     int `json:"machines,omitempty"`
	Cores        int `json:"cores,omitempty"`
	Accelerators int `json:"accelerators,omitempty"`
	// MachineTime is what may be booked within Period, which ends now: machines times how
	// long. A promise counts when it is given; what is given back early, and pauses, do not.
	MachineTime Duration `json:"machine_time_seconds,omitempty"`
	Period      Duration `json:"period_seconds,omitempty"`
	// Promises held at once, and how far ahead they may lie.
	Promises int      `json:"promises,omitempty"`
	Ahead    Duration `json:"ahead_seconds,omitempty"`
	// Walltime is the longest of a cluster.
	Walltime Duration `json:"walltime_seconds,omitempty"`
}

// HourLimit is a limit on machines at once in some hours of each week.
type HourLimit struct {
	// Days, From and Until say when: "fri 18:00" to "mon 08:00" in Zone.
	From     string `json:"from"`
	Until    string `json:"until"`
	Zone     string `json:"zone"`
	Machines int    `json:"machines"`
}

// Rights are what people may ask for. Nil: everything.
type Rights struct {
	// Promises: they may ask for a time.
	NoPromises bool `json:"no_promises,omitempty"`
	// Racks: they may name a rack, or ask for all nodes in one.
	NoRacks bool `json:"no_racks,omitempty"`
	// Hardware: they may name a processor or an accelerator's model.
	NoHardware bool `json:"no_hardware,omitempty"`
	// Classes and Providers that they may have, with wildcards. Empty: all.
	Classes   []string `json:"classes,omitempty"`
	Providers []string `json:"providers,omitempty"`
	// Doors are those of the SSH gateway that its clusters may have open. Empty: all; DoorNone
	// alone: none.
	Doors []Door `json:"doors,omitempty"`
}

// Allowed are classes and providers of machines, with wildcards. Empty: all.
type Allowed struct {
	Classes   []string `json:"classes,omitempty"`
	Providers []string `json:"providers,omitempty"`
}

// Exception lifts the limits for the next cluster of a name, which takes it with it.
type Exception struct {
	Cluster string `json:"cluster"` // its name
	Lift
}

// Lift says that limits do not hold for a cluster.
type Lift struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
	// Until is when they hold again, for what is asked then. Zero: never.
	Until time.Time `json:"until,omitzero"`
	Why   string    `json:"why,omitempty"`
	// UserOnly: the limits of each user alone do not hold; those of the project do.
	UserOnly bool `json:"user_only,omitempty"`
}

// Text says it to people.
func (l Lift) Text() string {
	text := "the limits of its project"
	if l.UserOnly {
		text = "the limits of each user"
	}
	text += " are lifted for it, by " + l.By
	if !l.Until.IsZero() {
		text += " until " + l.Until.UTC().Format(time.RFC3339)
	}
	if l.Why != "" {
		text += ": " + l.Why
	}
	return text
}
