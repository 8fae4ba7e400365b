package agents

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// How long an agent's connection may take for what.
const (
	handshakeTime = 10 * time.Second
	headTime      = 10 * time.Second // from the first byte of a request
	bodyTime      = time.Minute      // until all of it is there
	answerTime    = time.Minute      // until the agent has taken the answer
	idleTime      = 5 * time.Minute  // between two requests
	endTime       = 300 * time.Millisecond
	headBytes     = 16 << 10 // of a request, besides its body
	mostUnread    = 64 << 10 // of a request that was answered before its end
	lingerTime    = 500 * time.Millisecond
	mostLingered  = 8 << 20 // of what is said meanwhile
)

// Serve answers agents that connect to ln, until ctx ends, and closes ln. What
// goes on then has a moment to end. It is what net/http does, for this one
// kind of client, except that a connection on which nothing is said keeps no
// buffers: ten thousand agents are silent nearly all the time.
func (s *Server) Serve(ctx context.Context, ln net.Listener, c *tls.Config) error {
	defer ln.Close()
	h, err := newHangups()
	if err != nil {
		return err
	}
	var telling sync.WaitGroup
	telling.Go(h.run)
	defer telling.Wait()
	defer h.close()
	all := &lines{m: map[*line]struct{}{}}
	defer all.end()
	stop := context.AfterFunc(ctx, func() {
		s.Close()
		_ = ln.Close()
	})
	defer stop()
	wait := time.Duration(0)
	for {
		conn, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // too many open files, most likely
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.c.Log.Warn("no agent can connect", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			continue
		}
		wait = 0
		l := &line{s: s, hangups: h, raw: conn, conn: tls.Server(conn, c)}
		all.add(l)
		go func() {
			defer all.remove(l)
			l.run()
		}()
	}
}

// lines are the connections of one listener.
type lines struct {
	mu sync.Mutex
	m  map[*line]struct{}
	wg sync.WaitGroup
}

func (a *lines) add(l *line) {
	a.wg.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.m[l] = struct{}{}
}

func (a *lines) remove(l *line) {
	_ = l.raw.Close()
	a.mu.Lock()
	delete(a.m, l)
	a.mu.Unlock()
	a.wg.Done()
}

// end closes silent connections at once, and the others when they had a moment.
func (a *lines) end() {
	shut := func(busyToo bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for l := range a.m {
			l.ending.Store(true)
			if busyToo || !l.busy.Load() {
				_ = l.raw.Close()
			}
		}
	}
	shut(false)
	done := make(chan struct{})
	go func() { a.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(endTime):
		shut(true)
		<-done
	}
}
