package muster

import (
	"errors"
	"strings"
)

// Reason says why, more finely than a Code: what a program does about an error
// hangs on it, never on the sentence. A reason keeps its name and its meaning; the
// set only grows. docs/users/errors.md lists them.
type Reason string

// Reasons of invalid: the request itself is wrong. The first is that of an error which tells no finer one.
const (
	// ReasonInvalid: the request is wrong; no finer reason is told.
	ReasonInvalid Reason = "invalid"
	// ReasonHasProblems: several things may be wrong: each problem tells its own reason.
	ReasonHasProblems Reason = "has-problems"
	// ReasonUnknownField: there is no such field.
	ReasonUnknownField Reason = "unknown-field"
	// ReasonUnknownFormat: a format or a content type that is not read or written here.
	ReasonUnknownFormat Reason = "unknown-format"
	// ReasonBadSyntax: the text is not well-formed.
	ReasonBadSyntax Reason = "bad-syntax"
	// ReasonBadValue: a value that cannot be here.
	ReasonBadValue Reason = "bad-value"
	// ReasonWrongType: a value of another type is expected: a number, a list, a text.
	ReasonWrongType Reason = "wrong-type"
	// ReasonRequired: what must be given is missing.
	ReasonRequired Reason = "required"
	// ReasonGivenTwice: something stands there twice.
	ReasonGivenTwice Reason = "given-twice"
	// ReasonContradiction: two things that are asked for exclude each other.
	ReasonContradiction Reason = "contradiction"
	// ReasonOutOfRange: a number or a time that is too small or too large.
	ReasonOutOfRange Reason = "out-of-range"
	// ReasonTooLarge: the request, the message, the file or the text is too large.
	ReasonTooLarge Reason = "too-large"
	// ReasonTooMany: more things than are possible at once.
	ReasonTooMany Reason = "too-many"
	// ReasonBrokenOff: the request ended before its end.
	ReasonBrokenOff Reason = "broken-off"
	// ReasonBadName: a name that cannot be one.
	ReasonBadName Reason = "bad-name"
	// ReasonNameReserved: a name that has a meaning of its own.
	ReasonNameReserved Reason = "name-reserved"
	// ReasonUnknownCommand: there is no such command.
	ReasonUnknownCommand Reason = "unknown-command"
	// ReasonUnknownFlag: there is no such flag.
	ReasonUnknownFlag Reason = "unknown-flag"
	// ReasonBadUsage: the command line is not one of that command.
	ReasonBadUsage Reason = "bad-usage"
	// ReasonNotConfirmed: it needs --yes.
	ReasonNotConfirmed Reason = "not-confirmed"
	// ReasonFileUnreadable: a file that was named cannot be read.
	ReasonFileUnreadable Reason = "file-unreadable"
	// ReasonFileUnwritable: a file that was named cannot be written.
	ReasonFileUnwritable Reason = "file-unwritable"
	// ReasonPrivateKey: a private key was given for a public one; it was not sent.
	ReasonPrivateKey Reason = "private-key"
	// ReasonBadSSHKey: not one public SSH key, or one of a type that is not signed.
	ReasonBadSSHKey Reason = "bad-ssh-key"
	// ReasonUnknownProject: you have no such project, or there is none.
	ReasonUnknownProject Reason = "unknown-project"
	// ReasonProjectUnclear: it is not clear which of your projects is meant.
	ReasonProjectUnclear Reason = "project-unclear"
	// ReasonNotAMember: somebody is not in the project.
	ReasonNotAMember Reason = "not-a-member"
	// ReasonEgressRefused: the site does not allow such outgoing traffic.
	ReasonEgressRefused Reason = "egress-refused"
	// ReasonWalltimeTooLong: longer than the site or the class allows.
	ReasonWalltimeTooLong Reason = "walltime-too-long"
	// ReasonImageLacks: the image has not what is asked for: a scheduler, a kernel, the probes.
	ReasonImageLacks Reason = "image-lacks"
	// ReasonPackagesRefused: packages that cannot be added to an image.
	ReasonPackagesRefused Reason = "packages-refused"
	// ReasonBadRecipe: a recipe of an image that is wrong.
	ReasonBadRecipe Reason = "bad-recipe"
	// ReasonAmbiguous: what was named means several things.
	ReasonAmbiguous Reason = "ambiguous"
	// ReasonVolumeUnfit: a home where data is asked for, data where a home is, or a volume of Muster's own.
	ReasonVolumeUnfit Reason = "volume-unfit"
	// ReasonVolumeUnreachable: the machines cannot mount that volume.
	ReasonVolumeUnreachable Reason = "volume-unreachable"
	// ReasonHeadStays: the head of a cluster cannot leave it.
	ReasonHeadStays Reason = "head-stays"
	// ReasonOwnerStays: the owner of a cluster stays one of its users.
	ReasonOwnerStays Reason = "owner-stays"
	// ReasonNobodyLeft: the cluster would have no users left.
	ReasonNobodyLeft Reason = "nobody-left"
	// ReasonNoNodeLeft: the cluster would have no compute node left.
	ReasonNoNodeLeft Reason = "no-node-left"
	// ReasonNotEnoughDisk: what is asked for does not fit on the disk.
	ReasonNotEnoughDisk Reason = "not-enough-disk"
	// ReasonNotOneThing: what is compared is the same, or one is a part of the other.
	ReasonNotOneThing Reason = "not-one-thing"
	// ReasonBadAddress: not an address.
	ReasonBadAddress Reason = "bad-address"
	// ReasonBadPowerAddress: what was said of how the machine is switched is wrong.
	ReasonBadPowerAddress Reason = "bad-power-address"
	// ReasonCannotSwitchOff: that kind of controller cannot switch off.
	ReasonCannotSwitchOff Reason = "cannot-switch-off"
	// ReasonInsecureFile: others can read, or own, what must be the program's alone.
	ReasonInsecureFile Reason = "insecure-file"
	// ReasonNotUpgraded: a console or a tunnel needs a connection that is upgraded.
	ReasonNotUpgraded Reason = "not-upgraded"
	// ReasonInterfaceUnfit: the interface for bare machines is not there or lacks an address.
	ReasonInterfaceUnfit Reason = "interface-unfit"
	// ReasonBadMachines: the machines of the server's flags cannot be made on this host.
	ReasonBadMachines Reason = "bad-machines"
)

