package allocate

import (
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// History that the calendar counts with.
const (
	historySize = 20
	// EndingDuration is the history of how long jobs took to end when a walltime was over.
	EndingDuration = "ending"
	// StartErrorDuration is the history of how far off estimated starts were.
	StartErrorDuration = "start-error"
)

// turnover is how long it takes on machines of a class from their taking until people log
// in, and from the end of that until others can have them: nine of ten times lately.
type turnover struct {
	sys   *store.Tx
	parts map[string]bool // classes whose machines are parts of a host
	known map[string][3]time.Duration
	err   error
}

func newTurnover(sys *store.Tx, parts map[string]bool) *turnover {
	return &turnover{sys: sys, parts: parts, known: map[string][3]time.Duration{}}
}

// partsOf are the classes whose machines are parts of a host.
func partsOf(machines []muster.Machine, providers muster.Providers) map[string]bool {
	parts := map[string]bool{}
	last := ""
	for i := range machines {
		m := &machines[i]
		if class := m.Facts.Class; i == 0 || class != last {
			if p := providers.Of(m.Provider); p.SharesHost || p.Simulated {
				parts[class] = true
			}
			last = class
		}
	}
	return parts
}

// of is the lead and the turn of a class.
func (t *turnover) of(class string) (lead, turn time.Duration) {
	k := t.class(class)
	return k[0], k[1]
}

// clean is how long cleaning alone takes.
func (t *turnover) clean(class string) time.Duration { return t.class(class)[2] }

func (t *turnover) class(class string) [3]time.Duration {
	if t == nil { // nothing takes time
		return [3]time.Duration{}
	}
	if k, ok := t.known[class]; ok {
		return k
	}
	// Without history: machines that boot through their firmware take minutes, parts of
	// a host seconds.
	boot, off := 10*time.Minute, 10*time.Minute
	if t.parts[class] {
		boot, off = 10*time.Second, 10*time.Second
	}
	k := [3]time.Duration{
		t.usual("build", class, boot),
		t.usual("delete", class, off) + t.usual(EndingDuration, class, off),
		t.usual("clean", class, off),
	}
	t.known[class] = k
	return k
}

// usual is what nine of ten took at most, in whole seconds.
func (t *turnover) usual(kind, class string, otherwise time.Duration) time.Duration {
	list, err := t.sys.Durations(kind, class, "", historySize)
	if err != nil && t.err == nil {
		t.err = err
	}
	if len(list) == 0 {
		return otherwise
	}
	slices.Sort(list)
	at := (9*len(list)+9)/10 - 1
	return (list[at] + time.Second - 1).Truncate(time.Second)
}

// spread is how far off estimates were lately: the median.
func (t *turnover) spread() time.Duration {
	list, err := t.sys.Durations(StartErrorDuration, "", "", historySize)
	if err != nil || len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}
