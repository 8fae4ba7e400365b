package muster

import "time"

// Waiting is what is known of something that waits beside its condition: nothing waits
// without a deadline, a next step, and a word on why nobody knows when it ends.
type Waiting struct {
	// Within is how long it may take, from the condition's Since to its deadline. Zero: the
	// condition, or the rule of the site, says.
	Within time.Duration
	// Next is what happens at the deadline.
	Next string
	// Unknown is why there is no ETA, where there is none.
	Unknown string
	// Told: its people are told at the deadline, and it goes on waiting.
	Told bool
}

// How long things may wait that have no limit of the site. Converge's limits are the same.
const (
	WaitPrepare   = 15 * time.Minute // for image, network and home
	WaitScheduler = time.Minute      // for the scheduler, once all nodes are there
	WaitSpare     = time.Hour        // for a machine that takes a lost one's place
	WaitFence     = 15 * time.Minute // for proof that a machine is cut off
	// WaitFrozen is how long a cluster may be frozen: the certificates of its agents, which cannot be
	// renewed meanwhile, are good for a third of pki.NodeTTL at least.
	WaitFrozen    = 28 * 24 * time.Hour
	WaitLeave     = 24 * time.Hour   // for jobs on nodes that leave, or of a cluster that is paused
	WaitRecovery  = 30 * time.Minute // for a node that failed
	WaitMeasuring = time.Hour        // for a measurement
	WaitOff       = 40 * time.Second // for machines to go off
	WaitBlackout  = 10 * time.Minute // for the power to come back
)

// Waiting reports whether something waits under a condition, and for what it waits.
func (c ConditionCode) Waiting() (w Waiting, waits bool) {
	switch c {
	case ConditionImage, ConditionPreparing:
		return Waiting{Within: WaitPrepare, Next: "the cluster fails, and says what was missing", Unknown: "it depends on what is to be installed or made"}, true
	case ConditionWaitingForMachines, ConditionWaitingForMissingMachines, ConditionOverLimit, ConditionCannotBeServed:
		return Waiting{Next: "the request ends; it may be made again", Unknown: "no time is known at which what it needs comes free"}, true
	case ConditionPromiseLate:
		return Waiting{Next: "the cluster fails: its promised time is over", Unknown: "its machines are not clean yet"}, true
	case ConditionScheduler:
		return Waiting{Within: WaitScheduler, Next: "the cluster fails", Unknown: "it takes seconds"}, true
	case ConditionMeasuring:
		return Waiting{Within: WaitMeasuring, Next: "the measurement is given up, and the cluster handed over without", Unknown: "how long its steps take is not known yet"}, true
	case ConditionScaling:
		return Waiting{Within: WaitLeave, Next: "its people are told; `muster scale --now` does not wait for jobs", Unknown: "jobs take as long as they take", Told: true}, true
	case ConditionDegraded, ConditionRepairing:
		return Waiting{Within: WaitRecovery, Next: "another machine is tried", Unknown: "no machine of the class has booted yet"}, true
	case ConditionWaitingForSpare:
		return Waiting{Within: WaitSpare, Next: "its people are told; it goes on waiting, before all who wait for a cluster", Unknown: "no machine of the class is known to come free", Told: true}, true
	case ConditionPowerCut, ConditionNoPower:
		return Waiting{Within: WaitBlackout, Next: "each machine counts by itself: nodes of those that stay dark move", Unknown: "nobody knows when the power is back"}, true
	case ConditionPausing:
		return Waiting{Within: WaitLeave, Next: "the pause is taken back", Unknown: "jobs take as long as they take"}, true
	case ConditionResuming:
		return Waiting{Next: "the cluster is deleted, and its volumes are kept", Unknown: "no time is known at which machines come free"}, true
	case ConditionPauseEnds:
		return Waiting{Next: "the cluster is deleted, and its volumes are kept"}, true
	case ConditionEnding:
		return Waiting{Within: 30 * time.Second, Next: "jobs that still run are ended, and its machines given back"}, true
	case ConditionNotFenced:
		return Waiting{Within: WaitFence, Next: "its people are told; the node moves once its machine is proven to be off, by `muster machine confirm-off` at the latest", Unknown: "the machine, or what switches it, does not answer", Told: true}, true
	case ConditionCutOff:
		return Waiting{Within: 5 * time.Minute, Next: "the node moves to another machine", Unknown: "nobody knows when this server reaches it again"}, true
	case ConditionSwitchDown:
		return Waiting{Within: 30 * time.Minute, Next: "it counts like others again", Unknown: "nobody knows when its switch is back"}, true
	case ConditionUnreached:
		return Waiting{Within: WaitSpare, Next: "its people are told; it is reached again once its switch is back", Unknown: "nobody knows when its switch is back", Told: true}, true
	case ConditionAgentSilent:
		return Waiting{Within: 10 * time.Minute, Next: "the node is started anew", Unknown: "nobody knows whether its agent comes back"}, true
	case ConditionListening:
		return Waiting{Within: 15 * time.Second, Next: "silence counts from then on"}, true
	}
	return Waiting{}, false
}

// WithWaiting is the condition with what is known of its waiting. Deadline and next step of
// its own stay.
func (c Condition) WithWaiting() Condition {
	w, waits := c.Code.Waiting()
	if !waits {
		return c
	}
	if c.Deadline.IsZero() && w.Within > 0 {
		c.Deadline = c.Since.Add(w.Within)
	}
	if c.Next == "" {
		c.Next = w.Next
	}
	if c.ETA.IsZero() && c.ETAUnknown == "" {
		c.ETAUnknown = w.Unknown
	}
	if c.ETA.IsZero() && w.Unknown == "" { // it ends at its deadline
		c.ETA = c.Deadline
	}
	return c
}
