// Package factsdiff compares what a machine is made of with what it was, and bounds
// what machines say of themselves. Pure.
package factsdiff
