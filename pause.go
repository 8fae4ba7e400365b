package muster

import "time"

// OnPause is what becomes of jobs that run when a cluster is paused.
type OnPause string

// What becomes of them.
const (
	// PauseWait waits until they have ended by themselves, or until a time; what runs then
	// is requeued.
	PauseWait OnPause = "wait"
	// PauseRequeue asks them to end, gives them the scheduler's grace, and puts them into
	// the queue again.
	PauseRequeue OnPause = "requeue"
	// PauseFreeze suspends them and stops every processor of the cluster. Its memory stays
	// where it is, and so do its machines.
	PauseFreeze OnPause = "freeze"
	// PauseSave suspends them and saves the virtual machines of the cluster with all that is in
	// their memory. Their machines are given back.
	PauseSave OnPause = "save"
	// PauseHibernate suspends them and has each machine write its memory to its own disk, and go
	// off. Its machines stay the cluster's.
	PauseHibernate OnPause = "hibernate"
)

// PauseStop is another word for PauseWait.
const PauseStop = "stop"

// OnPauses are what may be asked for.
func OnPauses() []OnPause {
	return []OnPause{PauseStop, PauseWait, PauseRequeue, PauseFreeze, PauseSave, PauseHibernate}
}

// KeepsMachines reports whether a cluster keeps its machines while it is paused so: its lease
// clock runs on.
func (o OnPause) KeepsMachines() bool { return o == PauseFreeze || o == PauseHibernate }

// KeepsMemory reports whether jobs that run when a cluster is paused so go on where they were.
func (o OnPause) KeepsMemory() bool {
	return o == PauseFreeze || o == PauseSave || o == PauseHibernate
}

// Pause is a pause that is planned, under way, or lasts. While it lasts the cluster holds no
// machine and its lease clock stands still, except where OnPause.KeepsMachines; its name,
// addresses, keys, volumes and the scheduler's state stay.
type Pause struct {
	By    string    `json:"by"` // who asked
	Asked time.Time `json:"asked"`
	// At is when it begins, where that was planned. Zero: at once.
	At time.Time `json:"at,omitzero"`
	// Until is when the cluster is to be back. Zero: when somebody asks.
	Until time.Time `json:"until,omitzero"`
	// OnPause says what becomes of running jobs, and WaitUntil until when they are waited
	// for. Zero: until they have ended.
	OnPause   OnPause   `json:"on_pause"`
	WaitUntil time.Time `json:"wait_until,omitzero"`
	// Lose: work that cannot be queued again may be lost, as somebody said, or as nobody could know when the
	// pause was planned.
	Lose bool `json:"lose,omitempty"`
	// Suspended is when no job ran any more, and nodes began to write to their volumes what they
	// still had of them. Only where it saves or hibernates.
	Suspended time.Time `json:"suspended,omitzero"`
	// SavedBytes are the bytes of all saved states, and Saving is how long that, or hibernating, took from the stop
	// of the first machine. 0: nothing is saved.
	SavedBytes int64    `json:"saved_bytes,omitempty"`
	Saving     Duration `json:"saving_seconds,omitempty"`
	// Requeueing is when jobs were told to end, and Stopped when none was left and the
	// machines began to be given back, frozen or saved. Zero: not yet.
	Requeueing time.Time `json:"requeueing,omitzero"`
	Stopped    time.Time `json:"stopped,omitzero"`
	// Thawing is when the machines of a frozen cluster, or of one that could not be saved, began to
	// go on. Zero: not yet.
	Thawing time.Time `json:"thawing,omitzero"`
	// Left is what was left of the walltime when it began. 0: the cluster has no end.
	Left Duration `json:"left_seconds,omitempty"`
	// Used is how long it had been in use, since it was ready last.
	Used Duration `json:"used_seconds,omitempty"`
	// Nodes are the names of the nodes that it had, which come back.
	Nodes []string `json:"nodes,omitempty"`
	// Compute and Logins count the compute and login nodes among them.
	Compute int `json:"compute,omitempty"`
	Logins  int `json:"logins,omitempty"`
	// Resume is when somebody asked for the cluster again, and By who. Zero: nobody did.
	Resume   time.Time `json:"resume,omitzero"`
	ResumeBy string    `json:"resume_by,omitempty"`
	// Warned is when its people were told that it will be deleted.
	Warned time.Time `json:"warned,omitzero"`
}

// KeepsMachines reports whether the cluster keeps its machines and its lease clock in a pause
// that is planned, under way, or lasts.
func (c *Cluster) KeepsMachines() bool { return c.Pause != nil && c.Pause.OnPause.KeepsMachines() }

// PromiseAhead is the promise of machines that the cluster does not have yet; nil: there is
// none. One that is being built has the machines of its promise.
func (c *Cluster) PromiseAhead() *Promise {
	if c.Promise == nil || c.Phase == ClusterDeleted || c.Phase.HoldsMachines() && (c.Pause == nil || c.Phase != ClusterReady && c.Phase != ClusterPausing) {
		return nil
	}
	return c.Promise
}

// Waits reports whether the cluster waits for machines without a promise, and since when.
func (c *Cluster) Waits() (since time.Time, waits bool) {
	switch {
	case c.Phase == ClusterQueued:
		return c.Created, true
	case c.Phase == ClusterPaused && c.Promise == nil && c.Pause != nil && !c.Pause.Resume.IsZero():
		return c.Pause.Resume, true
	}
	return time.Time{}, false
}

// Needs is what a cluster that waits needs machines for: a paused one has the rest of its
// walltime, and the nodes that it had.
func (c *Cluster) Needs() Spec {
	s := c.Spec
	if c.Pause != nil {
		s.Walltime, s.Queue = c.Pause.Left, true
		if n := c.Pause.Compute; n > 0 {
			s.Nodes, s.Min, s.Logins = n, min(s.Min, n), c.Pause.Logins
		}
		if c.Pause.OnPause == PauseSave { // what is saved goes on where it could be saved again
			s.OnPause = PauseSave
		}
	}
	return s
}
