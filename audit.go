package muster

import "time"

// Audit is one line of the append-only record of what changed, written in the
// same transaction as the change.
type Audit struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`           // user name, "system", "agent:<machine>"
	Owner   string    `json:"owner,omitempty"` // of the record; "system" for the site's
	Project string    `json:"project,omitempty"`
	Cluster ClusterID `json:"cluster,omitempty"`
	Kind    string    `json:"kind"` // cluster, node, machine, user, token, image
	Object  string    `json:"object"`
	From    string    `json:"from,omitempty"`
	To      string    `json:"to,omitempty"`
	Text    string    `json:"text,omitempty"`
	// Reconfigures: what the cluster's nodes are configured from has changed.
	// Only lines that come by a feed tell.
	Reconfigures bool `json:"-"`
}
