package control

import (
	"sync"

	"github.com/muster-hpc/muster/wire"
)

// hub passes progress events on: what is worth watching and not worth keeping.
// A listener that is slow misses some.
type hub struct {
	mu        sync.Mutex
	listeners map[chan wire.Event]struct{}
}

// Publish passes a progress event (a stage of a boot) to those who watch.
func (s *Service) Publish(e wire.Event) {
	e.Seq = 0
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for c := range s.hub.listeners {
		select {
		case c <- e:
		default:
		}
	}
}

func (h *hub) listen() (<-chan wire.Event, func()) {
	c := make(chan wire.Event, 256)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == nil {
		h.listeners = map[chan wire.Event]struct{}{}
	}
	h.listeners[c] = struct{}{}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.listeners, c)
	}
}
