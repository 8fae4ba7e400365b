package configure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

const (
	// vigilEvery is how often a node looks at what its people rely on: at one file of
	// /proc for each service.
	vigilEvery = 2 * time.Second
	// askTime is how long a service may take to answer, askMoment how long the others
	// wait for it to be looked at.
	askTime   = 10 * time.Second
	askMoment = time.Second
	// tellAfter is how long something is wrong until it is told: most is mended by then.
	tellAfter = 5 * time.Second
	// mendPause is the wait after the first try to mend, which doubles with each.
	mendPause    = 4 * time.Second
	mendPauseMax = time.Minute
	// comingTime is how long a unit may take to start or to end.
	comingTime = 30 * time.Second
)

// pulse is what is known of one vital.
type pulse struct {
	vital
	main  mainProcess
	had   mainProcess // the last one that there was
	query errand[error]
	asked time.Time
	mute  error     // what it last answered
	wrong string    // what that was taken for
	since time.Time // wrong since then; zero: it is well
	tries int       // to mend it
	next  time.Time // not mended before
	told  *wire.Check
	// coming: the unit is neither up nor down since then.
	coming time.Time
}

// keep watches what the people of the cluster rely on, until ctx ends: what has ended is
// started, what was stopped goes on, what does not answer is started anew. What that does
// not mend is told.
func (c *Configurer) keep(ctx context.Context, cfg *wire.NodeConfig, r Reporter) {
	pulses := map[string]*pulse{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(vigilEvery):
		}
		for _, v := range c.vitals(cfg) {
			p := pulses[v.name]
			if p == nil {
				p = &pulse{}
				pulses[v.name] = p
			}
			p.vital = v
			c.attend(ctx, p, r)
		}
	}
}

// attend looks at one vital and does what it needs.
func (c *Configurer) attend(ctx context.Context, p *pulse, r Reporter) {
	wrong := c.examine(ctx, p)
	now := c.clock.Now()
	switch {
	case ctx.Err() != nil:
		return
	case wrong == "":
		p.since = time.Time{}
		if p.tries > 0 && now.Sub(p.next) > mendPauseMax { // it lasts
			p.tries = 0
		}
		p.tell(r, wire.Check{Name: p.name, OK: true})
		return
	case p.since.IsZero():
		p.since = now
	}
	if !now.Before(p.next) {
		c.mendVital(ctx, p, wrong)
		p.tries++
		p.next = c.clock.Now().Add(min(mendPause<<min(p.tries-1, 8), mendPauseMax))
	}
	if now.Sub(p.since) >= tellAfter {
		if p.told == nil || p.told.Text != wrong {
			c.log.Warn("health check failed", "what", p.name, "reason", wrong)
		}
		p.tell(r, wire.Check{Name: p.name, Text: wrong})
	}
}

// tell says what is news. What the server knows from before this watch is not known here,
// so the first word is said in any case.
func (p *pulse) tell(r Reporter, check wire.Check) {
	if p.told == nil || *p.told != check {
		r.Check(check)
		p.told = &check
	}
}

// examine reports what is wrong; "" for nothing.
func (c *Configurer) examine(ctx context.Context, p *pulse) string {
	if p.pid != 0 {
		if state, _ := c.readStat(p.pid); stands(state) {
			p.query, p.asked = errand[error]{}, time.Time{} // it is asked when it goes on
			return stoppedText
		}
	}
	if p.unit != "" {
		switch p.main.look(c) {
		case processStopped:
			return stoppedText
		case processGone:
			if wrong, sure := c.examineUnit(ctx, p); wrong != "" || !sure {
				return wrong
			}
		}
	}
	due := p.mute != nil || p.asked.IsZero() || c.clock.Now().Sub(p.asked) >= p.every
	if p.ask == nil || !due && !p.query.running() {
		return ""
	}
	p.query.send(ctx, c.clock, askTime, p.ask)
	err, came := p.query.wait(ctx, c.clock, askMoment)
	switch {
	case !came && c.clock.Now().Sub(p.query.began) < askTime:
		return p.wrong // as it was, until it answers
	case !came:
		err = errSilent
	}
	again := p.mute != nil || p.every <= askOften // once is never: the next look decides
	p.asked, p.mute, p.wrong = c.clock.Now(), err, ""
	if err != nil && again {
		p.wrong = err.Error()
	}
	return p.wrong
}

// errSilent is the answer of what does not give any.
var errSilent = errors.New("it does not answer")

const (
	stoppedText = "its process was stopped by a signal"
	endedText   = "it has ended"
)

// examineUnit asks systemd for a unit whose main process is not known, or is gone. sure:
// it has one, and runs.
func (c *Configurer) examineUnit(ctx context.Context, p *pulse) (wrong string, sure bool) {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	active, main, err := c.unitState(asking, p.unit)
	if main.pid != 0 {
		if p.unit == controllerUnit && p.had.pid != 0 && p.had != main {
			c.sawControllerAnew()
		}
		p.had = main
	}
	p.main = main
	coming := p.coming
	p.coming = time.Time{}
	switch now := c.clock.Now(); {
	case err != nil:
		return "", false // systemd's own check tells
	case active == "failed" || active == "inactive":
		return endedText, true
	case active == "active":
		return "", true
	case coming.IsZero():
		p.coming = now
	case now.Sub(coming) > comingTime:
		p.coming = coming
		return "it is " + active, true
	default:
		p.coming = coming
	}
	return "", false
}

// mendVital does what may help, more with each try.
func (c *Configurer) mendVital(ctx context.Context, p *pulse, wrong string) {
	c.log.Warn("restarting unhealthy service", "what", p.name, "reason", wrong, "attempt", p.tries+1)
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var err error
	switch {
	case p.unit == "" && p.mend == nil:
	case p.unit == "":
		err = p.mend(ctx)
	case wrong == stoppedText && p.tries < 2:
		err = unix.Kill(p.main.pid, unix.SIGCONT)
	case wrong == endedText:
		// A unit that ended too often is not started before it is forgiven.
		_, _ = c.run.Run(ctx, "", "systemctl", "reset-failed", p.unit)
		err = c.systemctl(ctx, "start", p.unit)
	case p.tries > 0:
		// It had its time to end.
		_, _ = c.run.Run(ctx, "", "systemctl", "kill", "--signal=KILL", "--kill-whom=main", p.unit)
		err = c.systemctl(ctx, "restart", p.unit)
	default:
		err = c.systemctl(ctx, "restart", p.unit)
	}
	if err != nil {
		c.log.Warn("restarting unhealthy service failed", "what", p.name, "error", err)
	}
	p.asked = time.Time{} // it is asked at the next look
	p.mute = fmt.Errorf("it was just mended")
	if p.unit != "" { // what was asked of the process before is void
		p.query = errand[error]{}
	}
}
