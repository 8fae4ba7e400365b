package muster

// Distance is how far apart two nodes are that were measured with each other: by what both stand in.
type Distance string

// The distances, from near to far. Sites of which nothing is known but racks have three of them: host, rack and
// site.
const (
	SameHost    Distance = "host" // slices of one host, behind one switch of it
	SameChassis Distance = "chassis"
	SameLeaf    Distance = "leaf"
	SameRack    Distance = "rack"
	SameSpine   Distance = "spine"
	SameRoom    Distance = "room"
	SameCentre  Distance = "datacentre"
	SameSite    Distance = "site"
	OtherCentre Distance = "datacentres" // each in another one
)

// Distances are all that there are, from near to far.
func Distances() []Distance {
	return []Distance{SameHost, SameChassis, SameLeaf, SameRack, SameSpine, SameRoom, SameCentre, SameSite, OtherCentre}
}

// String is the distance in words: "behind one leaf switch".
func (d Distance) String() string {
	switch d {
	case "node":
		return "in one node"
	case SameHost:
		return "on one host"
	case SameChassis:
		return "in one chassis"
	case SameLeaf:
		return "behind one leaf switch"
	case SameRack:
		return "in one rack"
	case SameSpine:
		return "across a spine"
	case SameRoom:
		return "across a room"
	case SameCentre:
		return "across a data centre"
	case SameSite:
		return "in different racks"
	case OtherCentre:
		return "between data centres"
	}
	return string(d)
}

// Coarse is the distance as it was called where nothing is known but racks. What was measured then is
// comparable with what is measured by more levels in no other way.
func (d Distance) Coarse() Distance {
	switch d {
	case SameChassis, SameLeaf:
		return SameRack
	case SameSpine, SameRoom, SameCentre, OtherCentre:
		return SameSite
	}
	return d
}
