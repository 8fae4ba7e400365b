package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/wire"
)

// report tells an error on the error output, in the form that was asked for.
// Where the exit status says it all, or the command did, nothing is told.
func (a *app) report(err error) {
	var status *StatusError
	if err == nil || errors.As(err, &status) || errors.Is(err, context.Canceled) {
		return
	}
	switch a.output {
	case "json":
		enc := json.NewEncoder(a.env.Err) // on one line: a program reads lines, and others may stand around it
		enc.SetEscapeHTML(false)
		_ = enc.Encode(failureOf(err))
	case "yaml":
		fmt.Fprintln(a.env.Err, "---")
		_ = writeYAML(a.env.Err, failureOf(err))
	default:
		tellError(a.env.Err, err)
	}
}

// failureOf is an error for programs, of the form that the API gives it.
func failureOf(err error) wire.Refused {
	var out wire.Refused
	var e *muster.Error
	switch {
	case errors.As(err, &e):
		out.Error = *e.Because(muster.ReasonOf(e)) // an older server tells none
	case errors.Is(err, context.DeadlineExceeded):
		out.Error = *muster.Errorf(muster.ETimeout, "%v", err).Because(muster.ReasonNoAnswer)
	default:
		out.Error = *muster.Errorf(muster.EInternal, "%v", err)
	}
	var refused *client.RefusedError
	if errors.As(err, &refused) && refused.Answer != nil {
		out.Status, out.Answer = "never", refused.Answer
	}
	return out
}

// outputOf is the format that a command line asks for that could not be read to
// its end.
func outputOf(args []string) string {
	for i, arg := range args {
		name, value, whole := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return ""
		case name == "--output" || name == "-o":
			if !whole && i+1 < len(args) {
				value = args[i+1]
			}
			return value
		case strings.HasPrefix(arg, "-o"):
			return arg[len("-o"):]
		}
	}
	return ""
}

// tellError tells people: one line what, then what to do, with every problem of
// a request on a line of its own.
func tellError(w io.Writer, err error) {
	var e *muster.Error
	if !errors.As(err, &e) {
		fmt.Fprintf(w, "muster: %s\n", clean(err.Error()))
		return
	}
	fmt.Fprintf(w, "muster: %s\n", clean(e.Message))
	for _, p := range e.Problems {
		fmt.Fprintf(w, "  %s\n", clean(p.String()))
	}
	var refused *client.RefusedError
	if errors.As(err, &refused) && refused.Answer != nil {
		writeConsidered(w, *refused.Answer)
		for _, change := range refused.Answer.Change {
			if change != e.Hint {
				fmt.Fprintf(w, "  %s\n", clean(change))
			}
		}
	}
	if e.Hint != "" {
		fmt.Fprintf(w, "  %s\n", clean(e.Hint))
	}
}

// clean removes what could move the cursor of a terminal: texts may come from
// a node.
func clean(s string) string { return localTimes(cleantext.Line(s), time.Local, time.Now()) }
