//go:build !race

package daemon_test

// raceEnabled: everything takes ten times as long.
const raceEnabled = false
