package network

import (
	"log/slog"
	"sync"
	"time"
)

// proxyLog writes down what leaves by a proxy. A group that asks without end fills no
// disk: what is beyond its share is counted, and told with its next line.
type proxyLog struct {
	log   *slog.Logger
	every time.Duration // one line
	burst int

	mu     sync.Mutex
	shares map[string]*logShare
}

type logShare struct {
	left    float64
	at      time.Time
	unsaid  int
	unsaid0 time.Time
}

// mostShares bounds the groups that are remembered; what is forgotten begins anew.
const mostShares = 4096

// write says a line, or counts it.
func (l *proxyLog) write(group string, args ...any) {
	if l.log == nil {
		return
	}
	l.mu.Lock()
	now := time.Now()
	s := l.shares[group]
	if s == nil {
		if l.shares == nil || len(l.shares) >= mostShares {
			l.shares = map[string]*logShare{}
		}
		s = &logShare{left: float64(l.burst), at: now}
		l.shares[group] = s
	}
	s.left = min(float64(l.burst), s.left+float64(now.Sub(s.at))/float64(l.every))
	s.at = now
	if s.left < 1 {
		if s.unsaid == 0 {
			s.unsaid0 = now
			time.AfterFunc(l.every*unsaidAfter, func() { l.tellUnsaid(group, s) })
		}
		s.unsaid++
		l.mu.Unlock()
		return
	}
	s.left--
	unsaid, since := s.unsaid, s.unsaid0
	s.unsaid = 0
	l.mu.Unlock()
	if unsaid > 0 {
		args = append(args, "suppressed", unsaid, "since", since.UTC().Format(time.RFC3339))
	}
	l.log.Info("egress request", args...)
}

// unsaidAfter is after how many times `every` what was not said is told in any case.
const unsaidAfter = 60

// tellUnsaid reports what a group asked for beyond its share, when nothing more comes.
func (l *proxyLog) tellUnsaid(group string, s *logShare) {
	l.mu.Lock()
	unsaid, since := s.unsaid, s.unsaid0
	s.unsaid = 0
	l.mu.Unlock()
	if unsaid > 0 {
		l.log.Info("egress request", "of", group, "suppressed", unsaid, "since", since.UTC().Format(time.RFC3339))
	}
}
