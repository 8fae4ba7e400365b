// Package store keeps every record of a site: clusters, nodes, machines,
// users, tokens, secrets, the history that estimates come from, and the
// append-only audit, in one SQLite file.
//
// Everything is read in a View and changed in an Update, both on behalf of an
// actor. An Update returns only when its change is on the disk; Updates that
// come at the same time share one disk flush. A change of phase is written in
// the same transaction as its audit line, is checked against the transition
// tables of the root package, and never leaves a machine in two clusters.
//
// What an actor may not see looks like what does not exist. That is decided in
// one place, authorize.go.
//
// Errors are *muster.Error: ENotFound for absent and forbidden alike,
// EConflict for a change that the present state does not allow, EUnavailable
// for a full, locked or read-only disk (nothing was changed), ECorrupt for
// stored bytes that are not what was written.
package store
