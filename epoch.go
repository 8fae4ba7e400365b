package muster

// An epoch is one life of a site's records. A restore or an adoption begins the next one,
// while the server of the one before may still run elsewhere: agents obey the highest alone.
// Boots are numbered by it, so that the number of an attempt reports in which it began.

// attemptsOfEpoch is more boots than one place has in one epoch: no boot of a later one has
// the number of an earlier one that its records may have forgotten.
const attemptsOfEpoch = 1_000_000

// FirstAttempt is the least number of a boot that begins in an epoch.
func FirstAttempt(epoch int64) int64 { return (epoch-1)*attemptsOfEpoch + 1 }

// EpochOf is the epoch in which a boot with this number began; 1 for what is no number of one.
func EpochOf(attempt int64) int64 { return (max(attempt, 1)-1)/attemptsOfEpoch + 1 }
