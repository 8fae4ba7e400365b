// Package stat is the arithmetic behind performance certificates: what a
// handful of launches says of a machine, how sure that is, and which of many
// machines differs from the others. It is pure: no clock, no chance, no I/O. The
// same numbers give the same answer on every run, in whatever order they come.
//
// # Rules that hold everywhere
//
// Values are in whatever unit the caller has; results are in the same unit.
// What is said to be on logs takes values above zero and gives ratios. Slices
// that are handed in are never changed.
//
// A level is a confidence such as 0.95, between 0 and 1. Intervals have two
// sides with equal chances of missing. Where an exact interval is only to be had
// at certain levels (ranks are whole numbers), the next higher one is taken and
// told.
//
// Functions with one number as their result give NaN for what has none: no
// values, NaN among them, a parameter out of range. Functions with an error
// refuse NaN and infinities with [ErrNotFinite]; a value that was not measured is
// left out by the caller, never written as NaN.
//
// The distributions are our own. Those of gonum 0.17 lose digits with the size of
// their parameters: with 7 digits left of Student's t at 10 million degrees of freedom, and
// chances of 1.29 and -0.65 for counts in a billion tries.
//
// "Normal" names the bell-shaped distribution, not the opposite of faulty.
package stat
