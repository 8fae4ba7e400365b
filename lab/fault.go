package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
	"github.com/muster-hpc/muster/lab/machine"
	"github.com/muster-hpc/muster/lab/vswitch"
)

// All is the word for every machine of a lab.
const All = "all"

// Names are the machines of the lab, in order.
func (l *Lab) Names() ([]string, error) {
	c, err := l.Config()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range l.plan(c) {
		out = append(out, m.Name)
	}
	return out, nil
}

// pick reads which machines are meant.
func (l *Lab) pick(asked []string) ([]string, error) {
	have, err := l.Names()
	if err != nil {
		return nil, err
	}
	if slices.Equal(asked, []string{All}) {
		return have, nil
	}
	e := muster.Errorf(muster.ENotFound, "the lab has no such machine").WithHint("it has %s to %s", have[0], have[len(have)-1])
	for _, n := range asked {
		if slices.Contains(have, n) {
			continue
		}
		p := muster.Problem{Field: n, Message: "there is no such machine"}
		if near := suggest.Of(n, have); near != "" {
			p.Hint = "did you mean " + near + "?"
		}
		e.Problems = append(e.Problems, p)
	}
	if len(e.Problems) > 0 {
		return nil, e
	}
	return asked, nil
}

// Fault makes or clears a fault of machines (or of All), and reports how they are
// then.
func (l *Lab) Fault(ctx context.Context, machines []string, f machine.Fault, clear bool) ([]machine.Status, error) {
	do := machine.DoFault
	if clear {
		do = machine.DoClear
	}
	return l.each(ctx, machines, func(name string) (machine.Status, error) {
		s, err := machine.Ask(ctx, l.machineDir(name), machine.Request{Do: do, Fault: f})
		if err == nil && f.Kind == machine.SlowNIC {
			err = l.police(ctx, s)
		}
		return s, err
	})
}

// Power switches machines on or off, or resets them, as somebody does who stands
// before them.
func (l *Lab) Power(ctx context.Context, machines []string, do string) ([]machine.Status, error) {
	return l.each(ctx, machines, func(name string) (machine.Status, error) {
		return machine.Ask(ctx, l.machineDir(name), machine.Request{Do: do, Cause: "button"})
	})
}

// each does something with machines, and says everything that went wrong.
func (l *Lab) each(_ context.Context, machines []string, do func(name string) (machine.Status, error)) ([]machine.Status, error) {
	names, err := l.pick(machines)
	if err != nil {
		return nil, err
	}
	var out []machine.Status
	var failed []error
	for _, n := range names {
		s, err := do(n)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		out = append(out, s)
	}
	if len(failed) > 1 {
		var first *muster.Error
		if errors.As(failed[0], &first) {
			return out, muster.Errorf(first.Code, "%d of %d machines: %s", len(failed), len(names), first.Message).WithHint("%s", first.Hint).Wrap(errors.Join(failed...))
		}
	}
	return out, errors.Join(failed...)
}

// slow tells the switch of a machine whose links are slow: what comes to a machine
// is slowed by itself, what it sends by the switch.
func (l *Lab) slow(ctx context.Context, name string) error {
	s, err := machine.Ask(ctx, l.machineDir(name), machine.Request{Do: machine.DoStatus})
	if err != nil || !slices.ContainsFunc(s.Faults, func(f machine.Fault) bool { return f.Kind == machine.SlowNIC }) {
		return err
	}
	return l.police(ctx, s)
}

func (l *Lab) police(ctx context.Context, s machine.Status) error {
	for _, n := range s.NICs {
		rate := int64(0)
		for _, f := range s.Faults {
			if f.Kind == machine.SlowNIC && (f.NIC == "" || f.NIC == n.Use) {
				rate = f.Rate
			}
		}
		if err := vswitch.Open(l.switchDir(), l.id).Police(ctx, n.Port, rate); err != nil {
			return fmt.Errorf("limit of %s: %w", n.Port, err)
		}
	}
	return nil
}
