package fake

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// order tells another process what becomes of one machine's agent.
type order struct {
	Machine muster.MachineID `json:"machine"`
	Facts   muster.Facts     `json:"facts,omitzero"`
	Boot    *provider.Boot   `json:"boot,omitempty"` // nil: the machine is off
	Attempt int64            `json:"attempt"`
}

// Remote runs the agents of a world in another process, so that what the
// server costs can be told from what they cost. Its Agent goes into
// Options.Agent; machines that boot before a process has connected wait for
// one.
type Remote struct {
	mu   sync.Mutex
	conn net.Conn
	enc  *json.Encoder
	runs map[muster.MachineID]order
}

// NewRemote makes a Remote to which nobody is connected.
func NewRemote() *Remote { return &Remote{runs: map[muster.MachineID]order{}} }

// Serve accepts processes that run agents, the newest of which is used, until
// ln is closed.
func (r *Remote) Serve(ln net.Listener) error {
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		r.mu.Lock()
		if r.conn != nil {
			_ = r.conn.Close()
		}
		r.conn, r.enc = conn, json.NewEncoder(conn)
		for _, o := range r.runs {
			r.send(o)
		}
		r.mu.Unlock()
	}
}

// send gives an order; r.mu is held. A process that is gone gets all of them
// when it comes back.
func (r *Remote) send(o order) {
	if r.enc == nil {
		return
	}
	if err := r.enc.Encode(o); err != nil {
		_ = r.conn.Close()
		r.conn, r.enc = nil, nil
	}
}

// Agent makes the other process run the machine's agent until ctx ends. It
// returns at once: ten thousand machines need no ten thousand goroutines here.
func (r *Remote) Agent(ctx context.Context, m *Machine, b provider.Boot) {
	o := order{Machine: m.id, Facts: m.facts, Boot: &b, Attempt: b.Attempt}
	r.mu.Lock()
	r.runs[m.id] = o
	r.send(o)
	r.mu.Unlock()
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.runs[m.id].Boot == o.Boot {
			delete(r.runs, m.id)
		}
		r.send(order{Machine: m.id, Attempt: b.Attempt})
	})
}

// RunAgents runs the agents that the server at the other end of conn asks for,
// until conn is closed or ctx ends.
func RunAgents(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	w := New(Options{})
	defer w.Close()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	type running struct {
		attempt int64
		stop    context.CancelFunc
	}
	runs := map[muster.MachineID]running{}
	dec := json.NewDecoder(conn)
	for {
		var o order
		if err := dec.Decode(&o); err != nil {
			if ctx.Err() != nil || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		old, ok := runs[o.Machine]
		if ok && old.attempt == o.Attempt && o.Boot != nil {
			continue // told again
		}
		if ok && (o.Boot != nil || old.attempt == o.Attempt) {
			old.stop()
			delete(runs, o.Machine)
		}
		if o.Boot == nil {
			continue
		}
		m := &Machine{w: w, id: o.Machine, facts: o.Facts}
		runCtx, stop := context.WithCancel(ctx)
		runs[o.Machine] = running{o.Attempt, stop}
		boot := *o.Boot
		w.wg.Go(func() { newAgent(m, boot, false).run(runCtx) })
	}
}