// Reasons of not_found: it does not exist, or is not yours to see. The first is that of an error which tells no finer one.
const (
	// ReasonNotFound: it does not exist, or is not yours to see.
	ReasonNotFound Reason = "not-found"
	// ReasonNoSuchRoute: the API has no such address.
	ReasonNoSuchRoute Reason = "no-such-route"
	// ReasonNoSuchCluster: there is no such cluster, or it is not yours to see.
	ReasonNoSuchCluster Reason = "no-such-cluster"
	// ReasonNoSuchNode: the cluster has no such node.
	ReasonNoSuchNode Reason = "no-such-node"
	// ReasonNoSuchMachine: there is no such machine.
	ReasonNoSuchMachine Reason = "no-such-machine"
	// ReasonNotRegistered: no bare machine is registered so.
	ReasonNotRegistered Reason = "not-registered"
	// ReasonNotApproved: the bare machine is registered and not approved.
	ReasonNotApproved Reason = "not-approved"
	// ReasonNoSuchUser: there is no such user.
	ReasonNoSuchUser Reason = "no-such-user"
	// ReasonNoSuchKey: the user, or the site, has no such key.
	ReasonNoSuchKey Reason = "no-such-key"
	// ReasonNoSuchToken: there is no such token, or it is not yours.
	ReasonNoSuchToken Reason = "no-such-token"
	// ReasonNoSuchImage: there is no such image.
	ReasonNoSuchImage Reason = "no-such-image"
	// ReasonNoSuchRecipe: there is no such recipe.
	ReasonNoSuchRecipe Reason = "no-such-recipe"
	// ReasonNoSuchVolume: there is no such volume, or it is not yours to see.
	ReasonNoSuchVolume Reason = "no-such-volume"
	// ReasonVolumeGone: a volume that the cluster uses is not there any more.
	ReasonVolumeGone Reason = "volume-gone"
	// ReasonNoSuchTopology: nobody has said how that machine is built.
	ReasonNoSuchTopology Reason = "no-such-topology"
	// ReasonNoSuchCertificate: there is no such certificate, or it is not yours to see.
	ReasonNoSuchCertificate Reason = "no-such-certificate"
	// ReasonNoSuchResult: there is no such result of HPL.
	ReasonNoSuchResult Reason = "no-such-result"
	// ReasonNoSuchClass: there is no such class of machines.
	ReasonNoSuchClass Reason = "no-such-class"
	// ReasonNoMetric: the certificates have no such metric, or none in common.
	ReasonNoMetric Reason = "no-metric"
	// ReasonNoSuchBoot: no boot of that number is known.
	ReasonNoSuchBoot Reason = "no-such-boot"
	// ReasonNoState: there is no state directory of a server.
	ReasonNoState Reason = "no-state"
	// ReasonSignsNothing: the server signs no certificates.
	ReasonSignsNothing Reason = "signs-nothing"
)

