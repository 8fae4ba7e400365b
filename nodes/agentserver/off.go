package agentserver

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// orders are the machines that are to go off, and when each was heard last, also by a
// word that was refused. Memory only: who wants a machine off says so until it is.
type orders struct {
	mu    sync.Mutex
	off   map[muster.MachineID]*offOrder
	heard map[muster.MachineID]time.Time
}

// offOrder is a machine that is to go off.
type offOrder struct {
	of   pki.NodeIdentity // what it ran when that was said
	told chan struct{}    // closed once its agent was answered so
	once sync.Once
}

func newOrders() *orders {
	return &orders{off: map[muster.MachineID]*offOrder{}, heard: map[muster.MachineID]time.Time{}}
}

// hears notes that a machine spoke.
func (o *orders) hears(id muster.MachineID, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.heard[id] = now
}

// tell says whether the machine is to go off, to its agent, which hears it now.
func (o *orders) tell(id muster.MachineID) bool {
	o.mu.Lock()
	order := o.off[id]
	o.mu.Unlock()
	if order == nil {
		return false
	}
	order.once.Do(func() { close(order.told) })
	return true
}

// begins forgets an order that was for what the machine ran before.
func (o *orders) begins(id pki.NodeIdentity) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if order := o.off[id.Machine]; order != nil && order.of != id {
		delete(o.off, id.Machine)
	}
}

// withdraw forgets an order that nobody was told.
func (o *orders) withdraw(id muster.MachineID, order *offOrder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.off[id] == order {
		delete(o.off, id)
	}
}

// SwitchOff makes a machine's agent switch it off, as soon as it speaks; a listening
// one speaks at once. It holds, in this server's memory, until the machine joins with
// another attempt than it has now. An agent may take no notice: that a machine is off
// shows elsewhere.
func (s *Server) SwitchOff(ctx context.Context, id muster.MachineID) error {
	_, err := s.switchOff(ctx, id)
	return err
}

func (s *Server) switchOff(ctx context.Context, id muster.MachineID) (*offOrder, error) {
	var m muster.Machine
	err := s.c.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		m, err = tx.Machine(id)
		return err
	})
	if err != nil {
		return nil, err
	}
	of := pki.NodeIdentity{Machine: id, Cluster: m.Cluster, Node: m.Node, Attempt: m.Attempt}
	s.orders.mu.Lock()
	order := s.orders.off[id]
	if order == nil || order.of != of {
		order = &offOrder{of: of, told: make(chan struct{})}
		s.orders.off[id] = order
	}
	s.orders.mu.Unlock()
	if m.Cluster != "" {
		s.Speak(m.Cluster, m.Node)
	}
	return order, nil
}

// Off asks a machine's agent to switch it off, and returns nil once the agent was told.
// It is power.Agent. Returns EUnavailable when nothing was heard of the agent for three
// of its intervals, and ETimeout when it does not come for its answer: a machine that
// hangs cannot switch itself off.
func (s *Server) Off(ctx context.Context, id muster.MachineID) (err error) {
	order, err := s.switchOff(ctx, id)
	if err != nil {
		return err
	}
	silence := 3 * max(s.HeartbeatInterval(), s.c.IntervalBooting)
	heard := s.Heard(id)
	// An agent that does not come now must not find the order when the machine was
	// started for somebody.
	defer func() {
		if err != nil {
			s.orders.withdraw(id, order)
		}
	}()
	if heard.IsZero() || s.c.Clock.Now().Sub(heard) > silence {
		return muster.Errorf(muster.EUnavailable, "%s: its agent was not heard for %v, and cannot switch it off", id, silence).Because(muster.ReasonNodeUnreachable)
	}
	select {
	case <-order.told:
		return nil
	case <-s.c.Clock.After(silence):
		return muster.Errorf(muster.ETimeout, "%s: its agent did not come for the order to switch it off", id).Because(muster.ReasonNodeUnreachable)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Heard reports when a machine's agent last spoke to this server, also when that was refused;
// zero: not since the server started.
func (s *Server) Heard(id muster.MachineID) time.Time {
	s.orders.mu.Lock()
	defer s.orders.mu.Unlock()
	return s.orders.heard[id]
}

// over tells an agent that its attempt is over, and whether its machine is to go off.
func (s *Server) over(w http.ResponseWriter, id pki.NodeIdentity) {
	wire.WriteError(w, http.StatusGone, wire.Refusal{Error: errGone, PowerOff: s.orders.tell(id.Machine)})
}
