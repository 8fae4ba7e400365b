package nfs

import (
	"context"
	"time"
)

// How soon ganesha is looked at, and started again: at once, then ever later while it
// does not stay.
const (
	look     = 500 * time.Millisecond
	soonest  = time.Second
	latest   = 30 * time.Second
	longLife = time.Minute
)

// Run starts ganesha again whenever it has ended, until ctx ends. It ends no
// ganesha.
func (s *Server) Run(ctx context.Context) error {
	wait := time.Duration(0)
	var started time.Time
	for {
		next := look
		if s.ended() {
			if s.cfg.Clock.Now().Sub(started) > longLife {
				wait = 0
			}
			if wait > 0 {
				select {
				case <-ctx.Done():
					return nil
				case <-s.cfg.Clock.After(wait):
				}
			}
			wait = min(max(2*wait, soonest), latest)
			started = s.cfg.Clock.Now()
			s.again(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		case <-s.cfg.Clock.After(next):
		}
	}
}

// ended reports whether ganesha is to run and does not.
func (s *Server) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted && !s.held && (s.child == nil || !s.child.alive())
}

func (s *Server) again(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wanted || s.held || s.child != nil && s.child.alive() {
		return
	}
	s.drop()
	// Another may run that a server started which was killed before it was found.
	if err := s.adopt(); err != nil {
		s.cfg.Log.Warn("checking NFS server failed", "error", err)
	}
	if s.child == nil {
		s.cfg.Log.Warn("NFS server exited, restarting")
	}
	if err := s.apply(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("volume export failed", "error", err)
	}
}
