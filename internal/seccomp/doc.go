// Package seccomp bounds which calls of the kernel a program may make: those that
// reach memory which no control group is charged for, or drivers that nobody asked
// for, are closed. The filter is inherited by every program that follows and cannot
// be taken off.
package seccomp