// Reasons of conflict: the present state does not allow it. The first is that of an error which tells no finer one.
const (
	// ReasonConflict: the present state does not allow it.
	ReasonConflict Reason = "conflict"
	// ReasonNameTaken: the name is taken.
	ReasonNameTaken Reason = "name-taken"
	// ReasonUIDTaken: the UID is, or was, another user's.
	ReasonUIDTaken Reason = "uid-taken"
	// ReasonKeyTaken: the idempotency key belongs to another request.
	ReasonKeyTaken Reason = "key-taken"
	// ReasonAddressTaken: another machine has that interface, controller or serial number.
	ReasonAddressTaken Reason = "address-taken"
	// ReasonWrongPhase: the cluster, node, machine or volume is in a phase in which this cannot be.
	ReasonWrongPhase Reason = "wrong-phase"
	// ReasonNotReady: no node is ready, or the node has no machine now.
	ReasonNotReady Reason = "not-ready"
	// ReasonNoSuchObject: there is no maintenance window, project, course or template of that name.
	ReasonNoSuchObject Reason = "no-such-object"
	// ReasonBadCode: that is not the code of the course.
	ReasonBadCode Reason = "bad-code"
	// ReasonOverLimit: a limit of the project, or of each of its people, would be exceeded.
	ReasonOverLimit Reason = "over-limit"
	// ReasonNoRight: the project's people may not ask for that.
	ReasonNoRight Reason = "no-right"
	// ReasonBreaksPromises: promises could not be kept.
	ReasonBreaksPromises Reason = "breaks-promises"
	// ReasonPromiseMissed: its promised time is over, and it had no machines.
	ReasonPromiseMissed Reason = "promise-missed"
	// ReasonWaitedTooLong: it waited for machines for as long as the site lets requests wait.
	ReasonWaitedTooLong Reason = "waited-too-long"
	// ReasonWouldLoseRunning: work that runs would be lost, and nobody said that it may be.
	ReasonWouldLoseRunning Reason = "would-lose-running"
	// ReasonCannotFreeze: the cluster's machines cannot stand still with their memory.
	ReasonCannotFreeze Reason = "cannot-freeze"
	// ReasonCannotHibernate: the cluster's machines cannot write their memory to disks of their own.
	ReasonCannotHibernate Reason = "cannot-hibernate"
	// ReasonNoRoomForState: the memory of virtual machines would not fit where it is saved.
	ReasonNoRoomForState Reason = "no-room-for-state"
	// ReasonStateDamaged: the saved state of a virtual machine is not what was written.
	ReasonStateDamaged Reason = "state-damaged"
	// ReasonStateOfAnotherHost: the saved state of a virtual machine is of another kind of host.
	ReasonStateOfAnotherHost Reason = "state-of-another-host"
	// ReasonNeedsVirtualMachine: only virtual machines can do that.
	ReasonNeedsVirtualMachine Reason = "needs-virtual-machine"
	// ReasonPromisedAway: its machines are promised to others by then.
	ReasonPromisedAway Reason = "promised-away"
	// ReasonNotThen: the time that was asked for cannot be promised.
	ReasonNotThen Reason = "not-then"
	// ReasonPlanStale: the state changed between looking and taking: ask again.
	ReasonPlanStale Reason = "plan-stale"
	// ReasonChangedMeanwhile: it was changed by somebody else meanwhile.
	ReasonChangedMeanwhile Reason = "changed-meanwhile"
	// ReasonWalltimeOver: the walltime is over.
	ReasonWalltimeOver Reason = "walltime-over"
	// ReasonNoWalltime: the cluster has no end that could be moved.
	ReasonNoWalltime Reason = "no-walltime"
	// ReasonBeingScaled: the cluster changes its size.
	ReasonBeingScaled Reason = "being-scaled"
	// ReasonTooLate: it has begun and cannot be taken back.
	ReasonTooLate Reason = "too-late"
	// ReasonBeingMeasured: the cluster is being measured already.
	ReasonBeingMeasured Reason = "being-measured"
	// ReasonNotBeingMeasured: nothing is being measured.
	ReasonNotBeingMeasured Reason = "not-being-measured"
	// ReasonMeasurementEnded: somebody ended the measurement.
	ReasonMeasurementEnded Reason = "measurement-ended"
	// ReasonJobsRun: jobs run on the nodes.
	ReasonJobsRun Reason = "jobs-run"
	// ReasonVolumeInUse: a cluster uses the volume, or its data lies in another's.
	ReasonVolumeInUse Reason = "volume-in-use"
	// ReasonVolumeErased: the volume is being erased, or is.
	ReasonVolumeErased Reason = "volume-erased"
	// ReasonImageInUse: something uses the image.
	ReasonImageInUse Reason = "image-in-use"
	// ReasonTooManyImages: the clusters of a project, or of the site, need more images with packages of their own than it may have.
	ReasonTooManyImages Reason = "too-many-images"
	// ReasonUserInUse: the user owns or uses a cluster.
	ReasonUserInUse Reason = "user-in-use"
	// ReasonSuperseded: the certificate was superseded already, or is of another cluster.
	ReasonSuperseded Reason = "superseded"
	// ReasonImmutable: what is recorded never changes.
	ReasonImmutable Reason = "immutable"
	// ReasonMachineRetired: the machine is retired, which is final.
	ReasonMachineRetired Reason = "machine-retired"
	// ReasonMachineSuspect: the machine is suspected of a fault, and being tested.
	ReasonMachineSuspect Reason = "machine-suspect"
	// ReasonMachineInUse: a cluster uses the machine, it runs, or it is the site's.
	ReasonMachineInUse Reason = "machine-in-use"
	// ReasonPartInUse: what the machine is made of serves a machine of another set.
	ReasonPartInUse Reason = "part-in-use"
	// ReasonNobodyAsks: nobody asks whether the machine is cut off.
	ReasonNobodyAsks Reason = "nobody-asks"
	// ReasonStillHeard: the machine was heard a moment ago: it is not cut off.
	ReasonStillHeard Reason = "still-heard"
	// ReasonAttemptOver: the attempt that an agent or a machine speaks of is over.
	ReasonAttemptOver Reason = "attempt-over"
	// ReasonGivenAlready: the order or the challenge was used already.
	ReasonGivenAlready Reason = "given-already"
	// ReasonQuarantined: machines are in quarantine.
	ReasonQuarantined Reason = "quarantined"
	// ReasonServerRunning: another server, backup or restore uses the state directory.
	ReasonServerRunning Reason = "server-running"
	// ReasonServerReplaced: another server has taken this one's place.
	ReasonServerReplaced Reason = "server-replaced"
	// ReasonRestoreUnfinished: a restore was begun and not finished.
	ReasonRestoreUnfinished Reason = "restore-unfinished"
	// ReasonKeysMissing: keys of the site are gone, or are others.
	ReasonKeysMissing Reason = "keys-missing"
	// ReasonStoreMissing: the store is gone, and the directory has served.
	ReasonStoreMissing Reason = "store-missing"
	// ReasonOtherSite: records, backup and directory are of different sites.
	ReasonOtherSite Reason = "other-site"
	// ReasonRecordsOlder: the records are older than what was done since.
	ReasonRecordsOlder Reason = "records-older"
	// ReasonUnknownMachines: machines run that the records do not know.
	ReasonUnknownMachines Reason = "unknown-machines"
	// ReasonOtherVersion: what is there was written by another version of the program.
	ReasonOtherVersion Reason = "other-version"
	// ReasonFileExists: there is a file of that name already.
	ReasonFileExists Reason = "file-exists"
)

