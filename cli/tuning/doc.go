// Package tuning plans how run-time settings are searched for a program that does not change: which
// settings a cluster can vary, in what order they are tried within a number of launches, which of them
// won, and the module that sets them. It is pure: launches are experiments, which are run elsewhere.
package tuning
