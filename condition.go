package muster

import "slices"

// ConditionCode names what is true of a cluster, a node or a machine besides its
// phase. What a program does about a condition hangs on it, never on the text.
// docs/users/json.md lists them. The conditions of a machine that nobody approved, and of
// one that somebody wants something of, have the words of RegistrationState and Intent.
type ConditionCode string

// Conditions of clusters.
const (
	// ConditionImage: an image with the packages of the request is being built.
	ConditionImage ConditionCode = "image"
	// ConditionPreparing: image, network or home is not there yet.
	ConditionPreparing ConditionCode = "preparing"
	// ConditionWaitingForMachines: it is queued: machines fit, and are in use.
	ConditionWaitingForMachines ConditionCode = "waiting-for-machines"
	// ConditionWaitingForMissingMachines: it is queued: it needs machines that do not answer, are in quarantine or in maintenance.
	ConditionWaitingForMissingMachines ConditionCode = "waiting-for-missing-machines"
	// ConditionOverLimit: it waits until its project, or its owner, is below a limit.
	ConditionOverLimit ConditionCode = "over-limit"
	// ConditionPromiseLate: its promised time has come, and its machines are not there yet.
	ConditionPromiseLate ConditionCode = "promise-late"
	// ConditionCannotBeServed: it is queued, and the site cannot serve it any more.
	ConditionCannotBeServed ConditionCode = "cannot-be-served"
	// ConditionLate: something takes longer than usual; also of nodes and machines.
	ConditionLate ConditionCode = "late"
	// ConditionScheduler: all nodes are there, and the scheduler is waited for.
	ConditionScheduler ConditionCode = "scheduler"
	// ConditionShort: it has fewer nodes than it asked for, which min allows.
	ConditionShort ConditionCode = "short"
	// ConditionMeasuring: its speed is being measured.
	ConditionMeasuring ConditionCode = "measuring"
	// ConditionNotMeasured: its speed should have been measured, and was not.
	ConditionNotMeasured ConditionCode = "not-measured"
	// ConditionSlow: its nodes, or their host, are slower than they should be; also of machines.
	ConditionSlow ConditionCode = "slow"
	// ConditionScaling: its size is being changed.
	ConditionScaling ConditionCode = "scaling"
	// ConditionScaleFailed: its last change of size failed.
	ConditionScaleFailed ConditionCode = "scale-failed"
	// ConditionDegraded: not all of its nodes are ready.
	ConditionDegraded ConditionCode = "degraded"
	// ConditionRepairing: nodes are being moved to other machines.
	ConditionRepairing ConditionCode = "repairing"
	// ConditionWaitingForSpare: there is no machine for a node that needs another one.
	ConditionWaitingForSpare ConditionCode = "waiting-for-spare"
	// ConditionMassSilence: so many agents are silent that the fault is nearer than their machines.
	ConditionMassSilence ConditionCode = "mass-silence"
	// ConditionPowerCut: most machines went off together: all are started again where they were.
	ConditionPowerCut ConditionCode = "power-cut"
	// ConditionNotInScheduler: the scheduler does not have a node.
	ConditionNotInScheduler ConditionCode = "not-in-scheduler"
	// ConditionDrained: the scheduler gives no jobs to a node.
	ConditionDrained ConditionCode = "drained"
	// ConditionWalltime: its walltime ends soon.
	ConditionWalltime ConditionCode = "walltime"
	// ConditionPausing: it is being paused: its jobs come to an end, or its machines are given back.
	ConditionPausing ConditionCode = "pausing"
	// ConditionResuming: it is paused, and waits for machines to come back.
	ConditionResuming ConditionCode = "resuming"
	// ConditionPauseEnds: it is paused for longer than this site allows, and is deleted soon.
	ConditionPauseEnds ConditionCode = "pause-ends"
	// ConditionEnding: its walltime is over, and its jobs are ended.
	ConditionEnding ConditionCode = "ending"
)

