package agent

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/backoff"
	"github.com/muster-hpc/muster/wire"
)

// Reports that do not wait for the interval keep this distance, so that what
// happens together travels together.
const (
	gapUrgent = 5 * time.Millisecond
	gapSoon   = 50 * time.Millisecond
)

// Bounds of the interval that the server may set.
const (
	intervalLeast = 50 * time.Millisecond
	intervalMost  = 10 * time.Minute
)

func (a *agent) setInterval(wanted muster.Duration) {
	if wanted <= 0 {
		return
	}
	d := min(max(time.Duration(wanted), intervalLeast), intervalMost)
	a.mu.Lock()
	a.interval = d
	a.mu.Unlock()
}

// talker is the state of the loop that reports.
type talker struct {
	last     time.Time // when the last report was made
	next     time.Time // when the next is due
	renewal  time.Time
	usage    time.Time
	failures int
	fetch    bool // a newer configuration is there to be fetched
	first    bool // no report has arrived yet
	facts    bool // were read
	orphan   orphan
}

// talk reports, renews and fetches until the agent ends. All of it happens in
// one goroutine, one thing after the other, so an agent that is embedded is
// small.
func (a *agent) talk(fetch bool) {
	t := talker{first: true, fetch: fetch, renewal: a.cred.renewAt()}
	t.next = a.Clock.Now()
	for a.await(&t) {
		if now := a.Clock.Now(); !now.Before(t.renewal) {
			t.renewal = now.Add(a.renewAgain())
			if err := a.renew(); err == nil {
				t.renewal = a.cred.renewAt()
			} else {
				a.trouble(err, 1)
			}
			if now.Before(t.next) {
				continue
			}
		}
		if t.fetch {
			a.fetch(&t)
		}
		a.report(&t)
		a.tell()
	}
}

// await waits until there is something to do; false when the agent ends.
func (a *agent) await(t *talker) bool {
	for {
		now := a.Clock.Now()
		due := t.next
		if t.renewal.Before(due) {
			due = t.renewal
		}
		if !now.Before(due) {
			return a.ctx.Err() == nil
		}
		kick := a.out.kick
		if t.failures > 0 {
			kick = nil // the server is away: news wait for it
		}
		select {
		case <-a.ctx.Done():
			return false
		case <-a.Clock.After(due.Sub(now)):
		case <-kick:
			gap := gapSoon
			if a.out.isUrgent() {
				gap = gapUrgent
			}
			if at := t.last.Add(gap); at.Before(t.next) {
				t.next = at
			}
		}
	}
}

// fetch gets the newest configuration.
func (a *agent) fetch(t *talker) {
	c, err := a.link.Config(a.ctx)
	if err == nil && !a.useful(c) {
		err = muster.Errorf(muster.EUnavailable, "the server has no configuration for this node yet")
	}
	if err != nil {
		t.failures++
		a.trouble(err, t.failures)
		return
	}
	t.fetch = false
	a.contact(true)
	a.offer(c)
}

// useful reports whether c is a configuration, and newer than the one we have.
func (a *agent) useful(c *wire.NodeConfig) bool {
	return c != nil && c.Generation > 0 && c.Generation > a.newest()
}

// report sends what there is to say and takes the answer.
func (a *agent) report(t *talker) {
	a.mu.Lock()
	interval, links := a.interval, a.links
	a.mu.Unlock()
	now := a.Clock.Now()
	if !t.facts && a.Facts != nil && a.firstDone() {
		a.out.setFacts(a.Facts(links))
		t.facts = true
	}
	r, receipt := a.out.take()
	r.Attempt, r.BootID, r.Probe = a.Bootstrap.Attempt, a.BootID, a.Launch != nil
	if a.Usage != nil && r.State != StateConfiguring && now.Sub(t.usage) >= interval*8/10 {
		if u, err := a.Usage(links); err == nil {
			r.Usage = &u
			t.usage = now
		}
	}
	r.Seconds = a.seconds.take(now)
	t.last = now
	reply, fresh, err := a.link.Report(a.ctx, &r)
	if a.ctx.Err() != nil {
		return
	}
	if err != nil {
		t.failures++
		a.trouble(a.expired(err), t.failures)
		most := pauseReady
		switch {
		case a.over(t, err):
			most = pauseOver
		case refused(err):
			most = pauseRefused
		case r.State == StateConfiguring:
			most = pauseBooting
		}
		t.next = a.Clock.Now().Add(backoff.After(t.failures, pauseFirst, most))
		return
	}
	a.heard(t, &r, receipt, reply, fresh)
}

// expired replaces an error by its cause where that is the credential's age.
func (a *agent) expired(err error) error {
	end := a.cred.cert.Leaf.NotAfter
	if a.Clock.Now().Before(end) {
		return err
	}
	return muster.Errorf(muster.EUnauth, "the node's certificate ended at %s, before the server could renew it", end.Format(time.RFC3339)).
		WithHint("the node works on; boot it again to have it managed again").Wrap(err)
}

// heard settles a report that has arrived.
func (a *agent) heard(t *talker, r *wire.Report, k receipt, reply wire.ReportReply, fresh bool) {
	a.contact(!t.fetch)
	a.out.settle(k)
	a.seconds.settle(r.Seconds, t.last)
	a.sampleSeconds(reply.Seconds)
	if len(r.Journal) > 0 {
		a.saveState()
	}
	if fresh && !t.first {
		a.out.again()
	}
	t.first, t.orphan = false, orphan{}
	if reply.PowerOff {
		a.powerOff("the server wants it off", true)
	}
	a.setInterval(reply.Interval)
	a.reach(reply.Reach)
	a.launch(reply.Launch)
	a.save(reply.Save)
	a.hibernate(reply.Hibernate)
	a.mu.Lock()
	interval := a.interval
	a.mu.Unlock()
	t.next = t.last.Add(around(interval))
	if t.fetch || reply.Generation > a.newest() {
		// A configuration that cannot be fetched is asked for again, slower
		// each time.
		wait := gapUrgent
		if t.fetch {
			wait = backoff.After(t.failures, pauseFirst, pauseBooting)
		}
		t.fetch = true
		if at := t.last.Add(wait); at.Before(t.next) {
			t.next = at
		}
		return
	}
	t.failures = 0
}

// firstDone reports whether the first configuration was applied, well or not.
func (a *agent) firstDone() bool {
	select {
	case <-a.apply.first:
		return true
	default:
		return false
	}
}

// watch waits for new configurations for as long as the agent lives.
func (a *agent) watch() {
	if !a.afterFirst(watchLatest) {
		return
	}
	failures := 0
	for a.ctx.Err() == nil {
		asked := a.Clock.Now()
		c, err := a.link.Watch(a.ctx, a.newest())
		switch {
		case err != nil:
			failures++
		case c != nil && c.Generation == 0:
			failures = 0
			a.out.soon()
			if !a.sleep(gapSoon) { // until the report has gone out
				return
			}
			continue
		case !a.useful(c):
			// A server that answers at once without news is not asked at once.
			if failures++; a.Clock.Now().Sub(asked) > time.Second {
				failures = 0
				continue
			}
		default:
			failures = 0
			a.offer(c)
			continue
		}
		most := pauseReady
		if err != nil && refused(err) {
			most = pauseRefused
		}
		if !a.sleep(backoff.After(failures, pauseFirst*5, most)) {
			return
		}
	}
}
