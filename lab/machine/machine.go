package machine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/lockfile"
	"github.com/muster-hpc/muster/lab/qemu"
	"github.com/muster-hpc/muster/lab/sleep"
	"github.com/muster-hpc/muster/vm/qmp"
)

// Machine is one machine, in the process that it is. Everything that it is stands
// in one goroutine, Run's; the others ask it.
type Machine struct {
	dir    string
	config Config
	clock  muster.Clock
	log    *slog.Logger
	taps   []*sleep.Tap // as the cards; nil while there is no power
	speed  int64        // that their links were agreed to carry: bits/s

	state   State
	memo    memo
	problem string
	qemu    *qemu.Running
	current *run // of qemu
	// diskFirst tells from what this start booted.
	diskFirst bool
	tpm       *qemu.Running
	bmc       Controller
	nap       *nap
	loop      <-chan time.Time // next reset of a boot loop

	asked  chan question
	woken  chan *nap
	events chan told
}

// question is a request that waits for its answer.
type question struct {
	r      Request
	answer chan<- reply
}

type reply struct {
	a   Answer
	err error
}

// told is an event of one run of QEMU.
type told struct {
	from *run
	qmp.Event
}

// run tells runs of QEMU apart: what a former one said late counts for nothing.
type run struct{ _ byte }

// Options are what a machine's process is given.
type Options struct {
	Clock      muster.Clock
	Log        *slog.Logger
	Controller OpenController
}

// Run is the machine in a directory until ctx ends; then its power is cut. The
// calling process is in the network namespace of its ports. Returns EConflict when
// another process is this machine.
func Run(ctx context.Context, dir string, o Options) error {
	config, err := Load(dir)
	if err != nil {
		return err
	}
	lock, err := hold(ctx, filepath.Join(dir, lockFile))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	m := &Machine{dir: dir, config: config, clock: o.Clock, log: o.Log, state: Asleep,
		asked: make(chan question), woken: make(chan *nap), events: make(chan told, 64)}
	if err := m.recall(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer m.end()
	if !m.has(PowerCut) {
		if err := m.plug(); err != nil {
			return err
		}
	}
	if o.Controller != nil && config.BMC.IsValid() {
		if m.bmc, err = o.Controller(ctx, dir, config, Chassis{m}); err != nil {
			return fmt.Errorf("management controller: %w", err)
		}
		for _, f := range m.memo.Faults {
			m.tellBMC(f.Kind, true)
		}
	}
	ln, err := listen(ctx, dir)
	if err != nil {
		return err
	}
	defer ln.Close()
	go m.serve(ctx, ln)
	m.rest(ctx)
	m.live(ctx)
	return nil
}

// live is the machine's one goroutine.
func (m *Machine) live(ctx context.Context) {
	for {
		var off <-chan struct{}
		if m.qemu != nil {
			off = m.qemu.Done()
		}
		select {
		case <-ctx.Done():
			return
		case q := <-m.asked:
			err := m.handle(ctx, q.r)
			q.answer <- reply{Answer{Status: m.status()}, err}
		case n := <-m.woken:
			m.wake(ctx, n)
		case t := <-m.events:
			m.hear(ctx, t)
		case <-m.loop:
			m.loop = nil
			m.log.Info("boot loop: resetting machine")
			m.restart(ctx)
		case <-off:
			m.ended(ctx)
		}
	}
}

// ask makes the machine's goroutine do something.
func (m *Machine) ask(ctx context.Context, r Request) (Answer, error) {
	answer := make(chan reply, 1)
	select {
	case m.asked <- question{r, answer}:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	select {
	case a := <-answer:
		return a.a, a.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

func (m *Machine) handle(ctx context.Context, r Request) error {
	cut := muster.Errorf(muster.EUnavailable, "%s has no power", m.config.Name).
		WithHint("give it back: muster lab fault %s power-cut --clear", m.config.Name)
	switch r.Do {
	case DoOn:
		if m.has(PowerCut) {
			return cut
		}
		return m.on(ctx, r.Cause)
	case DoOff:
		return m.off(ctx)
	case DoReset:
		if !m.state.On() {
			return muster.Errorf(muster.EConflict, "%s is off", m.config.Name).WithHint("switch it on")
		}
		return m.reset(ctx, r.Cause)
	case DoPress:
		if m.qemu == nil {
			return nil // nobody listens
		}
		_, err := m.command(ctx, "system_powerdown", nil)
		return err
	case DoBoot:
		m.memo.BootOnce = r.Boot
		return m.keep()
	case DoFault:
		return m.inflict(ctx, r.Fault)
	case DoClear:
		return m.cure(ctx, r.Fault)
	}
	return nil
}

// become enters the state that an event leads to.
func (m *Machine) become(e event) {
	s := next(m.state, e)
	if s == m.state {
		return
	}
	m.log.Info("machine state changed", "from", string(m.state), "to", string(s))
	m.state, m.memo.Since = s, m.clock.Now()
	if err := m.keep(); err != nil {
		m.problem = err.Error()
	}
}

func (m *Machine) status() Status {
	s := Status{Machine: m.config.Name, State: m.state, Since: m.memo.Since, Class: m.config.Class, Cores: m.config.Cores, Memory: m.config.Memory,
		Rack: m.config.Rack, Position: m.config.Position, PowerOns: m.memo.PowerOns, Cause: m.memo.Cause, NICs: m.config.NICs,
		Console: ConsoleLog(m.dir), Faults: slices.Clone(m.memo.Faults), Problem: m.problem, PID: os.Getpid()}
	if m.bmc != nil {
		s.BMC = m.config.BMC
	}
	if m.qemu != nil {
		s.QEMU = m.qemu.PID()
	}
	return s
}

// recall reads what the machine remembers. It is off now, whatever it was: its
// power went with its process.
func (m *Machine) recall() error {
	m.memo.Since = m.clock.Now()
	b, err := os.ReadFile(filepath.Join(m.dir, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if m.memo, err = memoDoc.Decode(stateFile, b); err != nil {
		m.problem = "what it remembered could not be read"
	}
	m.memo.Since = m.clock.Now()
	return nil
}

func (m *Machine) keep() error {
	b, err := memoDoc.Encode(&m.memo)
	if err != nil {
		return err
	}
	return replace(filepath.Join(m.dir, stateFile), b)
}

// hold takes a lock that ends with this process.
func hold(ctx context.Context, path string) (*lockfile.Lock, error) {
	l, err := lockfile.Take(ctx, path)
	var held *lockfile.HeldError
	if errors.As(err, &held) {
		return nil, muster.Errorf(muster.EConflict, "another process is this machine").Wrap(err)
	}
	return l, err
}

// mac is the address of a card.
func (n NIC) mac() net.HardwareAddr {
	mac, _ := net.ParseMAC(n.MAC) // Load has tried it
	return mac
}
