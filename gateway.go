package muster

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Door is a way by which a user comes through the gateway.
type Door string

// Doors.
const (
	// DoorJump: the gateway connects a client with a node, and what they say stays between them.
	DoorJump Door = "jump"
	// DoorPlain: the gateway logs in to the node for the user, and passes the session on.
	DoorPlain Door = "plain"
	// DoorStraight: a ticket lets one connection through to a node, in the kernel where that can be.
	DoorStraight Door = "straight"
)

// DoorNone in place of doors says that none is open.
const DoorNone Door = "none"

// Doors are all that there are.
func Doors() []Door { return []Door{DoorStraight, DoorJump, DoorPlain} }

// OpenIn are those of doors that are in a list as well. An empty list has all.
func OpenIn(doors, list []Door) []Door {
	if len(list) == 0 {
		return doors
	}
	return slices.DeleteFunc(slices.Clone(doors), func(d Door) bool { return !slices.Contains(list, d) })
}

// ParseDoors reads the names of doors, or none. An empty list is that of all.
func ParseDoors(names []string) ([]Door, error) {
	var out []Door
	known := append(Doors(), DoorNone)
	for _, name := range names {
		if !slices.Contains(known, Door(name)) {
			return nil, Errorf(EInvalid, "there is no door %.40q", name).Because(ReasonBadValue).WithHint("write %s, or none", joinDoors(Doors()))
		}
		if !slices.Contains(out, Door(name)) {
			out = append(out, Door(name))
		}
	}
	if len(out) > 1 && slices.Contains(out, DoorNone) {
		return nil, Errorf(EInvalid, "none is not one of several doors").Because(ReasonContradiction).WithHint("write none alone, or the doors that are to be open")
	}
	return out, nil
}

func joinDoors(doors []Door) string {
	names := make([]string, len(doors))
	for i, d := range doors {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

// DoorTarget is where a user wants to go. The zero value is nowhere.
type DoorTarget struct {
	Cluster string // its name or ID
	Node    string // "": the head
	Project string // "": the user's clusters of that name, if it is one
}

// DoorNames are those by which users name a node at the site's doors: the cluster's name or ID, the
// node unless it is the head, and the project where that is needed.
func DoorNames(cluster, project string, id ClusterID, n Node) []string {
	var names []string
	for _, c := range []string{cluster, string(id)} {
		node := c + "." + n.Name
		names = append(names, node, node+"+"+project)
		if n.Head {
			names = append(names, c, c+"+"+project)
		}
	}
	return names
}

// DoorWay is where a door leads for a user: what DoorTarget came to be.
type DoorWay struct {
	Cluster     ClusterID
	ClusterName string
	Project     string
	Node        string
	Login       string // as whom on the node
}

// DoorClaim is a right by which something at the gateway is open: a user's key, and the access to
// a cluster by a door if that is named.
type DoorClaim struct {
	User        string
	Fingerprint string
	Token       string // its ID, in the place of a key
	Cluster     ClusterID
	Door        Door
}

// DoorTicketRequest asks to be let through the straight door, once.
type DoorTicketRequest struct {
	User   string
	Token  string // ID of the token by which the user asks; "": it is a key
	Key    DoorKey
	Target string // CLUSTER[.NODE][+PROJECT]
	// Seen is from where the request came, and Client from where the connection shall, as the
	// client sees it. Where they differ something translates addresses between.
	Seen   netip.Addr
	Client netip.AddrPort
}

// DoorTicket lets one connection through the straight door.
type DoorTicket struct {
	Secret  string // to be sent first; "": the kernel knows the connection by its address and port
	Address string // where to connect to
	Node    string
	Expires time.Time
}

// GatewaySessionID names a session at the gateway.
type GatewaySessionID string

// NewGatewaySessionID makes one by chance.
func NewGatewaySessionID() GatewaySessionID { return GatewaySessionID("g-" + RandomID(10)) }

// GatewayEnd is why a session at the gateway ended.
type GatewayEnd string

// Ends of sessions.
const (
	// GatewayEndClosed: the client or the node ended it.
	GatewayEndClosed GatewayEnd = "closed"
	// GatewayEndRight: its key, its user or the access to its cluster ended, or the cluster did.
	GatewayEndRight GatewayEnd = "right-ended"
	// GatewayEndKilled: an administrator, or the user, ended it.
	GatewayEndKilled GatewayEnd = "killed"
	// GatewayEndIdle: nothing passed for as long as the site allows.
	GatewayEndIdle GatewayEnd = "idle"
	// GatewayEndLongest: it lasted as long as the site allows.
	GatewayEndLongest GatewayEnd = "longest"
	// GatewayEndServer: the server stopped.
	GatewayEndServer GatewayEnd = "server-stopped"
	// GatewayEndLost: the server ended without a word: the time and the bytes are what was last
	// recorded, and it lasted at least until then.
	GatewayEndLost GatewayEnd = "lost"
)

// GatewaySession is one way to a node through the gateway. Nothing of what was said is in it.
type GatewaySession struct {
	ID          GatewaySessionID `json:"id"`
	User        string           `json:"user"`
	Fingerprint string           `json:"fingerprint,omitempty" doc:"SHA256 fingerprint of the key on record; absent at the straight door"`
	Certificate string           `json:"certificate,omitempty" doc:"Key ID of the certificate by which the user came, where it was one"`
	Serial      uint64           `json:"certificate_serial,omitempty" doc:"Its serial number"`
	Token       string           `json:"token,omitempty" doc:"ID of the token by which the straight door was opened"`
	From        string           `json:"from" doc:"Address and port of the client"`
	Door        Door             `json:"door" doc:"jump, plain or straight"`
	Cluster     ClusterID        `json:"cluster"`
	ClusterName string           `json:"cluster_name"`
	Project     string           `json:"project" doc:"That of the cluster"`
	Gateway     string           `json:"gateway,omitempty" doc:"Which gateway, where it is a process of its own"`
	Node        string           `json:"node"`
	Login       string           `json:"login" doc:"As whom, on the node; of the jump door what the user may be"`
	Began       time.Time        `json:"began"`
	Ended       time.Time        `json:"ended,omitzero" doc:"Absent while it lasts"`
	End         GatewayEnd       `json:"end,omitempty" doc:"closed, right-ended, killed, idle, longest, server-stopped or lost"`
	Text        string           `json:"text,omitempty" doc:"What ended it, in words"`
	Received    int64            `json:"received_bytes" doc:"From the client"`
	Sent        int64            `json:"sent_bytes" doc:"To the client"`
}

// Open reports whether a session lasts.
func (s GatewaySession) Open() bool { return s.Ended.IsZero() }
