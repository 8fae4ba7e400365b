package daemon

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// newer is how a server knows that another one goes on with this site's records: a node
// has a certificate that only that one can have signed, as its attempt is of a later epoch.
// The zero value: there is none.
type newer struct {
	Epoch   int64            `json:"epoch"`
	Machine muster.MachineID `json:"machine"`
	Cluster muster.ClusterID `json:"cluster"`
	Node    string           `json:"node"`
	Attempt int64            `json:"attempt"`
	At      time.Time        `json:"at"`
}

// String names what proves it.
func (n newer) String() string {
	return fmt.Sprintf("machine %s came on %s with a certificate of epoch %d, as node %s of cluster %s, attempt %d",
		n.Machine, n.At.UTC().Format("2006-01-02 15:04:05 UTC"), n.Epoch, n.Node, n.Cluster, n.Attempt)
}

// succession is whether another server has taken this one's place.
type succession struct {
	lost context.Context //nolint:containedctx // ends with this server's place
	lose context.CancelFunc

	mu    sync.Mutex
	newer newer
	kept  bool // newer is written down
}

func newSuccession() *succession {
	s := &succession{}
	s.lost, s.lose = context.WithCancel(context.Background())
	return s
}

// over reports whether another server has taken this one's place.
func (s *succession) over() bool { return s.lost.Err() != nil }

// met looks at a node that has proven who it is, whether this server's records know it or
// not. One of a later epoch ends this server's part at once: nothing is recorded, started,
// ended or handed out any more. That is written down then, so that the next start ends, too;
// where it cannot be, the next such node has it tried again.
func (s *Server) met(id pki.NodeIdentity) {
	epoch := muster.EpochOf(id.Attempt)
	if epoch <= s.epoch {
		return
	}
	x := s.succession
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.kept && epoch <= x.newer.Epoch {
		return
	}
	if epoch > x.newer.Epoch {
		x.newer = newer{Epoch: epoch, Machine: id.Machine, Cluster: id.Cluster, Node: id.Node, Attempt: id.Attempt, At: s.cfg.Clock.Now().UTC()}
	}
	first := !x.over()
	s.db.Freeze(supersededBy(x.newer.Epoch, s.epoch))
	x.lose()
	err := keepNewer(s.cfg.State, x.newer)
	x.kept = err == nil
	if err != nil {
		s.log.Error("recording superseded state failed", "error", err)
	}
	if first {
		s.log.Error("server superseded: read-only from now on",
			"epoch", s.epoch, "other_epoch", epoch, "because", x.newer.String())
	}
}

// keepNewer writes down in a state directory that its server has lost its place.
func keepNewer(dir string, n newer) error {
	at, err := readSite(dir)
	if err != nil {
		return err
	}
	if at == nil {
		return muster.Errorf(muster.ENotFound, "%s is not there", filepath.Join(dir, siteFile))
	}
	at.Newer = n
	return at.write(dir)
}

// supersededBy is what callers are told who want something changed. Whose node it was that
// came is not for all of them.
func supersededBy(other, own int64) *muster.Error {
	return muster.Errorf(muster.EConflict, "another server has taken this one's place: it is of epoch %d, and this one of epoch %d", other, own).Because(muster.ReasonServerReplaced).
		WithHint("use that server, and stop this one; if this one is to go on, its next start says how")
}

// superseded reports why this server changes nothing any more; nil: it does.
func (s *Server) superseded() error {
	if !s.succession.over() {
		return nil
	}
	s.succession.mu.Lock()
	defer s.succession.mu.Unlock()
	return supersededBy(s.succession.newer.Epoch, s.epoch)
}

// current tells the health page whether this server acts.
func (s *Server) current(context.Context) wire.HealthPart {
	if !s.succession.over() {
		return wire.HealthPart{Name: "epoch", OK: true}
	}
	return wire.HealthPart{Name: "epoch", Text: "another server has taken this one's place: nothing is started, ended or changed here"}
}

// whileCurrent is ctx until another server takes this one's place.
func (s *Server) whileCurrent(ctx context.Context) (acting context.Context, cancel context.CancelFunc) {
	acting, stop := context.WithCancel(ctx)
	unhook := context.AfterFunc(s.succession.lost, stop)
	return acting, func() { unhook(); stop() }
}

// whileActing runs a part of the server that acts. That it ends because another server has
// taken this one's place ends nothing else.
func (s *Server) whileActing(acting context.Context, run func(context.Context) error) error {
	if err := run(acting); !s.succession.over() {
		return err
	}
	return nil
}

// meeting has the nodes met that speak to a handler over TLS, which answers nothing once
// this server has lost its place.
func (s *Server) meeting(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id, err := pki.NodeFromTLS(r.TLS); err == nil {
			s.met(id)
		}
		if err := s.superseded(); err != nil {
			wire.WriteError(w, http.StatusServiceUnavailable, err) // another try may meet the other server
			return
		}
		h.ServeHTTP(w, r)
	})
}

// refuseSuperseded ends a start in a directory whose server has lost its place.
func refuseSuperseded(dir string, s *site) error {
	if s == nil || s.Newer.Epoch <= s.Epoch {
		return nil
	}
	return muster.Errorf(muster.EConflict, "another server has taken the place of this one: %s, and the records here are of epoch %d", s.Newer, s.Epoch).Because(muster.ReasonServerReplaced).
		WithHint("use that server, and leave this one stopped. If this one is to go on: stop that one for good, then bring its newest backup here with `muster restore FILE --replace --state %s`, or go on with the records that are here, which know nothing of what it did: `muster adopt --state %s --yes`. Both begin an epoch above it; until then nothing is started, given or ended", dir, dir)
}
