package muster

import "time"

// AuditKind is what a line of the record is about.
type AuditKind string

// Kinds of lines. AuditStage is not on record: a node's stages are events only.
const (
	AuditCluster      AuditKind = "cluster"
	AuditNode         AuditKind = "node"
	AuditMachine      AuditKind = "machine"
	AuditRegistration AuditKind = "registration"
	AuditImage        AuditKind = "image"
	AuditVolume       AuditKind = "volume"
	AuditCertificate  AuditKind = "certificate"
	AuditHPL          AuditKind = "hpl"
	AuditUser         AuditKind = "user"
	AuditToken        AuditKind = "token"
	AuditProject      AuditKind = "project"
	AuditMaintenance  AuditKind = "maintenance"
	AuditCourse       AuditKind = "course"
	AuditTemplate     AuditKind = "template"
	AuditProgram      AuditKind = "program"
	AuditProgramRun   AuditKind = "program-run"
	AuditPlatform     AuditKind = "platform"
	AuditExperiment   AuditKind = "experiment"
	AuditTopology     AuditKind = "topology"
	AuditStage        AuditKind = "stage"
)

// Words of From and To where the record is of what has no phases.
const (
	AuditPresent = "present"
	AuditDeleted = "deleted"
)

// Audit is one line of the append-only record of what changed, written in the
// same transaction as the change.
type Audit struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`           // user name, "system", "agent:<machine>"
	Owner   string    `json:"owner,omitempty"` // of the record; "system" for the site's
	Project string    `json:"project,omitempty"`
	Cluster ClusterID `json:"cluster,omitempty"`
	Kind    AuditKind `json:"kind"`
	Object  string    `json:"object"`
	From    string    `json:"from,omitempty"`
	To      string    `json:"to,omitempty"`
	Text    string    `json:"text,omitempty"`
	// Reconfigures: what the cluster's nodes are configured from has changed.
	// Only lines that come by a feed tell.
	Reconfigures bool `json:"-"`
}
