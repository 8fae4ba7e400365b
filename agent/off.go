package agent

import (
	"context"
	"errors"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/client"
)

// orphanAfter is how long the server must have said that it has no use for a machine
// until that goes off by itself. The server says when it wants a machine off; one
// that was restarted may have forgotten to, and nobody else can switch a machine off
// that has no controller. It is longer than a restart, or a mistake that somebody
// corrects, and short enough for the electricity.
const orphanAfter = 10 * time.Minute

// orphan is a machine that the server has no use for, since a time; zero: it has.
type orphan struct{ since time.Time }

// forsaken notes that the server said so, and reports whether it has for long enough.
func (o *orphan) forsaken(now time.Time) bool {
	if o.since.IsZero() {
		o.since = now
	}
	return now.Sub(o.since) >= orphanAfter
}

// over reports whether an error says that this attempt is over, on a machine that may be
// switched off, and does so when the server wants it or has no use for it for long. A
// certificate that is not accepted is another thing: work goes on there that the server
// only cannot see.
func (a *agent) over(t *talker, err error) bool {
	var gone client.Over
	if a.PowerOff == nil || !errors.As(err, &gone) {
		return false
	}
	forsaken := t.orphan.forsaken(a.Clock.Now())
	switch {
	case gone.PowerOff:
		a.powerOff("the server wants it off", false)
	case forsaken:
		a.powerOff("its cluster is over", false)
	}
	return true
}

// neverJoined switches a machine off that was refused for long: its token is late, and
// nothing runs on it.
func (a *agent) neverJoined(o *orphan, err error) {
	if a.PowerOff == nil || muster.CodeOf(err) != muster.EUnauth {
		*o = orphan{}
		return
	}
	if o.forsaken(a.Clock.Now()) {
		a.powerOff("the server does not let it join", false)
	}
}

// powerOff switches the machine off, where it is one that may be. Then the agent is
// silent: whoever waits for the machine to be off listens. When it fails, the agent
// goes on, and is told again.
func (a *agent) powerOff(why string, tell bool) {
	if a.PowerOff == nil {
		return
	}
	a.Log.Warn("powering off", "reason", why)
	if tell {
		short, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), goodbyeAtMost)
		a.lastWord(short, GoodbyePowerOff)
		cancel()
	}
	if err := a.PowerOff(a.ctx); err != nil {
		a.Log.Error("power off failed", "error", err)
		return
	}
	a.Goodbye = nil
	<-a.ctx.Done()
}
