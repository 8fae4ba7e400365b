package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// guard is the provider as the server sees it, and watches what the server does.
type guard struct {
	provider.Provider
	y *yearSite
}

func (g guard) Ensure(ctx context.Context, wants []provider.DesiredState) []error {
	running := g.y.world.Running()
	g.y.mu.Lock()
	for _, w := range wants {
		if w.Power != provider.PowerBoot {
			continue
		}
		id := yearRun{w.Boot.Cluster, w.Boot.Hostname, w.Boot.Attempt}
		for other, r := range g.y.runs {
			if _, up := running[other]; up && other != w.Machine && r.cluster == id.cluster && r.node == id.node {
				g.y.t.Errorf("%s: node %s of %s boots on %s and still runs on %s", time.Now(), id.node, id.cluster, w.Machine, other)
			}
		}
		if u := g.y.user[w.Machine]; u != "" && u != id.cluster {
			g.y.t.Errorf("%s: machine %s boots for %s and was not cleaned since %s", time.Now(), w.Machine, id.cluster, u)
		}
		g.y.runs[w.Machine], g.y.user[w.Machine] = id, id.cluster
	}
	g.y.mu.Unlock()
	return g.Provider.Ensure(ctx, wants)
}

func (g guard) Clean(ctx context.Context, id muster.MachineID) (muster.CleanRecord, error) {
	r, err := g.Provider.Clean(ctx, id)
	if err == nil && r.Verified {
		g.y.mu.Lock()
		g.y.user[id] = ""
		g.y.mu.Unlock()
	}
	return r, err
}

// yearLog fails the test for what must never be logged.
type yearLog struct{ t *testing.T }

func (l yearLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (l yearLog) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l yearLog) WithGroup(string) slog.Handler                    { return l }

func (l yearLog) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&b, " %s", a); return true })
	if r.Message == "panic" {
		l.t.Errorf("%s: %s%s", r.Time, r.Message, b.String())
	}
	return nil
}

func (g guard) Capabilities() muster.Capabilities {
	c := g.Provider.Capabilities()
	c.BootsAtOnce = g.y.window
	return c
}
