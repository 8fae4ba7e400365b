// Package sysinfo reads what changes the figures of a node and can be seen
// from inside it: what its processor, memory and kernel are like (Read), how it
// is built (Topology), and what happened while something was measured
// (Counters).
//
// On a slice of a host much of that is the host's: TestEnvironment.Host names it.
// What cannot be found out is left out; nothing is guessed.
package sysinfo
