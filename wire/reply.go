package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Refused is the body of a refusal to create: an error, with the answer of
// admission when the request itself was understood.
type Refused struct {
	muster.Error
	Status string         `json:"status,omitempty"` // never
	Answer *muster.Answer `json:"answer,omitempty"`
}

// ClusterList is the reply to a listing of clusters.
type ClusterList struct {
	Clusters []Cluster `json:"clusters"`
	More
}

// MachineList is the reply to a listing of machines.
type MachineList struct {
	Machines []Machine `json:"machines"`
	More
}

// ImageList is the reply to a listing of images.
type ImageList struct {
	Images []Image `json:"images"`
	More
}

// UserList is the reply to a listing of users.
type UserList struct {
	Users []muster.User `json:"users"`
	More
}

// TokenList is the reply to a listing of tokens.
type TokenList struct {
	Tokens []Token `json:"tokens"`
	More
}

// Deleted is the reply to the deletion of a cluster: its ID and status.
type Deleted struct {
	ID     muster.ClusterID    `json:"id"`
	Name   string              `json:"name"`
	Status muster.ClusterPhase `json:"status"`
	// Home is the volume that stays, for so many seconds after the deletion.
	Home string          `json:"home,omitempty"`
	Kept muster.Duration `json:"home_kept_seconds,omitempty" doc:"How long the home is kept"`
}

// KeyRequest adds a public SSH key to a user.
type KeyRequest struct {
	Key     string `json:"key" doc:"One authorized_keys line: a key, a certificate, or an authority with the options cert-authority and principals"`
	Purpose string `json:"purpose,omitempty" doc:"What it is for"`
	TTL     string `json:"ttl,omitempty" doc:"How long it lets in: 12h, 30d; absent: without an end, or until that of a certificate"`
	// Authority and Principals say the same as the options of the line.
	Authority  bool     `json:"authority,omitempty" doc:"The key signs certificates, which let in"`
	Principals []string `json:"principals,omitempty" doc:"One of these must be a principal of a certificate; absent: the user's name"`
}

// KeyList is the reply to a listing of a user's SSH keys.
type KeyList struct {
	Keys []muster.SSHKey `json:"keys"`
	More
}

// LogLine is one line of the journal of one node.
type LogLine struct {
	Node string `json:"node"`
	JournalLine
}

// Logs is the newest part of the journals of a cluster's nodes, in time order.
type Logs struct {
	ID     muster.ClusterID    `json:"id"`
	Status muster.ClusterPhase `json:"status"`
	Lines  []LogLine           `json:"lines"`
}

// NodeUsage is what one node used over time, oldest sample first.
type NodeUsage struct {
	Node    string  `json:"node"`
	Samples []Usage `json:"samples"`
	// Machines filled the node in the time asked for, in order.
	Machines []MachineSince `json:"machines,omitempty"`
	// Curves by figure, with the names of Usage; of counters, which end in _bytes, by
	// time: net_rx_bytes_per_second.
	Curves map[string]Curve `json:"curves,omitempty"`
}

// ClusterUsage is what the nodes of a cluster use.
type ClusterUsage struct {
	ID     muster.ClusterID    `json:"id"`
	Status muster.ClusterPhase `json:"status"`
	Nodes  []NodeUsage         `json:"nodes"`
	Name   string              `json:"name,omitempty"`
	// Window and Curves are there when a time was asked for. Curves has
	// jobs_running, jobs_pending, hosts_up, hosts_down, hosts_total, cores_busy
	// and cores_total.
	Window *Window          `json:"window,omitempty"`
	Curves map[string]Curve `json:"curves,omitempty"`
}

// Health reports how the parts of the server are.
type Health struct {
	Status  string       `json:"status"` // ok, degraded
	Version string       `json:"version"`
	Checks  []HealthPart `json:"checks,omitempty"`
}

// HealthPart is the health of one part.
type HealthPart struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text,omitempty"`
}

// ImageVerified is the reply to a verification of an image.
type ImageVerified struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	OK    bool      `json:"ok"`
	Bytes int64     `json:"bytes"` // read and compared
	At    time.Time `json:"at"`
}

// CreateCall is a request for a cluster on its way from the API to the use
// case: the text as it came, undecoded.
type CreateCall struct {
	Body   []byte
	Format string // json, yaml, xml, or "" to look
	DryRun bool
	Key    string // idempotency key; may be empty
	// Lift asks that limits of the project do not hold for it, for this reason.
	Lift bool
	Why  string
	// DefaultUser is who may log in when the request names nobody and an
	// administrator asks (the person behind sudo).
	DefaultUser string
}

// ClusterQuery narrows a listing of clusters.
type ClusterQuery struct {
	All     bool
	Project string
	Owner   string
	Page
}

// MachineQuery narrows a listing of machines.
type MachineQuery struct {
	All bool // also those that do not answer
	Page
}

// TokenQuery narrows a listing of tokens.
type TokenQuery struct {
	User string // only this user's
	Page
}

// EventQuery says which events to stream.
type EventQuery struct {
	Cluster string // ID or name; "" for the whole site
	After   int64  // sequence number after which to begin
	Follow  bool   // go on when the past is told
	Newest  int    // of the past, only the last so many; 0: all
	Limit   int    // end after so many; 0: none
}

// Done is the reply to something that leaves nothing to show.
type Done struct {
	Status string `json:"status"` // removed, revoked
}
