package fake

import (
	"bytes"
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// written is what a machine wrote of its memory when it hibernated.
type written struct {
	key    []byte
	memory memory
}

// hibernate writes the memory of a machine to its disk and switches it off.
func (w *World) hibernate(m *Machine, attempt int64, o wire.HibernateOrder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.state != provider.StateRunning || m.attempt != attempt {
		return
	}
	w.lives++
	m.memory.Ran = m.ran()
	keeps := m.memory
	keeps.Life = w.lives
	if keeps.Head {
		keeps.Jobs, keeps.Frozen = w.sched.memory(keeps.Cluster)
	}
	m.written = &written{bytes.Clone(o.Memory.Key), keeps}
	m.halt()
	w.tell(m.id)
}

// KeepAwake makes a machine one that cannot hibernate, for this reason; "": it can.
func (w *World) KeepAwake(id muster.MachineID, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id].awake = why
}

// Spoil makes what a machine wrote of its memory unreadable.
func (w *World) Spoil(id muster.MachineID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id].written = nil
}

// staysAwake says why a machine cannot hibernate.
func (m *Machine) staysAwake() string {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	return m.awake
}

// wakes takes what a machine wrote of its memory, for a boot that goes on from there; the mutex is held.
// Whatever boots, it is gone afterwards.
func (m *Machine) wakes(b *provider.Boot) (memory, bool) {
	x := m.written
	m.written = nil
	if x == nil || b.Memory == nil || len(b.Memory.Key) == 0 || !bytes.Equal(x.key, b.Memory.Key) {
		return memory{}, false
	}
	return x.memory, true
}

// goOn makes a machine that has booted what it was when it hibernated.
func (m *Machine) goOn(ctx context.Context, keeps memory) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	m.memory, m.going = keeps, m.w.o.Clock.Now()
	m.w.resumed[keeps.Life]++
	if keeps.Head {
		m.w.sched.recall(keeps)
	}
}
