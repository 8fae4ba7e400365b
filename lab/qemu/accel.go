package qemu

import (
	"context"
	"os"
	"os/exec"
	"time"
)

// KVMWorks tries whether the host's processor executes machines: that /dev/kvm can
// be opened does not say so. The BIOS of an empty machine writes to a debug port
// within milliseconds if it does.
func KVMWorks(ctx context.Context) bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, Program, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "pc,accel=kvm",
		"-m", "32", "-chardev", "stdio,id=debug", "-device", "isa-debugcon,iobase=0x402,chardev=debug")
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return false
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	n, _ := out.Read(make([]byte, 64))
	return n > 0
}
