package machine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/lab/qemu"
)

// defaultRate is how slow a slow link is when nobody says: bits/s.
const defaultRate = 100e6

func (m *Machine) fault(kind FaultKind) (Fault, bool) {
	i := slices.IndexFunc(m.memo.Faults, func(f Fault) bool { return f.Kind == kind })
	if i < 0 {
		return Fault{}, false
	}
	return m.memo.Faults[i], true
}

func (m *Machine) has(kind FaultKind) bool {
	_, ok := m.fault(kind)
	return ok
}

// inflict makes a fault, which stays until it is cured. It is written down first,
// so that one that was half made is whole after the next start.
func (m *Machine) inflict(ctx context.Context, f Fault) error {
	if err := f.Check(m.config); err != nil {
		return err
	}
	if f.Kind == SlowNIC && f.Rate == 0 {
		f.Rate = defaultRate
	}
	if (f.Kind == Hang || f.Kind == Crash) && !m.state.On() {
		return muster.Errorf(muster.EConflict, "%s is off: it cannot %s", m.config.Name, f.Kind).WithHint("wake it first: muster lab wake %s", m.config.Name)
	}
	if f.Kind == Crash { // it happens once; there is nothing to keep
		return m.crash(ctx)
	}
	m.memo.Faults = append(slices.DeleteFunc(m.memo.Faults, func(o Fault) bool { return o.Kind == f.Kind }), f)
	if err := m.keep(); err != nil {
		return err
	}
	return m.enforce(ctx, f, true)
}

// cure ends a fault. It is no error when there is none.
func (m *Machine) cure(ctx context.Context, f Fault) error {
	if !slices.Contains(FaultKinds(), f.Kind) {
		return f.Check(m.config)
	}
	was, ok := m.fault(f.Kind)
	if !ok {
		return nil
	}
	m.memo.Faults = slices.DeleteFunc(m.memo.Faults, func(o Fault) bool { return o.Kind == f.Kind })
	if err := m.keep(); err != nil {
		return err
	}
	return m.enforce(ctx, was, false)
}

// enforce makes a fault that is written down, or ends one that was.
func (m *Machine) enforce(ctx context.Context, f Fault, on bool) error {
	switch f.Kind {
	case Hang:
		command := "cont"
		if on {
			command = "stop"
		}
		if m.qemu == nil {
			return nil
		}
		_, err := m.command(ctx, command, nil)
		return err
	case NICDown:
		return m.setLinks()
	case SlowNIC:
		return m.setRates()
	case BMCUnreachable, BMCFalseAck:
		m.tellBMC(f.Kind, on)
	case BootLoop:
		m.loop = nil
		if on && m.state.On() {
			if f.After > 0 {
				m.loop = m.clock.After(time.Duration(f.After))
			} else if m.state == Running {
				m.restart(ctx)
			}
		}
	case PowerCut:
		return m.powerSource(ctx, !on)
	case DiskFails:
		return m.setHealth(ctx)
	}
	return nil
}

// crash kills the machine where it stands: as its controller sees it, it is on.
func (m *Machine) crash(_ context.Context) error {
	if err := m.cutPower(); err != nil {
		return err
	}
	m.problem = "it was crashed on purpose"
	m.become(broke)
	return nil
}

// powerSource takes the power away that cards and controller live from, or gives it back;
// the machine then stays off, as servers are set to that an operator guards.
func (m *Machine) powerSource(ctx context.Context, on bool) error {
	m.tellBMC(PowerCut, !on)
	if !on {
		m.rouse()
		err := m.cutPower()
		if err == nil {
			m.become(wentOff)
		}
		return errors.Join(err, m.unplug())
	}
	if len(m.taps) > 0 {
		return nil
	}
	if err := m.plug(); err != nil {
		return err
	}
	m.rest(ctx)
	return nil
}

func (m *Machine) tellBMC(kind FaultKind, on bool) {
	if m.bmc == nil {
		return
	}
	if err := m.bmc.Fault(kind, on); err != nil {
		m.problem = "controller: " + err.Error()
	}
}

// setHealth makes the NVMe disk report what the faults say.
func (m *Machine) setHealth(ctx context.Context) error {
	if m.qemu == nil || m.config.NVMe == 0 {
		return nil
	}
	warning := 0
	if m.has(DiskFails) {
		warning = 1 << 2 // not reliable any more
	}
	_, err := m.command(ctx, "qom-set", map[string]any{"path": "/machine/peripheral/" + qemu.NVMeID, "property": "smart_critical_warning", "value": warning})
	return err
}

// down reports whether the cable of the card with this use is out.
func (m *Machine) down(use string) bool {
	f, ok := m.fault(NICDown)
	return ok && f.touches(use)
}

// setLinks has every link as the faults say, at both ends.
func (m *Machine) setLinks() error {
	var errs []error
	for i, t := range m.taps {
		n := m.config.NICs[i]
		errs = append(errs, t.SetCarrier(!m.down(n.Use)))
		if m.qemu == nil {
			continue
		}
		_, err := m.command(context.Background(), "set_link", map[string]any{"name": n.Use, "up": !m.down(n.Use)})
		errs = append(errs, err)
	}
	return errors.Join(append(errs, m.setRates())...)
}

// setRates has what comes to every card as slow as the faults say. What goes out
// is slowed by the switch, which the lab tells.
func (m *Machine) setRates() error {
	var errs []error
	for _, n := range m.config.NICs {
		rate := int64(0)
		if f, ok := m.fault(SlowNIC); ok && f.touches(n.Use) {
			rate = f.Rate
		}
		errs = append(errs, shape(n.Port, rate))
	}
	return errors.Join(errs...)
}
