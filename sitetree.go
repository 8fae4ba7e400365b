package muster

import "time"

// SiteTree is where the machines of a site stand and how they are joined, as an
// administrator described it: data centres, rooms, spines, leaves and chassis. What it
// leaves out is known from registrations.
type SiteTree struct {
	// Stands are in the order of the file.
	Stands []Stand   `json:"stands"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Stand is one data centre, room, switch or chassis of a SiteTree: what machines stand in.
type Stand struct {
	Name string    `json:"name"`
	Kind StandKind `json:"kind"`
	// In is the one that it stands in, or that its uplink goes to; "": none is known.
	In string `json:"in,omitempty"`
	// Uplink is the capacity of all cables to In together, in bits/s each way; 0: not known.
	// All that stands below shares it.
	Uplink int64 `json:"uplink_bps,omitempty"`
	// Cables are how many these are; 0: 1.
	Cables int `json:"uplink_cables,omitempty"`
	// Delay is what a message takes on the uplink, each way; 0: not known, or none.
	Delay Duration `json:"uplink_delay_seconds,omitempty"`
	// Link is what each machine's own link to it carries, in bits/s each way; 0: what the
	// machine says.
	Link int64 `json:"machine_link_bps,omitempty"`
	// Machines are those that stand directly in it, as a set of names: n[01-14].
	Machines string `json:"machines,omitempty"`
}

// StandKind is a level of a SiteTree.
type StandKind string

// Levels, the outermost first. A spine may stand below another one.
const (
	StandDataCentre StandKind = "datacentre"
	StandRoom       StandKind = "room"
	StandSpine      StandKind = "spine"
	StandLeaf       StandKind = "leaf"
	StandChassis    StandKind = "chassis"
)

// StandKinds are the levels, the outermost first.
func StandKinds() []StandKind {
	return []StandKind{StandDataCentre, StandRoom, StandSpine, StandLeaf, StandChassis}
}

// What a cluster may be kept within.
const (
	WithinRack    = "rack"
	WithinChassis = "chassis"
	WithinLeaf    = "leaf"
	WithinSpine   = "spine"
	WithinRoom    = "room"
	WithinSite    = "site"     // one data centre, as when nothing is said
	WithinAnySite = "any-site" // it may span data centres
)

// Within are the words for what a cluster may be kept within, the narrowest first.
func Within() []string {
	return []string{WithinChassis, WithinRack, WithinLeaf, WithinSpine, WithinRoom, WithinSite, WithinAnySite}
}

// PlanDistance is how far the compute nodes of a plan are from each other.
type PlanDistance struct {
	// Switches are between the two nodes that are farthest from each other, and Mean between
	// two of them on average.
	Switches int     `json:"switches"`
	Mean     float64 `json:"mean_switches"`
	// Cost is that of communication: the sum over all links of s(k-s)/capacity, s of the k
	// nodes being below the link. It is in seconds, in which each node sends one gigabit to
	// each other. A link whose capacity is not known counts as one of 1 Gb/s.
	Cost float64 `json:"cost_seconds"`
	// Least is the least cost of as many machines among those that could be had.
	Least float64 `json:"least_cost_seconds"`
	// Uplinks are what its nodes share, the narrowest first, at most MaxUplinks. Those of
	// unknown capacity are only counted.
	Uplinks []UplinkShare `json:"uplinks,omitempty"`
	Unknown int           `json:"unknown_uplinks,omitempty"`
}

// UplinkShare is one uplink that messages between the nodes of a cluster cross.
type UplinkShare struct {
	Stand string    `json:"stand"`
	Kind  StandKind `json:"kind"`
	// Nodes are those of the cluster below it.
	Nodes int `json:"nodes"`
	// Capacity is that of the uplink, and Share what each of the nodes below has of it when
	// all send through it at once. Both are in bits/s.
	Capacity int64 `json:"capacity_bps"`
	Share    int64 `json:"share_bps"`
}

// MaxUplinks is how many uplinks of a plan are listed.
const MaxUplinks = 8