// Reasons of forbidden: you know of it, but may not do this. The first is that of an error which tells no finer one.
const (
	// ReasonForbidden: you know of it, but may not do this.
	ReasonForbidden Reason = "forbidden"
	// ReasonAdminOnly: only an administrator may do this.
	ReasonAdminOnly Reason = "admin-only"
	// ReasonReadOnly: the token only reads.
	ReasonReadOnly Reason = "read-only"
	// ReasonNotYours: it is somebody else's: you may see it, not change it.
	ReasonNotYours Reason = "not-yours"
	// ReasonYourselfOnly: you may do this for yourself only.
	ReasonYourselfOnly Reason = "yourself-only"
	// ReasonNoAccess: you are not one of the cluster's users.
	ReasonNoAccess Reason = "no-access"
	// ReasonNeedsRoot: the program must run as root.
	ReasonNeedsRoot Reason = "needs-root"
	// ReasonOtherMachine: another machine than the one that was approved.
	ReasonOtherMachine Reason = "other-machine"
	// ReasonUntrustedMachine: the machine is not trusted as far as that asks for.
	ReasonUntrustedMachine Reason = "untrusted-machine"
)

// Reasons of unauthorized: no credential, or a bad one. The first is that of an error which tells no finer one.
const (
	// ReasonUnauthorized: no credential, or a bad one.
	ReasonUnauthorized Reason = "unauthorized"
	// ReasonNoToken: no token was given.
	ReasonNoToken Reason = "no-token"
	// ReasonBadToken: the token is not known, or has expired.
	ReasonBadToken Reason = "bad-token"
	// ReasonTokenInClear: a token is not taken over an open connection.
	ReasonTokenInClear Reason = "token-in-clear"
	// ReasonBadCertificate: a certificate that is not believed, or none where one is asked for.
	ReasonBadCertificate Reason = "bad-certificate"
	// ReasonJoinRefused: a node may not join: its token is unknown, used or over.
	ReasonJoinRefused Reason = "join-refused"
	// ReasonControllerRefuses: the machine's controller refuses the account or the password.
	ReasonControllerRefuses Reason = "controller-refuses"
)

