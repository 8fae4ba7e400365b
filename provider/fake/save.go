package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/vm/save"
	"github.com/muster-hpc/muster/wire"
)

// memory is what a simulated machine has in its memory: whose node it is and, on the head, the scheduler. It counts
// while it runs.
type memory struct {
	Cluster muster.ClusterID `json:"cluster"`
	Node    string           `json:"node"`
	Head    bool             `json:"head,omitempty"`
	Life    int64            `json:"life"`        // of which it is a copy
	Ran     muster.Duration  `json:"ran_seconds"` // how long it has run
	Jobs    []wire.Job       `json:"jobs,omitempty"`
	Frozen  []string         `json:"frozen,omitempty"` // jobs that were suspended for a pause
}

// remembers notes what a machine has in its memory once its agent has a configuration.
func (w *World) remembers(m *Machine, c muster.ClusterID, head bool, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m.memory.Cluster, m.memory.Head, m.memory.Node = c, head, node
}

// saver are the virtual machines of one cluster.
type saver struct {
	w *World
	s provider.Saving
}

var _ provider.Saver = (*Provider)(nil)

// Saver are virtual machines of this world, by their nodes. Their states are files, as those of real ones.
func (p *Provider) Saver(s provider.Saving) save.Hypervisor { return &saver{p.w, s} }

// on is the host that all of them have.
func (v *saver) on() save.Host {
	return save.Host{Processor: "fake", Kernel: v.w.hostKernel(), QEMU: "fake", Machine: "fake-1", Model: "fake"}
}

func (w *World) hostKernel() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kernel
}

// ChangeHost makes the hosts of all machines others than states were saved on, until it is called with "".
func (w *World) ChangeHost(kernel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kernel = kernel
}

// Ran is how long a machine has run, since it was booted: what was saved of it goes on from there.
func (w *World) Ran(id muster.MachineID) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.byID[id].ran())
}

// ran is Ran; the mutex is held.
func (m *Machine) ran() muster.Duration {
	if m.state != provider.StateRunning || m.still {
		return m.memory.Ran
	}
	return m.memory.Ran + muster.Duration(m.w.o.Clock.Now().Sub(m.going))
}

// Resumed counts how often machines went on from the same state: more than once must never be.
func (w *World) Resumed() map[int64]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.resumed)
}

// of calls f with a node's machine; the mutex is held.
func (v *saver) of(ctx context.Context, node string, f func(m *Machine, boot *provider.Boot) error) error {
	if err := v.w.call(ctx); err != nil {
		return err
	}
	d, ok := v.s.Boots[node]
	if !ok {
		return muster.Errorf(muster.ENotFound, "no machine is known of node %s", node)
	}
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	m := v.w.byID[d.Machine]
	if m == nil || m.absent {
		return muster.Errorf(muster.ENotFound, "machine %s does not answer", d.Machine)
	}
	return f(m, d.Boot)
}

func statusOf(m *Machine, b *provider.Boot) save.Status {
	switch {
	case m.state != provider.StateRunning || m.attempt != b.Attempt:
		return save.Gone
	case m.partial:
		return save.Partial
	case m.still:
		return save.Stopped
	}
	return save.Running
}

// Observe reports what a machine does.
func (v *saver) Observe(ctx context.Context, node string) (is save.Status, err error) {
	err = v.of(ctx, node, func(m *Machine, b *provider.Boot) error { is = statusOf(m, b); return nil })
	return is, err
}

// Stop makes a machine stand still.
func (v *saver) Stop(ctx context.Context, node string) error {
	return v.of(ctx, node, func(m *Machine, b *provider.Boot) error {
		switch is := statusOf(m, b); is {
		case save.Running:
			v.w.stand(m, true)
		case save.Stopped:
		default:
			return errors.New("it is " + string(is))
		}
		return nil
	})
}

// Continue lets it go on.
func (v *saver) Continue(ctx context.Context, node string) error {
	return v.of(ctx, node, func(m *Machine, b *provider.Boot) error {
		switch is := statusOf(m, b); is {
		case save.Stopped:
			if m.loaded {
				m.loaded = false
				v.w.resumed[m.memory.Life]++
			}
			v.w.stand(m, false)
		case save.Running:
		default:
			return errors.New("it is " + string(is))
		}
		return nil
	})
}

