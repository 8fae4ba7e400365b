package store

import (
	"slices"
	"time"
)

// mostDurations is how many of a kind are cached: every decision asks for some.
const mostDurations = 20

// durationKey names what took some time. An empty class or image stands for any.
type durationKey struct{ kind, class, image string }

// measure is a duration as it was written.
type measure struct {
	durationKey
	took time.Duration
}

// putDuration adds one to all that it belongs to, with mu held.
func (c *cache) putDuration(e entry[measure]) {
	for _, class := range slices.Compact([]string{e.v.class, ""}) {
		for _, image := range slices.Compact([]string{e.v.image, ""}) {
			k := durationKey{e.v.kind, class, image}
			if old, ok := c.durations[k]; ok {
				list := append([]time.Duration{e.v.took}, old.v[:min(len(old.v), mostDurations-1)]...)
				c.durations[k] = entry[[]time.Duration]{e.rev, list}
			}
		}
	}
}

// lastDurations are the newest of a kind. They are shared: they are read only.
func (tx *Tx) lastDurations(k durationKey) ([]time.Duration, error) {
	s := tx.s
	if err := s.usable(false); err != nil {
		return nil, err
	}
	c := &s.db.cache
	c.mu.RLock()
	e, ok := c.durations[k]
	c.mu.RUnlock()
	if ok && e.rev <= s.seen && s.clean() {
		return e.v, nil
	}
	list, err := tx.readDurations(k, mostDurations)
	if err == nil {
		s.keep(func(c *cache) { c.durations[k] = entry[[]time.Duration]{s.seen, list} })
	}
	return list, err
}