// Reasons of never: no machine of this site can serve the request. The first is that of an error which tells no finer one.
const (
	// ReasonNever: no machine of this site can serve the request.
	ReasonNever Reason = "never"
	// ReasonNeverFits: no machines of the site fit what is asked for.
	ReasonNeverFits Reason = "never-fits"
	// ReasonImageGone: the image of the request is gone.
	ReasonImageGone Reason = "image-gone"
)

// Reasons of no_capacity: not now. The first is that of an error which tells no finer one.
const (
	// ReasonNoCapacity: there is no room now.
	ReasonNoCapacity Reason = "no-capacity"
	// ReasonNoRoom: machines fit, and too few are free.
	ReasonNoRoom Reason = "no-room"
	// ReasonNoNetwork: every network, or every address of the cluster's, is in use.
	ReasonNoNetwork Reason = "no-network"
)

// Reasons of corrupt: stored bytes are not what was written. The first is that of an error which tells no finer one.
const (
	// ReasonCorrupt: stored bytes are not what was written.
	ReasonCorrupt Reason = "corrupt"
	// ReasonStoreDamaged: the store is damaged on the disk.
	ReasonStoreDamaged Reason = "store-damaged"
	// ReasonImageDamaged: an image is not what was built.
	ReasonImageDamaged Reason = "image-damaged"
	// ReasonKeysDamaged: a key file is damaged.
	ReasonKeysDamaged Reason = "keys-damaged"
	// ReasonBackupDamaged: a backup cannot be used.
	ReasonBackupDamaged Reason = "backup-damaged"
	// ReasonControllerNonsense: the machine's controller answers what cannot be.
	ReasonControllerNonsense Reason = "controller-nonsense"
)

