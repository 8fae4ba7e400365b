package qemu

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"time"
)

// KVMWorks tries whether the host's processor executes machines: that /dev/kvm can
// be opened does not say so, nor that a first instruction runs. The BIOS of an empty
// machine, with the processor that machines get, has to come to its end.
func KVMWorks(ctx context.Context) bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c := Config{KVM: true}
	cmd := exec.CommandContext(ctx, Program, "-nodefaults", "-no-user-config", "-display", "none", "-machine", board(c), "-accel", accelerator(c),
		"-cpu", processor(c), "-smp", "2", "-m", "64", "-chardev", "stdio,id=debug", "-device", "isa-debugcon,iobase=0x402,chardev=debug")
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return false
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "No bootable device") {
			return true
		}
	}
	return false
}
