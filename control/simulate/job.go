package simulate

import (
	"time"
)

// Job is one request of a workload, and what becomes of it whoever schedules it.
type Job struct {
	Number int
	User   string
	Submit time.Duration // after the beginning of the workload
	Nodes  int           // machines
	// Walltime is what was asked, and Runtime how long it lasts if nothing extends it: at
	// most Walltime.
	Walltime, Runtime time.Duration
	// Ahead: it asks for a promise, so long after its submission. 0: it takes a place in the
	// queue.
	Ahead time.Duration
	// Extend is how much longer it asks to last, at half of its time. 0: it does not.
	Extend time.Duration
	// PauseAt is how long after its start it is paused, and PauseFor how long. 0: it is not.
	PauseAt, PauseFor time.Duration
}

// Workload is what is asked of a site.
type Workload struct {
	Jobs     []Job
	Machines int
	// Failures are machines that break, in the order of time.
	Failures []Failure
	// Notes say what is worth knowing of where it came from, one line each.
	Notes []string
}

// Failure is a machine that breaks for a time.
type Failure struct {
	At      time.Duration
	Machine int
	For     time.Duration
}
