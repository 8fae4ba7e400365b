package agent

import (
	"bufio"
	"context"
	"io"
	"sync"

	"github.com/muster-hpc/muster/wire"
)

// saves sends the node's root file system when the server asks for it: each order once,
// one at a time.
type saves struct {
	mu   sync.Mutex
	id   string // of the newest order
	busy bool
}

// saveChunk is how much of the root file system is sent at once.
const saveChunk = 256 << 10

// save takes an order from the server.
func (a *agent) save(o *wire.SaveOrder) {
	if o == nil || a.Root == nil {
		return
	}
	s := &a.saves
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.id == o.ID {
		return
	}
	s.id, s.busy = o.ID, true
	a.jobs.Go(func() {
		err := a.sendRoot(o.ID)
		s.mu.Lock()
		s.busy = false
		if err != nil && a.ctx.Err() == nil && !refused(err) {
			s.id = "" // it is asked for again, if somebody still wants it
		}
		s.mu.Unlock()
		if err != nil {
			a.Log.Warn("sending root file system failed", "save", o.ID, "error", err)
		} else {
			a.Log.Info("root file system sent", "save", o.ID)
		}
	})
}

// sendRoot sends the tree while it is being read.
func (a *agent) sendRoot(id string) error {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	out, in := io.Pipe()
	done := make(chan struct{})
	a.jobs.Go(func() {
		defer close(done)
		b := bufio.NewWriterSize(in, saveChunk)
		err := a.Root(ctx, b)
		if err == nil {
			err = b.Flush()
		}
		_ = in.CloseWithError(err) // nil ends it in order
	})
	err := a.link.Save(ctx, id, out)
	_ = out.Close() // whoever still writes ends
	cancel()
	<-done
	return err
}
