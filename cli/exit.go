package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/client"
)

// Exit statuses; docs/errors.md lists them for people.
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

// Report tells an error on the error output: one line what, then what to do,
// with every problem of a request on a line of its own.
func Report(env Env, err error) {
	var status *StatusError
	if err == nil || errors.As(err, &status) {
		return
	}
	if errors.Is(err, context.Canceled) {
		return // the command said what there was to say
	}
	var e *muster.Error
	if !errors.As(err, &e) {
		fmt.Fprintf(env.Err, "muster: %v\n", err)
		return
	}
	fmt.Fprintf(env.Err, "muster: %s\n", clean(e.Message))
	for _, p := range e.Problems {
		fmt.Fprintf(env.Err, "  %s\n", clean(p.String()))
	}
	var refused *client.RefusedError
	if errors.As(err, &refused) && refused.Answer != nil {
		writeConsidered(env.Err, *refused.Answer)
		for _, change := range refused.Answer.Change {
			if change != e.Hint {
				fmt.Fprintf(env.Err, "  %s\n", clean(change))
			}
		}
	}
	if e.Hint != "" {
		fmt.Fprintf(env.Err, "  %s\n", clean(e.Hint))
	}
}

// clean removes what could move the cursor of a terminal: texts may come from
// a node.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if (r < ' ' && r != '\t') || (r >= 0x7f && r < 0xa0) {
			return '?'
		}
		return r
	}, s)
}
