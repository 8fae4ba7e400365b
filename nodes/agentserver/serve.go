package agentserver

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"
)

// How long an agent's connection may take for what.
const (
	headTime   = 10 * time.Second // for the handshake, and for what comes before a request's body
	bodyTime   = time.Minute      // until all of a request is there
	answerTime = time.Minute      // until the agent has taken the answer
	idleTime   = 5 * time.Minute  // between two requests
	endTime    = 300 * time.Millisecond
	acceptWait = 100 * time.Millisecond
	headBytes  = 16 << 10 // of a request, besides its body
)

// Serve answers agents that connect to ln, until ctx ends, and closes ln. What
// goes on then has a moment to end.
func (s *Server) Serve(ctx context.Context, ln net.Listener, c *tls.Config) error {
	defer ln.Close()
	// HTTP/2 would multiplex what few agents say at once, and costs an idle
	// connection more.
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	srv := &http.Server{
		Handler: http.HandlerFunc(s.serve), TLSConfig: c, Protocols: http1, ConnContext: withCaller,
		ReadHeaderTimeout: headTime, ReadTimeout: bodyTime, WriteTimeout: bodyTime + answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: headBytes,
		// Broken handshakes, which strangers must not fill the disk with.
		ErrorLog: slog.NewLogLogger(s.c.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		s.Close()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			_ = srv.Close()
		}
	})
	err := srv.ServeTLS(stubborn{ln, s.c.Log}, "", "")
	if !stop() {
		<-ended
		return nil
	}
	return errors.Join(err, srv.Close())
}

// serve answers a request that came over a connection. A defect ends that
// connection alone.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			s.c.Log.Error("panic", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			panic(http.ErrAbortHandler)
		}
	}()
	s.meet(r)
	s.ServeHTTP(w, r)
}

// stubborn goes on accepting: there may be too many open files now, or no
// memory, and agents that try again later.
type stubborn struct {
	net.Listener
	log *slog.Logger
}

// Accept returns the next connection; its only error is net.ErrClosed.
func (l stubborn) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return c, err
		}
		l.log.Warn("agent listener failed", "error", err)
		time.Sleep(acceptWait)
	}
}
