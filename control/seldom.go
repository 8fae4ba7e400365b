package control

import (
	"sync"
	"time"
)

// seldom lets each name through once in a while. It bounds what can be written because
// of what machines say before they are believed. Its zero value is ready.
type seldom struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// seldomMost bounds how many names are remembered.
const seldomMost = 1 << 16

// allow tells whether a name was not let through for a while, and lets it through then.
func (s *seldom) allow(name string, now time.Time, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.last[name]; ok && now.Sub(last) < every && !now.Before(last) {
		return false
	}
	if s.last == nil {
		s.last = map[string]time.Time{}
	}
	if len(s.last) >= seldomMost {
		for n, last := range s.last {
			if now.Sub(last) >= every {
				delete(s.last, n)
			}
		}
		if len(s.last) >= seldomMost {
			return false // more names than a site has machines
		}
	}
	s.last[name] = now
	return true
}
