package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"
)

// diagnoseVM checks what virtual machines need of the host.
func (a *app) diagnoseVM(ctx context.Context) []Check {
	s := a.env.VMHost
	if s.FS == nil {
		s.FS = os.DirFS("/")
	}
	if s.Firmware == nil {
		s.Firmware = firmwareOf
	}
	if s.QEMU == nil {
		s.QEMU = qemuVersion
	}
	if s.Volumes == nil {
		s.Volumes = func() error {
			if _, err := exec.LookPath("ganesha.nfsd"); err != nil {
				return errors.New("ganesha.nfsd is not installed")
			}
			return nil
		}
	}
	checks := []Check{}
	for _, f := range s.Check(ctx) {
		c := Check{Name: f.Name, OK: f.OK, Text: f.Text, Fix: f.Fix, Package: f.Package}
		if !f.OK {
			c.Level = "warning"
			if f.Needed {
				c.Level = "error"
			}
		}
		checks = append(checks, c)
	}
	return checks
}

// qemuVersion is what QEMU says of itself.
func qemuVersion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("it is not installed")
	}
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return clip(clean(line), 128), nil
}
