package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/muster-hpc/muster"
)

// Exit statuses; docs/users/errors.md lists them for people.
const (
	exitOK          = 0
	exitFailed      = 1
	exitInvalid     = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitForbidden   = 5
	exitNoCapacity  = 6
	exitUnavailable = 7
	exitTimeout     = 8
	exitInterrupted = 130
	exitBroken      = 255
)

// StatusError is the exit status of a command that ran on a node; it says
// nothing more.
type StatusError struct{ Status int }

// Error is for those who print it anyway.
func (e *StatusError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// ExitCode is the exit status for an error of a command.
func ExitCode(err error) int {
	var status *StatusError
	var broken *brokenError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &broken):
		return exitBroken
	case errors.As(err, &status):
		return status.Status
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	}
	switch muster.CodeOf(err) {
	case muster.EInvalid:
		return exitInvalid
	case muster.ENotFound:
		return exitNotFound
	case muster.EConflict:
		return exitConflict
	case muster.EForbidden, muster.EUnauth:
		return exitForbidden
	case muster.ENever, muster.ENoCapacity:
		return exitNoCapacity
	case muster.EUnavailable:
		return exitUnavailable
	case muster.ETimeout:
		return exitTimeout
	}
	return exitFailed
}