// Conditions of nodes.
const (
	// ConditionHeld: the scheduler may not have it yet.
	ConditionHeld ConditionCode = "held"
	// ConditionBootFailed: its machine did not boot it.
	ConditionBootFailed ConditionCode = "boot-failed"
	// ConditionNoPower: its machine is not switched on while most are without power.
	ConditionNoPower ConditionCode = "no-power"
	// ConditionReplaced: another machine takes its place.
	ConditionReplaced ConditionCode = "replaced"
	// ConditionNotFenced: its machine cannot be proven to be cut off.
	ConditionNotFenced ConditionCode = "not-fenced"
	// ConditionLost: two witnesses say that it is gone: its machine is cut off.
	ConditionLost ConditionCode = "lost"
	// ConditionSilent: nobody else confirms that it is lost.
	ConditionSilent ConditionCode = "silent"
	// ConditionAgentSilent: its machine answers, its agent does not.
	ConditionAgentSilent ConditionCode = "agent-silent"
	// ConditionCutOff: others reach it, this server does not.
	ConditionCutOff ConditionCode = "cut-off"
	// ConditionUnreached: this server reaches it, and the head does not over the message network.
	ConditionUnreached ConditionCode = "unreached"
	// ConditionListening: this server has not listened for long enough to judge its silence.
	ConditionListening ConditionCode = "listening"
	// ConditionUnhealthy: a service that people rely on does not work; also of clusters.
	ConditionUnhealthy ConditionCode = "unhealthy"
	// ConditionUnfit: something that jobs need does not work: the scheduler gives it no new ones; also of clusters.
	ConditionUnfit ConditionCode = "unfit"
	// ConditionNotApplied: a part of its newest configuration is not in force; also of clusters.
	ConditionNotApplied ConditionCode = "not-applied"
	// ConditionAnew: it was started anew for one of these.
	ConditionAnew ConditionCode = "anew"
	// ConditionElsewhere: that did not help, and it moved to another machine.
	ConditionElsewhere ConditionCode = "elsewhere"
)

// Conditions of machines.
const (
	// ConditionNotAnswering: its provider does not find it.
	ConditionNotAnswering ConditionCode = "not-answering"
	// ConditionStillFound: it is retired, and its provider finds it.
	ConditionStillFound ConditionCode = "still-found"
	// ConditionStuck: it does not go off; also of nodes.
	ConditionStuck ConditionCode = "stuck"
	// ConditionCleanFailed: it could not be cleaned.
	ConditionCleanFailed ConditionCode = "clean-failed"
	// ConditionSuspect: it failed, and is tested before it is used again.
	ConditionSuspect ConditionCode = "suspect"
	// ConditionCannotTest: it cannot be tested now, which says nothing about it.
	ConditionCannotTest ConditionCode = "cannot-test"
	// ConditionTestFailed: it failed its test, and is tested once more.
	ConditionTestFailed ConditionCode = "test-failed"
	// ConditionQuarantined: it failed its test for good, or too often.
	ConditionQuarantined ConditionCode = "quarantined"
	// ConditionFailedUnderTenants: it is in quarantine for what happened under tenants who have nothing to do with each other.
	ConditionFailedUnderTenants ConditionCode = "failed-under-tenants"
	// ConditionDoubtful: it failed and passed its test: it is given last, and never again to the cluster that it failed.
	ConditionDoubtful ConditionCode = "doubtful"
	// ConditionSwitchDown: nothing behind its switch was reached over the message network: the machines there are given last for a while.
	ConditionSwitchDown ConditionCode = "switch-down"
	// ConditionCommonCause: many machines fail alike: something that they have in common.
	ConditionCommonCause ConditionCode = "common-cause"
	// ConditionDisturbed: others used its processors while it was measured.
	ConditionDisturbed ConditionCode = "disturbed"
	// ConditionHardwareChanged: it is made of something else than what was accepted.
	ConditionHardwareChanged ConditionCode = "hardware-changed"
	// ConditionTPMChanged: it shows another TPM than the one that was enrolled.
	ConditionTPMChanged ConditionCode = "tpm-changed"
	// ConditionManualFenceRequired: somebody must cut it off by hand, and say so.
	ConditionManualFenceRequired ConditionCode = "manual-fence-required"
)

// HasCondition reports whether one of the conditions has one of the codes.
func HasCondition(list []Condition, codes ...ConditionCode) bool {
	return slices.ContainsFunc(list, func(c Condition) bool { return slices.Contains(codes, c.Code) })
}
