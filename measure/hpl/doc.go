// Package hpl plans launches of the High-Performance Linpack benchmark and reads
// what they print: which sizes fit into memory and time, which splits, grids and
// blocks are tried, and what the figures of several launches say together. It
// starts nothing itself: a [Driver] says what to launch next, and whoever launches
// it reports what came of it.
package hpl
