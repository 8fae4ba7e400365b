package machine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/lab/qemu"
	"github.com/muster-hpc/muster/lab/sleep"
	"github.com/muster-hpc/muster/vm/qmp"
)

// on switches the machine on; one that is on stays as it is.
func (m *Machine) on(ctx context.Context, cause string) error {
	if m.state.On() {
		return nil
	}
	m.rouse()
	m.agree(sleep.FullLink)
	if err := m.start(ctx); err != nil {
		_ = m.cutPower() // of what did start
		m.rest(ctx)
		return muster.Errorf(muster.EInternal, "%s does not start: %v", m.config.Name, err).WithHint("see %s", Log(m.dir)).Wrap(err)
	}
	m.problem = ""
	m.memo.PowerOns++
	m.memo.Cause = cause
	m.become(started)
	m.begun(ctx)
	return nil
}

// start runs QEMU, and the TPM beside it.
func (m *Machine) start(ctx context.Context) error {
	c, err := m.hardware()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(Log(m.dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := bound(c.ConsoleLog); err != nil {
		return err
	}
	if m.config.TPM {
		c.TPM = filepath.Join(m.dir, tpmSocket)
		if m.tpm, err = qemu.StartTPM(ctx, filepath.Join(m.dir, tpmDirectory), c.TPM, log); err != nil {
			return err
		}
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for i, t := range m.taps {
		f, err := t.Lend()
		if err != nil {
			return err
		}
		files = append(files, f)
		n := m.config.NICs[i]
		c.NICs = append(c.NICs, qemu.NIC{ID: n.Use, MAC: n.MAC, FD: 3 + i})
	}
	from := &run{}
	m.qemu, err = qemu.Start(ctx, c, files, log, func(e qmp.Event) {
		select {
		case m.events <- told{from, e}:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return err
	}
	m.current = from
	go qemu.PassBanners(context.WithoutCancel(ctx), c.Console) // ends by itself
	m.diskFirst = c.DiskOnly
	return m.bootedOnce()
}

// bootedOnce forgets what the start that now is was told.
func (m *Machine) bootedOnce() error {
	if m.memo.BootOnce == "" {
		return nil
	}
	m.memo.BootOnce = ""
	return m.keep()
}

// hardware describes the machine for QEMU.
func (m *Machine) hardware() (qemu.Config, error) {
	c := qemu.Config{Name: m.config.Name, UUID: m.config.UUID, Serial: m.config.Serial, Vendor: "Muster", Model: "Lab " + m.config.Class,
		Cores: m.config.Cores, Sockets: m.config.Sockets, Memory: m.config.Memory, KVM: m.config.KVM, UEFI: m.config.UEFI, DiskOnly: m.memo.BootOnce == BootDisk,
		Disk: filepath.Join(m.dir, diskFile), Console: ConsoleSocket(m.dir), ConsoleLog: ConsoleLog(m.dir)}
	if err := qemu.MakeDisk(c.Disk, m.config.Disk); err != nil {
		return c, err
	}
	if m.config.NVMe > 0 {
		c.NVMe = filepath.Join(m.dir, nvmeFile)
		if err := qemu.MakeDisk(c.NVMe, m.config.NVMe); err != nil {
			return c, err
		}
	}
	if !c.UEFI {
		return c, nil
	}
	code, vars, err := qemu.Firmware()
	if err != nil {
		return c, err
	}
	c.Code, c.Vars = code, filepath.Join(m.dir, varsFile)
	return c, qemu.MakeVars(c.Vars, vars)
}

// maxConsole is how much of what a machine printed is kept when it comes on.
const maxConsole = 8 << 20

// bound begins a new console log when the old one has grown, and keeps that.
func bound(path string) error {
	fi, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && fi.Size() < maxConsole {
		return nil
	}
	return os.Rename(path, path+".old")
}

// off takes the power away, and returns when the machine listens again.
func (m *Machine) off(ctx context.Context) error {
	if err := m.cutPower(); err != nil {
		return err
	}
	m.become(wentOff)
	m.rest(ctx)
	return nil
}

// cutPower ends QEMU and the TPM, and has the cards back.
func (m *Machine) cutPower() error {
	var errs []error
	if m.qemu != nil {
		if err := m.qemu.Cut(); err != nil {
			return err
		}
		errs = append(errs, m.qemu.Close())
		m.qemu, m.current = nil, nil
	}
	if m.tpm != nil {
		errs = append(errs, m.tpm.Cut())
		m.tpm = nil
	}
	for _, t := range m.taps {
		errs = append(errs, t.Take())
	}
	m.loop = nil
	return errors.Join(errs...)
}

// reset starts the machine anew. One that is to boot from something else than before,
// or has crashed, loses its power for a moment.
func (m *Machine) reset(ctx context.Context, cause string) error {
	if m.state == Crashed || m.qemu == nil || m.diskFirst != (m.memo.BootOnce == BootDisk) {
		if err := m.off(ctx); err != nil {
			return err
		}
		return m.on(ctx, cause)
	}
	m.restart(ctx)
	return m.bootedOnce()
}

func (m *Machine) restart(ctx context.Context) {
	if m.qemu == nil {
		return
	}
	if _, err := m.command(ctx, "system_reset", nil); err != nil {
		m.log.Warn("reset failed", "error", err)
	}
}

// command speaks to QEMU, which answers at once or not at all.
func (m *Machine) command(ctx context.Context, name string, args any) ([]byte, error) {
	if m.qemu == nil {
		return nil, errors.New("it is off")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return m.qemu.Do(ctx, name, args)
}

// begun is what comes after every start, also of one that was reset: faults that
// are in force, and ears for what the operating system does.
func (m *Machine) begun(ctx context.Context) {
	if _, err := m.command(ctx, "query-rx-filter", nil); err != nil {
		m.log.Warn("watching guest boot failed", "error", err)
	}
	if err := m.setLinks(); err != nil {
		m.problem = err.Error()
	}
	if err := m.setHealth(ctx); err != nil {
		m.problem = err.Error()
	}
	if m.has(Hang) {
		_, _ = m.command(ctx, "stop", nil)
	}
	if f, ok := m.fault(BootLoop); ok && f.After > 0 {
		m.loop = m.clock.After(time.Duration(f.After))
	}
}

// hear takes note of what QEMU tells by itself.
func (m *Machine) hear(ctx context.Context, t told) {
	if t.from != m.current || m.current == nil {
		return
	}
	switch t.Name {
	case qmp.EventReset:
		m.become(restarted)
		m.begun(ctx)
	case qmp.EventPanicked:
		m.become(panicked)
	case qmp.EventFilter:
		m.become(systemUp)
		if f, ok := m.fault(BootLoop); ok && f.After == 0 && m.loop == nil {
			m.loop = m.clock.After(time.Second)
		}
	}
}

// ended is called when QEMU has: the guest switched itself off, or the hardware
// broke.
func (m *Machine) ended(ctx context.Context) {
	err := m.qemu.Err()
	if cut := m.cutPower(); cut != nil {
		m.problem = cut.Error()
	}
	if err != nil {
		m.log.Error("QEMU exited", "error", err)
		m.problem = "QEMU ended: " + err.Error()
		m.become(broke)
		return
	}
	m.become(wentOff)
	m.rest(ctx)
}

// end is what becomes of a machine whose process ends.
func (m *Machine) end() {
	m.rouse()
	if err := m.cutPower(); err != nil {
		m.log.Error("power command failed", "error", err)
	}
	_ = m.unplug()
	if m.bmc != nil {
		_ = m.bmc.Close()
	}
}
