package gatewayproc

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/wire"
)

const sessionDoc document.Kind[muster.GatewaySession] = "gateway-session/1"

// records are the sessions that the server may not have on record yet: one file each, until it has
// their end.
type records struct {
	dir string
	log *slog.Logger

	mu    sync.Mutex
	list  map[muster.GatewaySessionID]muster.GatewaySession
	begun map[muster.GatewaySessionID]bool // the server has their beginning
}

// openRecords reads what an earlier process left. Sessions that were open then have ended with it.
func openRecords(dir string, log *slog.Logger, now time.Time) (*records, error) {
	r := &records{dir: dir, log: log, list: map[muster.GatewaySessionID]muster.GatewaySession{}, begun: map[muster.GatewaySessionID]bool{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		var x muster.GatewaySession
		if err == nil {
			x, err = sessionDoc.Decode(name, text)
		}
		if err != nil || string(x.ID)+".json" != filepath.Base(name) || strings.ContainsAny(string(x.ID), "/.") {
			log.Warn("gateway: a record cannot be read and is left where it is", "file", name, "error", err)
			continue
		}
		if x.Open() {
			x.Ended, x.End, x.Text = now, muster.GatewayEndLost, "the gateway ended; it lasted at least until its bytes were last recorded"
		}
		r.list[x.ID] = x
	}
	return r, nil
}

// put keeps a record before anything of the session passes, and when it has ended.
func (r *records) put(x muster.GatewaySession) error {
	text, err := sessionDoc.Encode(&x)
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(filepath.Join(r.dir, string(x.ID)+".json"), text, 0o600); err != nil {
		return muster.Errorf(muster.EUnavailable, "the gateway cannot keep records").Because(muster.ReasonDiskFull).WithHint("try again later").Wrap(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list[x.ID] = x
	return nil
}

// mostSent is how many records one message has.
const mostSent = 500

// send sends what the server does not have, until it has all or an error.
func (r *records) send(ctx context.Context, to func(context.Context, wire.GatewayRecords) error) error {
	for {
		batch := wire.GatewayRecords{Begun: []muster.GatewaySession{}, Ended: []muster.GatewaySession{}}
		r.mu.Lock()
		for _, id := range slices.Sorted(maps.Keys(r.list)) {
			if len(batch.Begun)+len(batch.Ended) >= mostSent {
				break
			}
			x := r.list[id]
			if !r.begun[id] {
				batch.Begun = append(batch.Begun, x)
			}
			if !x.Open() {
				batch.Ended = append(batch.Ended, x)
			}
		}
		r.mu.Unlock()
		if len(batch.Begun)+len(batch.Ended) == 0 {
			return nil
		}
		if err := to(ctx, batch); err != nil {
			return err
		}
		r.sent(batch)
	}
}

// sent forgets what the server has.
func (r *records) sent(batch wire.GatewayRecords) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range batch.Begun {
		r.begun[x.ID] = true
	}
	for _, x := range batch.Ended {
		delete(r.list, x.ID)
		delete(r.begun, x.ID)
		if err := os.Remove(filepath.Join(r.dir, string(x.ID)+".json")); err != nil {
			r.log.Warn("gateway: a record that was sent is still there", "session", x.ID, "error", err)
		}
	}
}
