package fake

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// Trouble is what ails a machine that runs.
type Trouble string

// Troubles. A machine keeps its trouble until it is switched off or mended.
const (
	TroubleNone Trouble = ""
	// TroubleHang: it is on and does nothing. Its agent is silent, its SSH
	// port takes connections and never says a word, its jobs stand still.
	TroubleHang Trouble = "hang"
	// TroubleAgent: only its agent is dead. SSH and the scheduler's daemon live.
	TroubleAgent Trouble = "agent"
	// TroubleCut: it works and nothing reaches it, nor it anything.
	TroubleCut Trouble = "cut"
)

// life is the part of a machine that faults change; the world's mutex guards it.
type life struct {
	up                bool // the boot has come to its end and sshd answers
	still             bool // its provider was told to freeze it
	partial, loaded   bool // it waits for a saved state; it has one, and has not gone on from it
	trouble           Trouble
	leaving           string        // it goes down in order: reboot, poweroff
	turned            chan struct{} // closed when the two above change
	fences            int           // fences that fail yet
	tests             int           // tests that fail yet; negative: all
	lies              int           // cleanings that lie yet
	dirt              int           // cleanings that fail yet
	starts, cleanings int           // so many were tried
	fenced            int
	tested            int
	shells            []*console // that are open
	memory            memory     // what it would be saved with
	going             time.Time  // since when it runs, after it stood still last
	consoles          []string   // what it printed since it was switched on, the newest last
}

// turn changes a machine's trouble; the mutex is held.
func (m *Machine) turn(t Trouble, leaving string) {
	m.trouble, m.leaving = t, leaving
	if m.turned != nil {
		close(m.turned)
	}
	m.turned = make(chan struct{})
}

// state of an agent's world: what ails its machine, how it is leaving, and a
// channel that closes when that changes.
func (m *Machine) feel() (t Trouble, leaving string, turned <-chan struct{}) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	return m.trouble, m.leaving, m.turned
}

// Trouble reports what ails the machine: agents of other tests ask.
func (m *Machine) Trouble() Trouble {
	t, _, _ := m.feel()
	return t
}

// Facts of the machine.
func (m *Machine) Facts() muster.Facts { return m.facts }

// Ail gives a running machine a trouble, or mends it with TroubleNone. It does
// nothing to one that is off.
func (w *World) Ail(id muster.MachineID, t Trouble) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.byID[id]
	if m.state != provider.StateRunning || m.trouble == t {
		return
	}
	m.turn(t, m.leaving)
	if t == TroubleHang || t == TroubleCut {
		w.sched.silent(id)
	} else {
		w.sched.speaks(id)
	}
}

// stand makes a machine stand still with all that it has in memory, or go on; the mutex is held.
func (w *World) stand(m *Machine, still bool) {
	if still {
		m.memory.Ran = m.ran()
	}
	if m.still = still; still {
		m.turn(TroubleHang, m.leaving)
		w.sched.silent(m.id)
		return
	}
	m.going = w.o.Clock.Now()
	m.turn(TroubleNone, m.leaving)
	w.sched.speaks(m.id)
}

// ailAttempt is Ail for a machine that still runs an attempt.
func (w *World) ailAttempt(m *Machine, attempt int64, t Trouble) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.state == provider.StateRunning && m.attempt == attempt {
		m.turn(t, m.leaving)
		w.sched.silent(m.id)
	}
}

// Hang makes the machine stay on and do nothing any more.
func (w *World) Hang(id muster.MachineID) { w.Ail(id, TroubleHang) }

// KillAgent ends only the machine's agent.
func (w *World) KillAgent(id muster.MachineID) { w.Ail(id, TroubleAgent) }

// Cut takes the machine off its networks.
func (w *World) Cut(id muster.MachineID) { w.Ail(id, TroubleCut) }

// Mend ends the machine's trouble: it goes on as if nothing had been.
func (w *World) Mend(id muster.MachineID) { w.Ail(id, TroubleNone) }

// Leave shuts the machine down in order, as a reboot (or poweroff) from
// inside does: its agent says so first, if that still can. The machine is off
// then: nothing here starts by itself.
func (w *World) Leave(id muster.MachineID, how string) {
	w.mu.Lock()
	m := w.byID[id]
	if m.state != provider.StateRunning {
		w.mu.Unlock()
		return
	}
	attempt := m.attempt
	m.turn(m.trouble, how)
	deaf := !m.up || m.trouble != TroubleNone || w.o.Agent != nil
	goodbye := w.o.Goodbye
	healthy := m.up && m.trouble == TroubleNone
	w.mu.Unlock()
	if !deaf {
		return // the agent says goodbye and then ends it
	}
	if goodbye != nil && healthy {
		goodbye(m, attempt, how)
	}
	w.end(m, attempt)
}

// end switches a machine off that still runs an attempt.
func (w *World) end(m *Machine, attempt int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.state == provider.StateRunning && m.attempt == attempt {
		m.halt()
		w.tell(m.id)
	}
}

// FailFences makes the next n fences of the machine fail: it goes on running.
func (w *World) FailFences(id muster.MachineID, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id].fences = n
}

// FailTests makes the next n tests of the machine find something; all of them
// when n is negative.
func (w *World) FailTests(id muster.MachineID, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id].tests = n
}

// LieClean makes the next n cleanings of the machine say that they erased
// something that is still there. Dirty goes on listing it.
func (w *World) LieClean(id muster.MachineID, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id].lies = n
}

// FailCleans makes the next n cleanings of the machine fail.
func (w *World) FailCleans(id muster.MachineID, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id].dirt = n
}

// PowerCut takes the power from these machines, or from all of them. What runs
// there is gone, and nothing starts, until PowerBack.
func (w *World) PowerCut(ids ...muster.MachineID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.machines {
		if len(ids) > 0 && !slices.Contains(ids, m.id) {
			continue
		}
		m.dark = true
		if m.state != provider.StateOff {
			m.halt()
			w.tell(m.id)
		}
	}
}

// PowerBack ends a power cut. Machines stay off until somebody boots them.
func (w *World) PowerBack() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.machines {
		m.dark = false
	}
}

// Slow makes every call of a provider take this long.
func (w *World) Slow(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow = d
}

// FailCalls makes this share of the provider's calls fail, from 0 to 1.
func (w *World) FailCalls(rate float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failCalls = rate
}

// Fenced and Tested count how often that was done to the machine with success.
func (w *World) Fenced(id muster.MachineID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byID[id].fenced
}

// Tested counts the tests that the machine passed or failed.
func (w *World) Tested(id muster.MachineID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byID[id].tested
}

// call is the way of every call of a provider to the hardware.
func (w *World) call(ctx context.Context) error {
	w.mu.Lock()
	slow, bad := w.slow, w.failCalls > 0 && w.rand.Float64() < w.failCalls
	w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.pause(ctx, slow); err != nil {
		return err
	}
	if bad {
		return muster.Errorf(muster.EUnavailable, "the provider does not answer")
	}
	return nil
}

func (w *World) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.o.Clock.After(d):
		return nil
	}
}
