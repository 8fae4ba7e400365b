// Package bootqueue admits boots, so that a rack of machines that start at once neither
// trips its fuses nor overruns its boot server. Two things bound it: a bucket (so
// many starts in a second) and a window (so many machines between their power-on
// and their first word). Those who must wait are let go in turn among the owners
// that want them, and can be told their place and when their turn is likely to come.
// Pure: it has no clock and starts nothing.
package bootqueue
