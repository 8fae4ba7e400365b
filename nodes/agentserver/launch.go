package agentserver

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// maxEnd is how long the word on a launch may be, besides what was printed.
const maxEnd = 16 << 10

// launched takes the outcome of a launch: one line of JSON, and what the
// program printed.
func (s *Server) launched(w http.ResponseWriter, r *http.Request) {
	id, _, ok := s.who(w, r)
	if !ok {
		return
	}
	if s.c.Launched == nil {
		wire.WriteError(w, http.StatusConflict, errNoLaunch)
		return
	}
	in := bufio.NewReaderSize(http.MaxBytesReader(w, r.Body, wire.MaxLaunchBytes+maxEnd+1), maxEnd)
	var end wire.LaunchEnd
	head, err := in.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(head, &end)
	}
	if err != nil || end.ID == "" || len(end.ID) > maxName {
		wire.WriteError(w, http.StatusBadRequest, muster.Errorf(muster.EInvalid, "the first line does not say how the launch went").Because(muster.ReasonBadSyntax))
		return
	}
	end.Error = text(end.Error, 4*maxText)
	next, err := s.c.Launched(r.Context(), id, end, in)
	var e *muster.Error
	switch {
	case errors.As(err, &e) && e.Code == muster.EConflict:
		wire.WriteError(w, http.StatusConflict, e)
	case err != nil:
		s.fail(w, r, err)
	default:
		answer(w, wire.LaunchReply{Next: next})
	}
}

var errNoLaunch = muster.Errorf(muster.EConflict, "nobody waits for this launch").Because(muster.ReasonAttemptOver)

// Speak makes a node's agent report at once: there is an answer for it. If it does
// not listen just now, it hears of it when it does.
func (s *Server) Speak(cluster muster.ClusterID, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.word(nodeKey{cluster, node}) <- struct{}{}:
	default: // it will hear
	}
}

// nextWord reports when the node is to report.
func (s *Server) nextWord(key nodeKey) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.word(key)
}

// word is where one word waits; the lock is held.
func (s *Server) word(key nodeKey) chan struct{} {
	c := s.spoken[key]
	if c == nil {
		c = make(chan struct{}, 1)
		s.spoken[key] = c
	}
	return c
}
