package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// PauseRequest pauses a cluster. Times are written as a request's start is.
type PauseRequest struct {
	At          string `json:"at,omitempty" doc:"When it begins; default: now"`
	Until       string `json:"until,omitempty" doc:"When the cluster is to be back, as a promise; default: when somebody asks"`
	OnPause     string `json:"on_pause,omitempty" doc:"What becomes of running jobs: wait (also: stop), requeue, freeze, save or hibernate; default: as the request says, or wait"`
	WaitUntil   string `json:"wait_until,omitempty" doc:"With wait: those that run then are put into the queue again; default: no bound"`
	LoseRunning bool   `json:"lose_running,omitempty" doc:"Go on although work would be lost"`
	DryRun      bool   `json:"dry_run,omitempty" doc:"Only say what will not survive"`
}

// Paused is the reply to a PauseRequest.
type Paused struct {
	ID     muster.ClusterID    `json:"id"`
	Name   string              `json:"name"`
	Status muster.ClusterPhase `json:"status"`
	DryRun bool                `json:"dry_run,omitempty"`
	// Jobs are those that will not survive, and Lost what else does not, one line each.
	Jobs []PausedJob `json:"jobs,omitempty"`
	Lost []string    `json:"lost"`
	// Running are the other jobs that run, as far as the scheduler said when it was asked last.
	Running []PausedJob `json:"running,omitempty"`
	// KeepsMachines: its machines stay its own, and its walltime runs on, until Expires
	// where it has an end.
	KeepsMachines bool      `json:"keeps_machines,omitempty"`
	Expires       time.Time `json:"expires,omitzero"`
	// Memory is what its virtual machines have of it, which is saved, and Takes how long that should
	// take; without Takes nobody knows, for none of its class was saved here yet.
	Memory int64           `json:"memory_bytes,omitempty"`
	Takes  muster.Duration `json:"takes_seconds,omitempty"`
	// At is when it begins, where that is later; Until when the cluster is back, as a promise
	// where Promised.
	At       time.Time `json:"at,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	Promised bool      `json:"promised,omitempty"`
}

// PausedJob is a job that runs when a pause begins. Why says why it would end for good, or else what becomes of it.
type PausedJob struct {
	ID   string `json:"id"`
	User string `json:"user"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

// ResumeRequest brings a paused cluster back.
type ResumeRequest struct {
	Start string `json:"start,omitempty" doc:"When, as a promise: +2h, earliest, RFC 3339, 2026-12-01 10:00 Europe/Berlin; default: as soon as there is room"`
}

// Resumed is the reply to a ResumeRequest.
type Resumed struct {
	ID     muster.ClusterID    `json:"id"`
	Name   string              `json:"name"`
	Status muster.ClusterPhase `json:"status"`
	// Answer is that of admission, where machines were asked for.
	Answer muster.Answer `json:"answer,omitzero"`
	Text   string        `json:"text"` // one line for people
}
