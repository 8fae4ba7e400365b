package agent

import (
	"context"
	"time"
)

// Words of Report.Goodbye.
const (
	GoodbyeReboot   = "reboot"
	GoodbyePowerOff = "poweroff"
)

// goodbyeAtMost bounds the last report: a shutdown waits for nobody.
const goodbyeAtMost = 500 * time.Millisecond

// goodbye is the agent's last word, where the node goes down in order. An agent
// that is only stopped says nothing.
func (a *agent) goodbye() {
	if a.Goodbye == nil || a.cred.cert == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), goodbyeAtMost)
	defer cancel()
	if word := a.Goodbye(ctx); word != "" {
		a.lastWord(ctx, word)
	}
}

// lastWord sends a last report that says how the machine goes down.
func (a *agent) lastWord(ctx context.Context, word string) {
	r, _ := a.out.take()
	r.Attempt, r.BootID, r.Goodbye = a.Bootstrap.Attempt, a.BootID, word
	if _, _, err := a.link.Report(ctx, &r); err != nil {
		a.Log.Warn("shutdown notice failed", "error", err)
	}
}
