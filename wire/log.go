package wire

import (
	"strings"
	"time"
)

// LogQuery says which lines of the nodes' journals are wanted.
type LogQuery struct {
	Node  string
	Lines int       // of the newest that match; 0: 200
	Since time.Time // zero: as far back as there is
	Unit  string    // "slurmd" means slurmd.service too; "": all
	// Least is how severe a line must be: 0 emergency to 7 debug. Only when
	// Filter is set.
	Least  int
	Filter bool
}

// Matches reports whether a line is wanted.
func (q LogQuery) Matches(l JournalLine) bool {
	if !q.Since.IsZero() && l.At.Before(q.Since) || q.Filter && l.Priority > q.Least {
		return false
	}
	return q.Unit == "" || l.Unit == q.Unit || strings.TrimSuffix(l.Unit, ".service") == q.Unit
}

// LogPriorities are the names of priorities, most severe first.
func LogPriorities() []string {
	return []string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"}
}

// LogStep is one thing of a stream of journals.
type LogStep struct {
	*LogLine        // nil: the past is told, and what follows is new
	Lost     int64  `json:"lost,omitempty"` // lines that were not told before this one
	End      string `json:"end,omitempty"`  // why no more comes
}
