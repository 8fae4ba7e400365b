// Package rack admits boots, so that a rack of machines that start at once neither
// trips its fuses nor overruns its boot server. Two things bound it: a bucket (so
// many starts in a second) and a window (so many machines between their power-on
// and their first word). Who must wait stands in one queue and can be told its
// place and when its turn is likely to come. Pure: it has no clock and starts
// nothing.
package rack
