package converge

import (
	"log/slog"
	"time"

	"github.com/muster-hpc/muster"
)

// test starts a provider's test of a machine, beside the loop. A test that could not be
// tried says nothing about the machine: it is tried again later.
func (v *Converger) test(name string, a Test) {
	p := v.providers[name]
	now := v.c.Clock.Now()
	if p == nil || !v.observations.begin(a.Machine, func(s *Observation) {
		s.Tested, s.TestErr, s.TestAt = nil, nil, now
		s.Fenced, s.Fence = false, nil // it is about to run again
	}) {
		return
	}
	v.calls.Go(func() {
		ctx, cancel := v.callContext(a.Within)
		record, err := p.Test(ctx, a.Machine, a.Effort)
		cancel()
		v.observations.end(a.Machine, func(s *Observation) {
			s.OffAt, s.OffTries = time.Time{}, 0
			if err == nil {
				s.Tested, s.TestTries = &record, 0
				return
			}
			s.TestErr = err
			s.TestTries++
			wait := v.c.Limits.retryAfter(s.TestTries)
			if muster.CodeOf(err) == muster.ENotFound {
				wait = v.c.Sweep // it waits for its provider to find it
			}
			s.TestRetry = v.c.Clock.Now().Add(wait)
		})
		if v.ctx.Err() == nil && err != nil {
			v.c.Log.Log(v.ctx, level(err, slog.LevelWarn), "machine test failed", "machine", a.Machine, "error", err)
		}
		v.wakeMachine(a.Machine)
	})
}
