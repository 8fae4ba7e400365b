package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"
)

// What commands that others bring need to print as the others do.

// Print writes v as JSON or YAML where the command line asks for that, and else
// calls people.
func Print(c *cobra.Command, v any, people func(w io.Writer)) error {
	a := &app{env: Env{Out: c.OutOrStdout()}}
	if f := c.Flag("output"); f != nil {
		a.output = f.Value.String()
	}
	return a.print(v, people)
}

// WriteTable writes a heading and rows, aligned.
func WriteTable(w io.Writer, head []string, rows [][]string) {
	t := newTable(head...)
	for _, r := range rows {
		t.row(r...)
	}
	t.write(w)
}

// WriteChecks writes what a doctor found, and what to do.
func WriteChecks(w io.Writer, checks []Check) { writeChecks(w, checks) }

// Group is what a command does that only holds others.
func Group(c *cobra.Command, args []string) error { return group(c, args) }

// Exactly wants so many arguments, and names them when they are missing.
func Exactly(names ...string) cobra.PositionalArgs { return exactly(names...) }

// Size is a number of bytes for people.
func Size(n int64) string { return size(n) }

// Since is how long ago a time was, for people; empty for the zero time.
func Since(t, now time.Time) string { return since(t, now) }
