package boot

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/agent/hibernate"
	"github.com/muster-hpc/muster/wire"
)

// goOn goes on from the memory that the machine wrote when it hibernated. Whatever goes wrong, that
// is void from then on: the machine is started anew as any other.
func (m *Machine) goOn(ctx context.Context, o *wire.BootTask) error {
	m.state = StageMemory
	err := muster.Errorf(muster.EInvalid, "this program cannot go on from memory").WithHint("use the initramfs of this server's version")
	if m.GoOn == nil {
		return &failure{StageMemory, "memory", true, err}
	}
	m.Console.Say("memory: going on from what is on the disk %s", o.Memory.Disk.Serial)
	return &failure{StageMemory, "memory", true, m.GoOn(ctx, o)}
}

// memoryDrivers are what an encrypted part of a disk needs.
func memoryDrivers() []string { return []string{"dm_mod", "aesni_intel", "xts", "dm_crypt"} }

// memoryOf has this machine go on.
func memoryOf(drivers *Drivers, clock muster.Clock) func(context.Context, *wire.BootTask) error {
	return func(ctx context.Context, o *wire.BootTask) error {
		drivers.Names(memoryDrivers()...)
		for end := clock.Now().Add(appear); hibernate.Absent(facts.Source{}.Disks(), *o.Memory) && clock.Now().Before(end); {
			if err := sleep(ctx, clock, nicPoll); err != nil {
				return err
			}
		}
		a, err := hibernate.OpenArea(facts.Source{}.Disks(), *o.Memory)
		if err != nil {
			return err
		}
		holds, err := a.HoldsMemory()
		if err == nil && !holds {
			err = muster.Errorf(muster.ECorrupt, "no memory is on the disk: another key wrote it, or it was used")
		}
		if err != nil {
			return err
		}
		if err := a.PutNote(wire.HostJoin{Machine: o.Machine, Attempt: o.Attempt, Token: o.Bootstrap.Token}); err != nil {
			return err
		}
		number, err := a.Number()
		if err != nil {
			return err
		}
		return hibernate.Kernel{}.GoOn(number)
	}
}
