// Package muster is the dictionary of the system: clusters, nodes, machines,
// images, plans, their phases and the tables of allowed transitions, the error
// value that reaches people, and the clock.
//
// It does no I/O and imports nothing but the standard library. Every other
// package speaks in these words, and a noun has the same file name in every
// layer: cluster.go here, cluster.go in store, in wire, in api and in cli.
package muster
