package agentserver

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// saveSilence is how long a node that sends its root file system may send nothing.
const saveSilence = time.Minute

// saved takes the root file system of a node that was asked for it.
func (s *Server) saved(w http.ResponseWriter, r *http.Request) {
	id, _, ok := s.who(w, r)
	if !ok {
		return
	}
	save := r.PathValue("id")
	if s.c.Saved == nil || save == "" || len(save) > maxName {
		wire.WriteError(w, http.StatusConflict, errNoSave)
		return
	}
	// It may take long, and may not stop.
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // the connection ends with the silence
	err := s.c.Saved(r.Context(), id, save, &hasty{r.Body, control})
	_ = control.SetWriteDeadline(time.Now().Add(answerTime))
	var e *muster.Error
	switch {
	case errors.As(err, &e) && (e.Code == muster.EConflict || e.Code == muster.EInvalid):
		wire.WriteError(w, http.StatusConflict, e)
	case err != nil:
		s.fail(w, r, err)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// hasty is a body of which every part must come within a time.
type hasty struct {
	io.Reader
	control *http.ResponseController
}

func (h *hasty) Read(p []byte) (int, error) {
	if err := h.control.SetReadDeadline(time.Now().Add(saveSilence)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return h.Reader.Read(p)
}

var errNoSave = muster.Errorf(muster.EConflict, "nobody waits for this root file system").Because(muster.ReasonAttemptOver)
