// Package inherit keeps what a program has open from the programs that it starts.
package inherit

import "golang.org/x/sys/unix"

// Seal sees to it that no process which is started from now on inherits a descriptor that
// it was not given by name. Go opens its files so; what libraries and whoever started this
// program left open may not be.
func Seal() {
	// A kernel without close_range (before 5.11 with this flag) leaves it to whoever
	// opened them.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}
