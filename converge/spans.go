package converge

import (
	"sync"
	"time"

	"github.com/muster-hpc/muster/store"
)

// spans keeps how long things usually take. It changes with every node that
// boots, and no estimate is better for being a second younger.
type spans struct {
	mu sync.Mutex
	m  map[spanKey]keptSpan
}

type spanKey struct{ kind, class, image string }

type keptSpan struct {
	Span
	measured int64 // the store's count when it was read
	until    time.Time
}

// A span is believed for so long while new times are measured: one of a few
// times, which each new one changes, and one of many.
const (
	spansKept     = time.Second
	fullSpansKept = time.Minute
)

// maxSpans bounds how many are kept; there are a few for each class and image.
const maxSpans = 4096

func (s *spans) of(tx *store.Tx, now time.Time, kind, class, image string) (Span, error) {
	k, measured := spanKey{kind, class, image}, tx.Measured()
	s.mu.Lock()
	x, ok := s.m[k]
	s.mu.Unlock()
	if left := x.until.Sub(now); ok && (x.measured == measured || left > 0 && left <= fullSpansKept) {
		return x.Span, nil
	}
	history, err := tx.Durations(kind, class, image, historySize)
	if err != nil {
		return Span{}, err
	}
	keep := spansKept
	if len(history) >= historySize {
		keep = fullSpansKept
	}
	x = keptSpan{SpanOf(history), measured, now.Add(keep)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil || len(s.m) >= maxSpans {
		s.m = map[spanKey]keptSpan{}
	}
	s.m[k] = x
	return x.Span, nil
}
