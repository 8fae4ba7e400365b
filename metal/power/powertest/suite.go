// Package powertest is the contract of power.Driver as tests: every driver
// passes the same suite, as far as its abilities go. A driver's test says how
// to reach a machine and what is true of it; the suite does the rest.
package powertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/bmc"
)

// Subject is one machine under test, which is off.
type Subject struct {
	Drivers power.Drivers
	Target  power.Target
	Parts   power.Deps
	// Powered reports what is true.
	Powered func() bool
	// Starts reports whether each start so far came from the network. Nil:
	// nobody can tell.
	Starts func() []bool
	// Restart restarts the machine by itself, as its system does. Nil:
	// it cannot.
	Restart func()
	// Break sets faults of its controller. Nil: it has none to set.
	Break func(bmc.Faults)
	// Sessions counts those open at its controller. Nil: it has none.
	Sessions func() int
	// Refused counts logins with a wrong password. Nil: nobody counts.
	Refused func() int
	// Blind: its boot order cannot be read back.
	Blind bool
	// Rises is how long it is between off and on.
	Rises time.Duration
	// Password must appear nowhere.
	Password string
	// Times for Control; zero fields are shorter than in earnest.
	Times power.Times
}

// Suite checks every promise of the contract. fresh makes a machine of its own
// for each part.
func Suite(t *testing.T, fresh func(t *testing.T) Subject) {
	run(t, fresh, append(manners(),
		part{"sessions are closed", closes},
		part{"wrong password", wrongPassword},
		part{"deaf", deaf},
		part{"slow", slow},
		part{"busy", busy},
		part{"given up", givenUp},
		part{"lies about its state", lies},
		part{"accepts and does nothing", ignores},
		part{"refuses sessions", refusesSessions},
		part{"table of sessions full", tableFull},
		part{"damaged answers", garbled},
	))
}

// Manners is the part of Suite that makers' peculiarities touch.
func Manners(t *testing.T, fresh func(t *testing.T) Subject) { run(t, fresh, manners()) }

type part struct {
	name string
	test func(*testing.T, Subject)
}

func manners() []part {
	return []part{
		{"on, off and the truth", follows},
		{"the network once", bootsOnce},
		{"forgets the boot order", forgets},
		{"fence", fences},
		{"a machine that is on boots", bootsAnew},
	}
}

func run(t *testing.T, fresh func(t *testing.T) Subject, parts []part) {
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.test(t, fresh(t))
		})
	}
}

func (s Subject) open(t *testing.T) power.Driver {
	t.Helper()
	d, err := s.Drivers.Open(s.Target, s.Parts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

func (s Subject) control(t *testing.T) *power.Control {
	t.Helper()
	times := power.Times{
		Command: 10 * time.Second, Tries: 3, Pause: 20 * time.Millisecond, PauseMost: 50 * time.Millisecond,
		Rise: 2 * time.Second, Fall: 2 * time.Second, Poll: 20 * time.Millisecond, OffReads: 2,
		Listen: 50 * time.Millisecond, Keep: time.Second,
	}
	if s.Times.Command != 0 {
		times = s.Times
	}
	c := power.NewControl(power.Config{Drivers: s.Drivers, Deps: s.Parts, Times: times})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// within bounds a context.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// wants fails unless the error has one of these codes, says what to do, and
// keeps the password to itself.
func (s Subject) wants(t *testing.T, err error, codes ...muster.Code) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %v", codes)
		return
	}
	ok := false
	for _, c := range codes {
		ok = ok || muster.CodeOf(err) == c
	}
	if !ok {
		t.Errorf("%v (%s), want %v", err, muster.CodeOf(err), codes)
	}
	s.quiet(t, err)
}

func (s Subject) quiet(t *testing.T, v any) {
	t.Helper()
	if s.Password == "" {
		return
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if strings.Contains(fmt.Sprintf(verb, v), s.Password) {
			t.Errorf("the password is in %s of %T", verb, v)
		}
	}
}

func (s Subject) truth(t *testing.T, want bool) {
	t.Helper()
	if got := s.Powered(); got != want {
		t.Errorf("powered is %v, want %v", got, want)
	}
}

// says checks the reading where the driver can read.
func (s Subject) says(t *testing.T, d power.Driver, want power.State) {
	t.Helper()
	if !d.Abilities().State {
		return
	}
	r, err := d.State(within(t, 20*time.Second))
	for end := time.Now().Add(2 * s.Rises); err == nil && r.State == power.Unknown && time.Now().Before(end); {
		time.Sleep(s.Rises / 10)
		r, err = d.State(within(t, 20*time.Second))
	}
	if err != nil || r.State != want {
		t.Errorf("state is %s (%v), want %s", r.State, err, want)
	}
	if r.Text == "" {
		t.Error("a reading without words")
	}
}

// skipUnless leaves a part out that the subject cannot be put through.
func skipUnless(t *testing.T, can bool, what string) {
	t.Helper()
	if !can {
		t.Skip(what)
	}
}
