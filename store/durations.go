package store

import (
	"slices"
	"time"
)

// mostDurations is how many of a kind are remembered.
const mostDurations = 20

// durationKey names what took some time. An empty class or image stands for any.
type durationKey struct{ kind, class, image string }

func (k durationKey) key() key { return key{kind: 'd', id: k.kind} }

// measure is a duration as it was written.
type measure struct {
	durationKey
	took time.Duration
}

// lastDurations are the newest of a kind: every decision asks for some, and
// every boot adds one.
func (tx *Tx) lastDurations(k durationKey) ([]time.Duration, error) {
	s := tx.s
	if err := s.usable(false); err != nil {
		return nil, err
	}
	if list, ok := recalled(s, k.key(), func(r *recall) ([]time.Duration, bool) { return r.durationsOf(k) }); ok {
		return list, nil
	}
	list, err := tx.readDurations(k, mostDurations)
	if err == nil {
		s.db.recall.keepDurations(k, list, func() bool { return s.remembers(k.key()) })
	}
	return list, err
}

func (r *recall) durationsOf(k durationKey) ([]time.Duration, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list, ok := r.durations[k]
	return slices.Clone(list), ok
}

// keepDurations remembers what was read, if that is what was committed last.
func (r *recall) keepDurations(k durationKey, list []time.Duration, last func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !last() {
		return
	}
	if r.durations == nil || len(r.durations) >= maxCached {
		r.durations = map[durationKey][]time.Duration{}
	}
	r.durations[k] = slices.Clone(list)
}

// took adds what was committed to all that it belongs to, with r.mu held.
func (r *recall) took(m measure) {
	for _, class := range slices.Compact([]string{m.class, ""}) {
		for _, image := range slices.Compact([]string{m.image, ""}) {
			k := durationKey{m.kind, class, image}
			if list, ok := r.durations[k]; ok {
				r.durations[k] = slices.Insert(list[:min(len(list), mostDurations-1)], 0, m.took)
			}
		}
	}
}
