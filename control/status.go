package control

import (
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
)

// statusText is one line for people on where a cluster stands.
func statusText(c muster.Cluster, view wire.Cluster, now time.Time) string {
	switch c.Phase {
	case muster.ClusterQueued:
		for _, d := range c.Conditions {
			if d.Code == cannotBeServed {
				return "waits, but cannot be served: " + d.Text
			}
			if d.Code == muster.ConditionOverLimit {
				return "waits for a limit: " + d.Text
			}
			if d.Code == waitingForMissing {
				return fmt.Sprintf("position %d in the queue; %s", view.Position, d.Text)
			}
		}
		text := fmt.Sprintf("position %d in the queue, waits for %s", view.Position, plaintext.Count(c.Spec.TotalNodes(), "machine"))
		if n := view.Overtaken; n > 0 {
			text += fmt.Sprintf("; %d that came later go first: their projects used less lately, or they were raised", n)
		}
		if view.StartAt.IsZero() {
			return text + "; no time is known: clusters without an end have them"
		}
		return text + remaining("starts", view.StartAt, time.Duration(view.StartSpread), now)
	case muster.ClusterReserved:
		for _, d := range c.Conditions {
			if d.Code == muster.ConditionPromiseLate {
				return d.Text
			}
		}
		return "starts at " + c.Promise.Start.UTC().Format("2006-01-02 15:04:05 UTC") + ", promised"
	case muster.ClusterPausing:
		for _, d := range c.Conditions {
			if d.Code == muster.ConditionPausing {
				return d.Text + remaining("paused", d.ETA, 0, now)
			}
		}
		if c.Pause != nil && c.Pause.OnPause.KeepsMemory() {
			return "its jobs are suspended"
		}
		return "its jobs come to an end"
	case muster.ClusterPaused:
		return pausedText(c, view, now)
	case muster.ClusterFrozen:
		return frozenText(c)
	case muster.ClusterBuilding:
		text := fmt.Sprintf("%d of %s ready", view.ReadyCount, plaintext.Count(view.NodeCount, "node"))
		for _, d := range c.Conditions {
			if d.Code == muster.ConditionImage {
				text = d.Text
			}
		}
		return text + remaining("ready", c.ETA, time.Duration(c.ETASpread), now)
	case muster.ClusterValidating:
		if m := c.Measurement; m != nil && m.Phase.Open() {
			return "all nodes are up; " + measuringText(*m, now)
		}
		return "all nodes are up and being checked" + remaining("ready", c.ETA, time.Duration(c.ETASpread), now)
	case muster.ClusterReady:
		if !c.Ending.IsZero() {
			return "its walltime is over: the scheduler ends its jobs"
		}
		for _, d := range c.Conditions {
			if d.Code == muster.ConditionScaling {
				return "ready; scaling " + d.Text + remaining("done", d.ETA, 0, now)
			}
		}
		if m := c.Measurement; m != nil && m.Phase.Open() {
			return "ready; " + measuringText(*m, now)
		}
		if !c.Expires.IsZero() {
			return "ready; its walltime ends in " + round(c.Expires.Sub(now))
		}
		return "ready"
	case muster.ClusterDeleting:
		return "its machines are being given back" + remaining("done", c.ETA, time.Duration(c.ETASpread), now)
	case muster.ClusterFailed:
		if c.Reason != nil {
			return c.Reason.Message
		}
		return "failed"
	}
	return string(c.Phase)
}

// measuringText reports how far a measurement is.
func measuringText(m muster.Measurement, now time.Time) string {
	text := "their speed is measured"
	if m.Launches > 0 {
		text = fmt.Sprintf("their speed is measured: %d of %d launches", m.Done, m.Launches)
	}
	if n := len(m.Suspects) + len(m.SuspectLinks); n > 0 {
		text += ", " + plaintext.Count(n, "suspect") + " again"
	}
	return text + remaining("done", m.ETA, 0, now)
}

// remaining reports when something should be done, and how well that is known.
func remaining(word string, eta time.Time, spread time.Duration, now time.Time) string {
	if eta.IsZero() || !eta.After(now) {
		return ""
	}
	text := ", " + word + " in about " + round(eta.Sub(now))
	if spread > 0 {
		text += fmt.Sprintf(" (usually within %s of that)", round(spread))
	}
	return text
}

// round is a duration as people say it: two units at most.
func round(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()+0.999))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// frozenText is one line on a frozen cluster.
func frozenText(c muster.Cluster) string {
	for _, d := range c.Conditions {
		if d.Code == muster.ConditionResuming {
			return d.Text
		}
	}
	text := "frozen; its machines stand still and stay its own; `muster resume " + c.Name + "` lets it go on"
	if c.Pause != nil && c.Pause.OnPause == muster.PauseHibernate {
		text = "hibernates; its machines are off and stay its own; `muster resume " + c.Name + "` lets it go on"
	}
	if !c.Expires.IsZero() {
		text += "; its walltime runs on, until " + c.Expires.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	return text
}

// pausedText is one line on a paused cluster: when it comes back, or until when it may stay.
func pausedText(c muster.Cluster, view wire.Cluster, now time.Time) string {
	p := c.Pause
	switch {
	case c.Promise != nil:
		return "paused; it comes back at " + c.Promise.Start.UTC().Format("2006-01-02 15:04:05 UTC") + ", promised"
	case p != nil && !p.Resume.IsZero():
		text := fmt.Sprintf("paused; position %d in the queue to come back", view.Position)
		if view.StartAt.IsZero() {
			return text + "; no time is known: clusters without an end have the machines"
		}
		return text + remaining("back", view.StartAt, time.Duration(view.StartSpread), now)
	}
	text := "paused; `muster resume " + c.Name + "` brings it back"
	if !c.Deadline.IsZero() {
		text += "; it is deleted in " + round(c.Deadline.Sub(now)) + " otherwise, and its volumes are kept"
	}
	return text
}
