package nfs

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
)

// A server is held while the machines that it serves stand still: no lease ends of who cannot renew it. What ganesha
// knew of its clients is kept beside, and each start for machines that still stand begins with that, so that the period
// in which they claim their locks again begins when they can.
const heldName = "recovery.held"

// fresh is how long after a start nearly all of the grace period is left.
const fresh = 10 * time.Second

// dropHeld drops what was kept of the clients when it was held last.
func (s *Server) dropHeld() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return os.RemoveAll(s.path(heldName))
}

// Hold ends ganesha until Serve, and keeps which clients it had. It may be repeated, also after a crash in the middle
// of it; what was kept before must have been dropped before the first time.
func (s *Server) Hold() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
	if err := s.end(); err != nil {
		return err
	}
	return s.keepClients()
}

// end ends ganesha. The lock is held.
func (s *Server) end() error {
	if s.child == nil {
		if err := s.adopt(); err != nil { // a server started it that was killed at once
			return err
		}
	}
	if s.child == nil {
		return nil
	}
	if err := s.child.stop(grace); err != nil {
		return err
	}
	s.drop()
	return nil
}

// keepClients puts aside what ganesha knew of its clients, unless that was done before. The lock is held, and none runs.
func (s *Server) keepClients() error {
	if _, err := os.Lstat(s.path(heldName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Rename(s.path(recoveryName), s.path(heldName))
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Mkdir(s.path(heldName), 0o700) // it had no clients
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncDir(s.cfg.Dir)
}

// Serve starts ganesha again with the clients that it had when it was held, whose addresses may be others now. One that runs is
// started anew.
func (s *Server) Serve(ctx context.Context, moved map[netip.Addr]netip.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := s.wanted
	if err := s.end(); err != nil {
		return err
	}
	if s.wanted = wanted; !wanted {
		return muster.Errorf(muster.EUnavailable, "no volume is open to the machines that are to go on").Because(muster.ReasonVolumeFailed)
	}
	if err := s.keepClients(); err != nil { // a server was killed before it had done that
		return err
	}
	if err := restoreClients(s.path(heldName), s.path(recoveryName), moved); err != nil {
		return err
	}
	s.held = false
	if err := s.apply(ctx); err != nil {
		s.held = true
		return err
	}
	return nil
}

// justServed reports whether ganesha runs and has nearly all of its grace period before it.
func (s *Server) justServed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child != nil && s.child.alive() && !s.started.IsZero() && s.cfg.Clock.Now().Sub(s.started) < fresh
}

// forgetClients has the next ganesha wait for nobody. The lock is held, and none runs.
func (s *Server) forgetClients() error {
	return errors.Join(os.RemoveAll(s.path(recoveryName)), os.Mkdir(s.path(recoveryName), 0o700))
}