// Save writes what a machine has in its memory.
func (v *saver) Save(ctx context.Context, node string) (save.State, error) {
	var text []byte
	err := v.of(ctx, node, func(m *Machine, b *provider.Boot) (err error) {
		if is := statusOf(m, b); is != save.Stopped {
			return errors.New("it is " + string(is))
		}
		v.w.lives++
		keeps := m.memory
		keeps.Life = v.w.lives
		if keeps.Head {
			keeps.Jobs, keeps.Frozen = v.w.sched.memory(keeps.Cluster)
		}
		text, err = json.Marshal(keeps)
		return err
	})
	if err != nil {
		return save.State{}, err
	}
	st, err := v.s.States.Write(save.NameOf(v.s.Boots[node].Boot.Cluster, node), v.s.Key.Recipient(), bytes.NewReader(text), func() error { return ctx.Err() })
	st.On = v.on()
	return st, err
}

// Verify reads what was saved.
func (v *saver) Verify(_ context.Context, node string, s save.State) error {
	return v.s.States.Verify(save.NameOf(v.s.Boots[node].Boot.Cluster, node), s)
}

// End switches it off.
func (v *saver) End(ctx context.Context, node string) error {
	return v.of(ctx, node, func(m *Machine, _ *provider.Boot) error {
		if m.state != provider.StateOff {
			m.halt()
			v.w.tell(m.id)
		}
		return nil
	})
}

// Load starts a machine with what was saved, and leaves it still.
func (v *saver) Load(ctx context.Context, node string, s save.State) error {
	if err := s.On.Same(v.on()); err != nil {
		return err
	}
	if err := v.Verify(ctx, node, s); err != nil {
		return err
	}
	if err := v.of(ctx, node, func(m *Machine, b *provider.Boot) error {
		if m.dark {
			return muster.Errorf(muster.EUnavailable, "machine %s has no power", m.id)
		}
		m.halt()
		_, m.stop = context.WithCancel(v.w.ctx)
		m.err, m.dirty, m.state, m.attempt, m.since = nil, true, provider.StateRunning, b.Attempt, v.w.o.Clock.Now()
		m.boots++
		m.partial = true
		v.w.tell(m.id)
		return nil
	}); err != nil {
		return err
	}
	var text bytes.Buffer
	var keeps memory
	err := v.s.States.Read(save.NameOf(v.s.Boots[node].Boot.Cluster, node), s, v.s.Key, &text)
	if err == nil {
		err = json.Unmarshal(text.Bytes(), &keeps)
	}
	if err != nil {
		return err
	}
	return v.of(ctx, node, func(m *Machine, b *provider.Boot) error {
		if statusOf(m, b) != save.Partial {
			return errors.New("it ended")
		}
		v.w.stand(m, true)
		m.partial, m.loaded, m.up, m.memory = false, true, true, keeps
		return nil
	})
}

// SetClock has the agent of a machine that went on from its memory join anew, as one that heard by its channel who it is.
func (v *saver) SetClock(ctx context.Context, node string) error {
	token, err := v.s.Token(ctx, node)
	if err != nil {
		return err
	}
	return v.of(ctx, node, func(m *Machine, b *provider.Boot) error {
		if is := statusOf(m, b); is != save.Running {
			return errors.New("it is " + string(is))
		}
		if token == "" {
			return nil
		}
		if m.stop != nil {
			m.stop() // an agent with an older token
		}
		ctx, cancel := context.WithCancel(v.w.ctx)
		m.stop = cancel
		boot := *b
		boot.Bootstrap.Token = token
		keeps := m.memory
		if keeps.Head {
			v.w.sched.recall(keeps)
		}
		v.w.wg.Go(func() { newAgent(m, boot, false).run(ctx) })
		return nil
	})
}

// Erase erases a state.
func (v *saver) Erase(_ context.Context, node string) error {
	r, err := v.s.States.Erase(save.NameOf(v.s.Boots[node].Boot.Cluster, node), v.w.o.Clock.Now())
	if err == nil && r.Bytes > 0 && v.s.Erased != nil {
		v.s.Erased(node, r)
	}
	return err
}

// memory are the jobs of a cluster's scheduler, and those that were suspended for a pause.
func (s *schedulers) memory(c muster.ClusterID) (jobs []wire.Job, frozen []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of(c)
	return slices.Clone(x.jobs), slices.Sorted(maps.Keys(x.frozen))
}

// recall makes the scheduler what it was when its head was saved.
func (s *schedulers) recall(m memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of(m.Cluster)
	x.jobs, x.frozen, x.pausing, x.ended = slices.Clone(m.Jobs), map[string]bool{}, true, false
	for _, id := range m.Frozen {
		x.frozen[id] = true
	}
	x.end()
	x.told()
}
