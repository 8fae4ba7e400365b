package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Event is one line of a cluster's story, streamed as server-sent events. Seq
// is the audit sequence number: a client that reconnects sends it back as
// Last-Event-ID and misses nothing. Progress events that are not in the audit
// log (stages of a boot) have Seq 0.
type Event struct {
	Seq     int64            `json:"seq,omitempty"`
	At      time.Time        `json:"at"`
	Kind    muster.AuditKind `json:"kind"`
	Cluster muster.ClusterID `json:"cluster,omitempty"`
	Object  string           `json:"object"` // cluster ID, node name, machine ID
	From    string           `json:"from,omitempty"`
	To      string           `json:"to,omitempty"`
	Text    string           `json:"text,omitempty"`
	Actor   string           `json:"actor,omitempty"`
	ETA     time.Time        `json:"eta,omitzero"`
}

// Server describes the server and the caller.
type Server struct {
	Version  string    `json:"version"`
	API      string    `json:"api"` // v1
	Started  time.Time `json:"started"`
	Instance string    `json:"instance"`
	You      string    `json:"you"`
	Admin    bool      `json:"admin"`
	// ReadOnly means that the caller's token reads the whole site and changes nothing,
	// whatever its user may do otherwise.
	ReadOnly bool     `json:"read_only,omitempty"`
	Projects []string `json:"projects,omitempty"`
	Clusters int      `json:"clusters"`
	// Machines are those that answer, and Free those of them that can be had. Of machines that
	// share a part only as many count as can be in use at once.
	Machines       int  `json:"machines"`
	Free           int  `json:"free"`
	Oversubscribed bool `json:"oversubscribed,omitempty"`
	// Listen is where the API is served over TLS, ADDRESS:PORT; empty where it
	// is not.
	Listen string `json:"listen,omitempty"`
	// Epoch of the records: each restore begins another.
	Epoch int64 `json:"epoch,omitempty"`
	// Superseded means that another server has taken this one's place, which changes
	// nothing any more; empty: none has.
	Superseded string `json:"superseded,omitempty"`
}
