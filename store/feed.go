package store

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/muster-hpc/muster"
)

// Feed delivers every audit line once it is committed, in order, whoever may
// see it: ask CanSee before passing a line on to a user.
type Feed struct {
	// C is closed by Close and when the store closes.
	C <-chan muster.Audit

	c     chan muster.Audit
	lost  atomic.Bool
	feeds *feeds
}

// Lost reports whether lines were dropped since the last call because the reader
// was slow. Then read the audit from the last Seq that was handled, and skip
// lines of C that are not newer. Ask after each line received.
func (f *Feed) Lost() bool { return f.lost.Swap(false) }

// Close ends the feed. A second Close does nothing.
func (f *Feed) Close() { f.feeds.remove(f) }

// Subscribe returns a feed of the lines committed from now on. It drops lines
// when more than buffer wait to be read; it never holds up a commit.
func (db *DB) Subscribe(buffer int) *Feed {
	c := make(chan muster.Audit, max(buffer, 1))
	f := &Feed{C: c, c: c, feeds: &db.feeds}
	db.feeds.add(f)
	return f
}

type feeds struct {
	mu     sync.Mutex
	list   []*Feed
	closed bool
}

func (s *feeds) add(f *Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		close(f.c)
		return
	}
	s.list = append(s.list, f)
}

func (s *feeds) remove(f *Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.list, f); i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
		close(f.c)
	}
}

func (s *feeds) publish(lines []muster.Audit) {
	if len(lines) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.list {
		for _, a := range lines {
			select {
			case f.c <- a:
			default:
				f.lost.Store(true)
			}
		}
	}
}

func (s *feeds) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.list {
		close(f.c)
	}
	s.list, s.closed = nil, true
}
