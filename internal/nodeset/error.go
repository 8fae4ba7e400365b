package nodeset

import "fmt"

// Error reports what is wrong with the text of a set.
type Error struct {
	Text    string // shortened
	Offset  int    // in bytes from the start of the text, -1 if nowhere
	Message string
}

// Error is one line.
func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("node set %q: %s", e.Text, e.Message)
	}
	return fmt.Sprintf("node set %q: %s (character %d)", e.Text, e.Message, e.Offset+1)
}

func shorten(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