// Reasons of unavailable: a part is down, full or slow: try again. The first is that of an error which tells no finer one.
const (
	// ReasonUnavailable: a part is down, full or slow: try again.
	ReasonUnavailable Reason = "unavailable"
	// ReasonServerUnreachable: no server answers.
	ReasonServerUnreachable Reason = "server-unreachable"
	// ReasonServerStopping: the server stops.
	ReasonServerStopping Reason = "server-stopping"
	// ReasonGivenUp: the request was given up.
	ReasonGivenUp Reason = "given-up"
	// ReasonTooManyRequests: too many requests at once.
	ReasonTooManyRequests Reason = "too-many-requests"
	// ReasonDiskFull: the disk is full.
	ReasonDiskFull Reason = "disk-full"
	// ReasonDiskFailing: the disk gives errors.
	ReasonDiskFailing Reason = "disk-failing"
	// ReasonStoreUnusable: the store cannot be opened or written, or another program has it locked.
	ReasonStoreUnusable Reason = "store-unusable"
	// ReasonDirectoryUnusable: the state directory cannot be used.
	ReasonDirectoryUnusable Reason = "directory-unusable"
	// ReasonKeyUnusable: a key file cannot be used.
	ReasonKeyUnusable Reason = "key-unusable"
	// ReasonAddressInUse: the server cannot listen there.
	ReasonAddressInUse Reason = "address-in-use"
	// ReasonProgramMissing: a program that this needs is not installed.
	ReasonProgramMissing Reason = "program-missing"
	// ReasonBuildFailed: an image cannot be built, or was not.
	ReasonBuildFailed Reason = "build-failed"
	// ReasonNoProvider: the server was started without the provider, or the driver, that this needs.
	ReasonNoProvider Reason = "no-provider"
	// ReasonNodeUnreachable: the node or its agent does not answer, or nobody can log in.
	ReasonNodeUnreachable Reason = "node-unreachable"
	// ReasonNotFenced: a machine could not be proven to be cut off.
	ReasonNotFenced Reason = "not-fenced"
	// ReasonNeedsHands: somebody must switch the machine off by hand, and say so.
	ReasonNeedsHands Reason = "needs-hands"
	// ReasonNoConsole: the machine has no console, or runs no shell.
	ReasonNoConsole Reason = "no-console"
	// ReasonNoGateway: the server has no gateway for SSH.
	ReasonNoGateway Reason = "no-gateway"
	// ReasonDoorClosed: the site, the project or the cluster has closed this door of the gateway.
	ReasonDoorClosed Reason = "door-closed"
	// ReasonWrongShape: a node does not have the part of its machine that was asked for.
	ReasonWrongShape Reason = "wrong-shape"
	// ReasonBootFailed: machines did not boot, or nodes did not come up.
	ReasonBootFailed Reason = "boot-failed"
	// ReasonSchedulerFailed: the scheduler did not come up.
	ReasonSchedulerFailed Reason = "scheduler-failed"
	// ReasonTooSlow: the cluster is slower than it promised, and was to be refused then.
	ReasonTooSlow Reason = "too-slow"
	// ReasonResumeFailed: saved virtual machines could not be brought back.
	ReasonResumeFailed Reason = "resume-failed"
	// ReasonCannotSave: the cluster's machines cannot be saved with their memory.
	ReasonCannotSave Reason = "cannot-save"
	// ReasonNotMeasured: the speed could not be measured.
	ReasonNotMeasured Reason = "not-measured"
	// ReasonScaleFailed: the cluster did not get its new size.
	ReasonScaleFailed Reason = "scale-failed"
	// ReasonVolumeFailed: a volume could not be made, mounted or erased.
	ReasonVolumeFailed Reason = "volume-failed"
	// ReasonUIDsExhausted: every UID for people was given.
	ReasonUIDsExhausted Reason = "uids-exhausted"
	// ReasonNotClean: a machine could not be proven to be clean.
	ReasonNotClean Reason = "not-clean"
	// ReasonControllerUnreachable: the machine's controller does not answer.
	ReasonControllerUnreachable Reason = "controller-unreachable"
	// ReasonMemoryShort: there is too little memory.
	ReasonMemoryShort Reason = "memory-short"
)

// Reasons of timeout: a deadline passed; the work may go on. The first is that of an error which tells no finer one.
const (
	// ReasonTimeout: a deadline passed; the work may go on.
	ReasonTimeout Reason = "timeout"
	// ReasonNoAnswer: no answer came in time.
	ReasonNoAnswer Reason = "no-answer"
	// ReasonPowerUnconfirmed: a controller took an order, and the machine was not seen to follow.
	ReasonPowerUnconfirmed Reason = "power-unconfirmed"
	// ReasonControllerNotBelieved: a controller says what its machine does not bear out.
	ReasonControllerNotBelieved Reason = "controller-not-believed"
	// ReasonNotDoneYet: a command waited as long as it was to; the work goes on.
	ReasonNotDoneYet Reason = "not-done-yet"
)

// Reasons of internal: a defect of Muster. The first is that of an error which tells no finer one.
const (
	// ReasonInternal: a defect of Muster.
	ReasonInternal Reason = "internal"
	// ReasonClusterFailed: the cluster failed: its events tell why.
	ReasonClusterFailed Reason = "cluster-failed"
)

// Reason is the one of an error that tells no finer one: the code's own word.
func (c Code) Reason() Reason { return Reason(strings.ReplaceAll(string(c), "_", "-")) }

// ReasonOf returns the reason of the first Error in err's chain, ReasonInternal for
// any other error, and "" for nil. An error that was recorded without one has that of
// its code.
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	var e *Error
	switch {
	case !errors.As(err, &e):
		return ReasonInternal
	case e.Reason == "":
		return e.Code.Reason()
	}
	return e.Reason
}
