package machine

import (
	"context"
	"errors"
	"time"

	"github.com/muster-hpc/muster/lab/sleep"
)

// nap is one sleep of a machine: cards that listen.
type nap struct {
	stop func() // and waits until nobody reads any more
}

// plug connects the cards to their ports.
func (m *Machine) plug() error {
	for _, n := range m.config.NICs {
		t, err := sleep.OpenTap(n.Port, n.mac())
		if err != nil {
			return errors.Join(err, m.unplug())
		}
		m.taps = append(m.taps, t)
	}
	return m.setLinks()
}

// unplug takes the cards' power: their links go down.
func (m *Machine) unplug() error {
	var errs []error
	for _, t := range m.taps {
		errs = append(errs, t.Close())
	}
	m.taps, m.speed = nil, 0
	return errors.Join(errs...)
}

// agree makes the links carry so many bits/s. As on a real wire, they are down for a
// moment when that changes, so that the switch takes notice.
func (m *Machine) agree(speed int64) {
	if speed == m.speed {
		return
	}
	m.speed = speed
	for i, t := range m.taps {
		if err := t.SetSpeed(speed); err != nil {
			m.log.Warn("updating switch link state failed", "error", err)
			return
		}
		if m.down(m.config.NICs[i].Use) {
			continue // it is down, and the switch takes notice when it comes up
		}
		if err := errors.Join(t.SetCarrier(false), t.SetCarrier(true)); err != nil {
			m.log.Warn("restoring link failed", "error", err)
		}
	}
}

// rest makes the cards listen, when the machine is off and has power.
func (m *Machine) rest(ctx context.Context) {
	if m.state != Asleep || m.nap != nil || len(m.taps) == 0 {
		return
	}
	m.agree(sleep.SlowLink)
	ctx, cancel := context.WithCancel(ctx)
	n := &nap{}
	ended := make(chan struct{}, len(m.taps))
	n.stop = func() {
		cancel()
		for range cap(ended) {
			<-ended
		}
	}
	for i, t := range m.taps {
		go func() {
			defer func() { ended <- struct{}{} }()
			m.listenOn(ctx, n, t, i == 0)
		}()
	}
	m.nap = n
}

// listenOn reads one card until ctx ends. Only the management card wakes.
func (m *Machine) listenOn(ctx context.Context, n *nap, t *sleep.Tap, wakes bool) {
	for {
		err := t.Watch(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.log.Warn("Wake-on-LAN listener failed", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-m.clock.After(time.Second):
			}
			continue
		}
		if !wakes {
			continue
		}
		select {
		case m.woken <- n:
		case <-ctx.Done():
			return
		}
	}
}

// rouse ends a nap: nobody reads the cards any more.
func (m *Machine) rouse() {
	if m.nap != nil {
		m.nap.stop()
		m.nap = nil
	}
}

// wake is what the magic packet does.
func (m *Machine) wake(ctx context.Context, n *nap) {
	if n != m.nap || m.state != Asleep || m.down(Management) {
		return
	}
	if err := m.on(ctx, "magic packet"); err != nil {
		m.problem = err.Error()
		m.log.Error("wake failed", "error", err)
	}
}
