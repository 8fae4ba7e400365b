package save

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/supervisor"
)

// Machines are the virtual machines of one cluster on this host.
type Machines struct {
	Store *Store
	// Key is that of this pause.
	Key *age.X25519Identity
	// Name is what a node's state is called in the store: of this cluster alone.
	Name func(node string) string
	// Dir is where the supervisor of a node's machine has its files.
	Dir func(node string) string
	// Start starts a machine that waits for its state (qemu.Machine.Incoming), in Dir.
	Start func(ctx context.Context, node string) error
	// On is what a node's machine depends on, here and now.
	On func(ctx context.Context, node string) (Host, error)
	// Line is what the agent of a node's machine hears when it goes on, and what time it is; nil: the time alone.
	Line func(ctx context.Context, node string) (func(now time.Time) any, error)
	// Erased is given the receipt of each state that was erased, of several at once. Nil: nobody keeps it.
	Erased func(node string, r Receipt)
	Clock  muster.Clock
}

var _ Hypervisor = (*Machines)(nil)

// What QEMU says of a machine.
const (
	qemuRunning = "running"
	qemuPaused  = "paused"
	qemuWritten = "postmigrate" // stopped, and its state was written
)

// find finds the supervisor of a machine and what QEMU says of it; nil: it has none.
func (m *Machines) find(ctx context.Context, node string) (*supervisor.Supervisor, string, error) {
	k, err := supervisor.Find(m.Dir(node))
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	text, err := k.Command(ctx, "query-status", nil)
	var is struct{ Status string }
	if err == nil {
		err = json.Unmarshal(text, &is)
	}
	if err != nil {
		alive := k.Alive()
		k.Close()
		if !alive {
			return nil, "", nil
		}
		return nil, "", err
	}
	return k, is.Status, nil
}

func statusOf(qemu string) Status {
	switch qemu {
	case "":
		return Gone
	case qemuRunning:
		return Running
	case qemuPaused, qemuWritten:
		return Stopped
	}
	return Partial
}

// Observe asks QEMU.
func (m *Machines) Observe(ctx context.Context, node string) (Status, error) {
	k, is, err := m.find(ctx, node)
	if k != nil {
		k.Close()
	}
	return statusOf(is), err
}

// command has the monitors of machines that are in one of some statuses execute something, after which they are in another.
func (m *Machines) command(ctx context.Context, node, what string, then Status) error {
	k, is, err := m.find(ctx, node)
	if err != nil {
		return err
	}
	if k != nil {
		defer k.Close()
	}
	switch s := statusOf(is); {
	case s == then:
		return nil
	case s != Running && s != Stopped:
		return fmt.Errorf("it is %s", s)
	}
	if _, err := k.Command(ctx, what, nil); err != nil {
		return err
	}
	if s, err := m.Observe(ctx, node); err != nil || s != then {
		return errors.Join(fmt.Errorf("after %s it is %s", what, s), err)
	}
	return nil
}

// Stop stops its processors.
func (m *Machines) Stop(ctx context.Context, node string) error {
	return m.command(ctx, node, "stop", Stopped)
}

// Continue lets them go on.
func (m *Machines) Continue(ctx context.Context, node string) error {
	return m.command(ctx, node, "cont", Running)
}

// End ends it.
func (m *Machines) End(ctx context.Context, node string) error {
	return supervisor.End(ctx, m.Dir(node))
}

// pipe is one that takes much at once.
func pipe() (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err == nil {
		_, _ = unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 1<<20)
	}
	return r, w, err
}

// Save has QEMU write its state through the server, which encrypts it.
func (m *Machines) Save(ctx context.Context, node string) (State, error) {
	on, err := m.On(ctx, node)
	if err != nil {
		return State{}, err
	}
	k, is, err := m.find(ctx, node)
	if err != nil {
		return State{}, err
	}
	if k != nil {
		defer k.Close()
	}
	switch {
	case statusOf(is) != Stopped:
		return State{}, fmt.Errorf("it is %s", statusOf(is))
	case is == qemuWritten:
		// QEMU writes a state once. What was written before is void: nobody may load it any more.
		if err := errors.Join(m.Erase(ctx, node), m.Continue(ctx, node), m.Stop(ctx, node)); err != nil {
			return State{}, err
		}
	}
	r, w, err := pipe()
	if err != nil {
		return State{}, err
	}
	defer r.Close()
	var failed atomic.Pointer[error]
	written := make(chan error, 1)
	var st State
	go func() {
		var err error
		st, err = m.Store.Write(m.Name(node), m.Key.Recipient(), r, func() error {
			if e := failed.Load(); e != nil {
				return *e
			}
			return nil
		})
		_ = r.Close() // QEMU does not wait for a disk that is full
		written <- err
	}()
	if _, err = k.Save(ctx, w); err != nil {
		failed.Store(&err)
	}
	_ = w.Close()
	if err := errors.Join(err, <-written); err != nil {
		return State{}, err
	}
	st.On = on
	return st, nil
}

// Verify reads all of what was saved.
func (m *Machines) Verify(_ context.Context, node string, s State) error {
	return m.Store.Verify(m.Name(node), s)
}

// Load starts a QEMU on the same kind of host, and has it read its state: none of it before all of it was verified.
func (m *Machines) Load(ctx context.Context, node string, s State) error {
	on, err := m.On(ctx, node)
	if err != nil {
		return err
	}
	if err := s.On.Same(on); err != nil {
		return err
	}
	if err := m.Verify(ctx, node, s); err != nil {
		return err
	}
	if err := m.Start(ctx, node); err != nil {
		return err
	}
	k, _, err := m.find(ctx, node)
	if err != nil || k == nil {
		return errors.Join(errors.New("it ended at once"), err)
	}
	defer k.Close()
	r, w, err := pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	read := make(chan error, 1)
	go func() {
		err := m.Store.Read(m.Name(node), s, m.Key, w)
		_ = w.Close()
		read <- err
	}()
	_, err = k.Load(ctx, r)
	_ = r.Close()
	if err := errors.Join(err, <-read); err != nil {
		return errors.Join(err, m.End(context.WithoutCancel(ctx), node))
	}
	if is, err := m.Observe(ctx, node); err != nil || is != Stopped {
		return errors.Join(fmt.Errorf("with its state it is %s", is), err)
	}
	return nil
}

// NameOf is what a node's state is called in a store.
func NameOf(c muster.ClusterID, node string) string { return string(c) + "." + node }

// clockLine is what the machine's agent hears of the time.
type clockLine struct {
	Clock time.Time `json:"clock"`
}

// SetClock says to the agent of a machine, by its channel, what time it is.
func (m *Machines) SetClock(ctx context.Context, node string) error {
	line := func(now time.Time) any { return clockLine{Clock: now} }
	if m.Line != nil {
		var err error
		if line, err = m.Line(ctx, node); err != nil {
			return err
		}
	}
	k, is, err := m.find(ctx, node)
	if err != nil {
		return err
	}
	if k == nil || is != qemuRunning {
		if k != nil {
			k.Close()
		}
		return fmt.Errorf("it is %s", statusOf(is))
	}
	defer k.Close()
	return k.Tell(ctx, line(m.Clock.Now().UTC()))
}

// Erase erases its state.
func (m *Machines) Erase(_ context.Context, node string) error {
	r, err := m.Store.Erase(m.Name(node), m.Clock.Now())
	if err == nil && r.Bytes > 0 && m.Erased != nil {
		m.Erased(node, r)
	}
	return err
}
