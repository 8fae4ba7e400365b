package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// These are the messages between the server and a gateway that is a process of its own.

// GatewayPoll is what a gateway says every few seconds.
type GatewayPoll struct {
	Address string `json:"address" maxLength:"128" doc:"Where it listens"`
	HostKey string `json:"host_key" maxLength:"1024" doc:"Its public key: type and base64"`
	// Have is the version of its directory.
	Have     string         `json:"have" maxLength:"128" doc:"Version of the directory that it has"`
	Sessions []GatewayBytes `json:"sessions" maxItems:"10000" doc:"Those that are open, with the bytes of this moment"`
}

// GatewayBytes is how many bytes passed in a session.
type GatewayBytes struct {
	Session  muster.GatewaySessionID `json:"session"`
	Received int64                   `json:"received_bytes"`
	Sent     int64                   `json:"sent_bytes"`
}

// GatewayOrders is the reply to a GatewayPoll.
type GatewayOrders struct {
	Version   string            `json:"version"`
	Directory *GatewayDirectory `json:"directory,omitempty" doc:"Absent: the gateway has it"`
	Kill      []GatewayKill     `json:"kill" doc:"Sessions that are to end"`
	// Certificate is of the gateway's host key.
	Certificate string `json:"certificate,omitempty"`
}

// GatewayKill is a session that somebody ends.
type GatewayKill struct {
	Session muster.GatewaySessionID `json:"session"`
	Text    string                  `json:"text"`
}

// GatewayDirectory says who may reach what.
type GatewayDirectory struct {
	Users    []GatewayUser    `json:"users"`
	Clusters []GatewayCluster `json:"clusters"`
}

// GatewayUser is a user with the keys that speak for them.
type GatewayUser struct {
	Name string       `json:"name"`
	Keys []GatewayKey `json:"keys"`
}

// GatewayKey is a key and until when it lets in; an authority, or a certificate.
type GatewayKey struct {
	Fingerprint string    `json:"fingerprint"`
	Expires     time.Time `json:"expires,omitzero"`
	Authority   bool      `json:"authority,omitempty" doc:"Certificates that it signed let in"`
	Principals  []string  `json:"principals,omitempty" doc:"One of these must be a principal of them"`
	Certificate string    `json:"certificate,omitempty" doc:"The certificate in one line"`
}

// GatewayCluster is where users may want to go.
type GatewayCluster struct {
	ID      muster.ClusterID `json:"id"`
	Name    string           `json:"name"`
	Project string           `json:"project"`
	Users   []string         `json:"users"`
	Root    bool             `json:"root,omitempty" doc:"Its users are root"`
	Kept    bool             `json:"kept,omitempty" doc:"Open sessions go on"`
	// Refusal is why nobody enters now; Closed is that of a door.
	Refusal *muster.Error                 `json:"refusal,omitempty"`
	Closed  map[muster.Door]*muster.Error `json:"closed,omitempty"`
	Nodes   []GatewayNode                 `json:"nodes"`
}

// GatewayNode is a node and where its SSH server listens.
type GatewayNode struct {
	Name    string `json:"name"`
	Head    bool   `json:"head,omitempty"`
	Address string `json:"address,omitempty" doc:"Absent: it has no machine now"`
}

// GatewayRecords are sessions that began and that ended. Sent twice they count once.
type GatewayRecords struct {
	Begun []muster.GatewaySession `json:"begun" maxItems:"1000"`
	Ended []muster.GatewaySession `json:"ended" maxItems:"1000"`
}

// GatewaySign asks for a certificate for one session at the plain door.
type GatewaySign struct {
	User      string           `json:"user" maxLength:"64"`
	Cluster   muster.ClusterID `json:"cluster" maxLength:"64"`
	Node      string           `json:"node" maxLength:"64"`
	Login     string           `json:"login" maxLength:"64"`
	PublicKey string           `json:"public_key" maxLength:"1024"`
}

// GatewaySigned is the reply to GatewaySign.
type GatewaySigned struct {
	Certificate string `json:"certificate"`
	HostKey     string `json:"host_key"`
}

// GatewayRequest registers a gateway.
type GatewayRequest struct {
	Name  string   `json:"name" maxLength:"64" doc:"Lower-case letters, digits and hyphens"`
	Hosts []string `json:"hosts" maxItems:"20" doc:"Host names by which users reach it: those of its host certificate"`
}

// GatewayProcess is a gateway that is a process of its own.
type GatewayProcess struct {
	Name     string    `json:"name"`
	Hosts    []string  `json:"hosts"`
	Created  time.Time `json:"created"`
	Token    string    `json:"token,omitempty" doc:"Only in the reply to its registration"`
	Seen     time.Time `json:"seen,omitzero" doc:"When it last asked, by the word of this server since its start"`
	Address  string    `json:"address,omitempty"`
	HostKey  string    `json:"host_key,omitempty"`
	Sessions int       `json:"sessions"`
}

// GatewayProcessList is the reply to a listing of gateways.
type GatewayProcessList struct {
	Gateways []GatewayProcess `json:"gateways"`
	More
}
