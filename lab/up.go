package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/process"
	"github.com/muster-hpc/muster/lab/machine"
	"github.com/muster-hpc/muster/lab/vswitch"
	"github.com/muster-hpc/muster/provider/local/network"
	"github.com/muster-hpc/muster/vm/accel"
)

// MachineArgument is the hidden command that is one machine: its arguments are this
// word and the machine's directory.
const MachineArgument = "lab-machine"

// portsFile is there once the ports were set for the first time.
const portsFile = "ports-set"

// startMachine is how long the process of a machine may take until it answers.
const startMachine = 30 * time.Second

// Up makes the lab, or what is missing of it. want is nil for the lab that is there.
// program is the one that runs machines: this one. Returns EConflict when the lab
// that is there is of another make.
func (l *Lab) Up(ctx context.Context, want *Config, program string, told Told) error {
	if err := root(); err != nil {
		return err
	}
	c, fresh, err := l.begin(ctx, want)
	if err != nil {
		return err
	}
	lock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if c, err = l.settle(ctx, c, fresh); err != nil {
		return err
	}
	if err := l.account(); err != nil {
		return err
	}
	list := l.plan(c)
	told.say("network: namespaces %s and %s", l.Namespace(), l.wires())
	if err := l.wiring(c, list); err != nil {
		return err
	}
	if err := l.plugIn(ctx, c, list, told); err != nil {
		return err
	}
	return l.rackUp(ctx, list, program, told)
}

// begin finds out what lab this is to be, and makes the directory of one that is
// not there. Nothing that is not a lab's is taken for one.
func (l *Lab) begin(ctx context.Context, want *Config) (Config, bool, error) {
	have, err := l.Config()
	switch {
	case err == nil && want != nil && len(have.differences(*want)) > 0:
		return have, false, l.otherMake(have, *want)
	case err == nil:
		return have, false, checkTools(ctx, have)
	case muster.CodeOf(err) != muster.ENotFound:
		return have, false, err
	case want == nil:
		return have, false, err
	}
	if err := want.Check(); err != nil {
		return *want, false, err
	}
	if err := checkTools(ctx, *want); err != nil {
		return *want, false, err
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return *want, false, err
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !cutShort(e.Name()) }) {
		return *want, false, muster.Errorf(muster.EConflict, "%s is not empty, and no lab", l.dir).WithHint("use another --dir")
	}
	return *want, true, os.MkdirAll(l.dir, 0o700)
}

// otherMake refuses to make one lab into another.
func (l *Lab) otherMake(have, want Config) error {
	return muster.Errorf(muster.EConflict, "the lab in %s is of another make: it has %s", l.dir, strings.Join(have.differences(want), "; ")).
		WithHint("run 'muster lab down --dir %s' first, or 'muster lab up --dir %s' without saying what it consists of", l.dir, l.dir)
}

// settle writes down what the lab is before anything of it is made.
func (l *Lab) settle(ctx context.Context, c Config, fresh bool) (Config, error) {
	if have, err := l.Config(); err == nil {
		if fresh && len(have.differences(c)) > 0 { // another Up was quicker
			return have, l.otherMake(have, c)
		}
		return have, nil
	}
	c.KVM = !c.NoKVM && accel.KVMWorks(ctx)
	return c, c.write(l.dir)
}

// plugIn starts the switch and connects everything to it.
func (l *Lab) plugIn(ctx context.Context, c Config, list []machine.Config, told Told) error {
	wires, err := network.OpenNamespace(l.wires(), false)
	if err != nil {
		return err
	}
	defer func() { _ = wires.Close() }()
	all := ports(list, c)
	told.say("switch: %d ports", len(all))
	s, err := vswitch.Start(ctx, vswitch.Config{Dir: l.switchDir(), Lab: l.id, In: wires.Do}, all...)
	if err != nil {
		return err
	}
	// Once ports were set they are as the server wants them: nothing that comes up
	// again touches them.
	mark := filepath.Join(l.switchDir(), portsFile)
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := firstSettings(ctx, s, list, c); err != nil {
		return err
	}
	return atomicfile.Replace(mark, nil, 0o600)
}

// rackUp starts the machines that are not there, and waits until all answer.
func (l *Lab) rackUp(ctx context.Context, list []machine.Config, program string, told Told) error {
	wires, err := network.OpenNamespace(l.wires(), false)
	if err != nil {
		return err
	}
	defer func() { _ = wires.Close() }()
	told.say("machines: %d", len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for _, m := range list {
		g.Go(func() error {
			if err := l.machineUp(ctx, m, program, wires); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
			return l.slow(ctx, m.Name)
		})
	}
	return g.Wait()
}

func (l *Lab) machineUp(ctx context.Context, m machine.Config, program string, wires *network.Namespace) error {
	dir := l.machineDir(m.Name)
	if _, err := machine.Ask(ctx, dir, machine.Request{Do: machine.DoStatus}); err == nil {
		return nil
	}
	if err := m.Write(dir); err != nil {
		return err
	}
	start := func() (*process.Process, error) {
		return process.Start(ctx, process.Spec{Args: []string{program, MachineArgument, dir}, Log: machine.Log(dir),
			Record: machine.Record(dir), Lab: l.id, In: wires.Do})
	}
	p, err := process.Find(machine.Record(dir))
	// One that is there and does not answer comes up, or goes down: somebody else told
	// it to, and was killed himself.
	found := err == nil
	if errors.Is(err, os.ErrNotExist) {
		p, err = start()
	}
	if err != nil {
		return err
	}
	defer func() { p.Close() }()
	for end := time.After(startMachine); ; {
		if _, err := machine.Ask(ctx, dir, machine.Request{Do: machine.DoStatus}); err == nil {
			return nil
		}
		switch {
		case p.Alive():
		case found:
			found = false
			next, err := start()
			if err != nil {
				return err
			}
			p.Close()
			p = next
		default:
			return muster.Errorf(muster.EUnavailable, "the process of %s ended at once", m.Name).WithHint("see %s", machine.Log(dir))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return muster.Errorf(muster.ETimeout, "%s does not answer", m.Name).WithHint("see %s", machine.Log(dir))
		case <-time.After(10 * time.Millisecond):
		}
	}
}
