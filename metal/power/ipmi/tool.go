package ipmi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/muster-hpc/muster"
)

const (
	program  = "ipmitool"
	maxTool  = 64 << 10 // bytes of its output
	toolWait = 500 * time.Millisecond
)

// findTool reports whether the program is there.
func (d *driver) findTool() bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func (d *driver) toolOn(ctx context.Context) error {
	if on, err := d.toolState(ctx); err != nil || on {
		return err
	}
	boot := []string{"chassis", "bootdev", "pxe"}
	if d.t.Address.BootMode == muster.BootModeUEFI {
		boot = append(boot, "options=efiboot")
	}
	if _, err := d.tool(ctx, boot...); err != nil {
		return err
	}
	if err := d.pause(ctx); err != nil {
		return err
	}
	_, err := d.tool(ctx, "chassis", "power", "on")
	return err
}

func (d *driver) toolState(ctx context.Context) (on bool, err error) {
	out, err := d.tool(ctx, "chassis", "power", "status")
	if err != nil {
		return false, err
	}
	return parseToolState(out)
}

// parseToolState reads "Chassis Power is on".
func parseToolState(out string) (on bool, err error) {
	for line := range strings.SplitSeq(out, "\n") {
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "chassis power is on":
			return true, nil
		case "chassis power is off":
			return false, nil
		}
	}
	return false, muster.Errorf(muster.ECorrupt, "ipmitool did not say whether its power is on").Because(muster.ReasonControllerNonsense)
}

// tool runs ipmitool. The password goes through a pipe that it reads as a file: it is in
// no argument and in no environment. It reads the key K_G from its environment only, which
// nobody else on this server may read.
func (d *driver) tool(ctx context.Context, args ...string) (string, error) {
	password, err := d.t.Secret(ctx)
	if err != nil {
		return "", muster.Errorf(muster.EUnauth, "its controller's password cannot be fetched").Because(muster.ReasonControllerRefuses).Wrap(err)
	}
	key, err := d.key(ctx)
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(key, 0) >= 0 {
		return "", muster.Errorf(muster.EInvalid, "ipmitool cannot be given its controller's key K_G: there is a zero byte in it").
			WithHint("give the controller a key without zero bytes, or none")
	}
	read, write, err := os.Pipe()
	if err != nil {
		return "", muster.Errorf(muster.EUnavailable, "no pipe for ipmitool").Wrap(err)
	}
	defer read.Close()
	_, err = write.Write(append(append([]byte(nil), password...), '\n')) // a pipe holds more than this
	write.Close()
	if err != nil {
		return "", muster.Errorf(muster.EUnavailable, "no pipe for ipmitool").Wrap(err)
	}
	cmd := exec.CommandContext(ctx, program, append(d.toolFlags(), args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	if len(key) > 0 {
		cmd.Args = slices.Insert(cmd.Args, 1, "-K")
		cmd.Env = append(cmd.Env, "IPMI_KGKEY="+string(key))
	}
	cmd.ExtraFiles = []*os.File{read}
	var out strings.Builder
	cmd.Stdout = &limit{w: &out, left: maxTool}
	cmd.Stderr = cmd.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = toolWait
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", ended(ctx)
	}
	if err != nil {
		return "", toolError(out.String(), err)
	}
	return out.String(), nil
}

func (d *driver) toolFlags() []string {
	a := d.t.Address
	host, port := a.Endpoint()
	kind := "lanplus"
	if d.quirk.old {
		kind = "lan"
	}
	role := "OPERATOR"
	if d.quirk.administrator {
		role = "ADMINISTRATOR"
	}
	// -v has it say why a session was refused: a wrong password is not tried twice.
	flags := []string{"-v", "-I", kind, "-H", host, "-U", a.User, "-L", role, "-f", "/proc/self/fd/3", "-R", strconv.Itoa(sends), "-N", "1", "-p", strconv.Itoa(port)}
	if d.quirk.tool != "" {
		flags = append(flags, "-o", d.quirk.tool)
	}
	return flags
}

// toolError makes an error of what ipmitool printed.
func toolError(out string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return muster.Errorf(muster.EInvalid, "its controller needs the program ipmitool, which is not there").Because(muster.ReasonProgramMissing).
			WithHint("install ipmitool on this server").Wrap(err)
	}
	for _, known := range []struct {
		says string
		err  *muster.Error
	}{
		{"RAKP 2 HMAC is invalid", muster.Errorf(muster.EUnauth, "its controller refuses ipmitool: the password is wrong").Because(muster.ReasonControllerRefuses)},
		{"RAKP 4 message has invalid integrity", muster.Errorf(muster.EUnauth, "its controller refuses ipmitool: its key K_G is another one, or its password").Because(muster.ReasonControllerRefuses)},
		{"Activate Session command failed", muster.Errorf(muster.EUnauth, "its controller refuses ipmitool: the account or the password is wrong").Because(muster.ReasonControllerRefuses)},
		{"unauthorized name", muster.Errorf(muster.EUnauth, "its controller refuses ipmitool: no such account").Because(muster.ReasonControllerRefuses)},
		{"insufficient resources", muster.Errorf(muster.EUnavailable, "its controller refuses ipmitool: no session is free").Because(muster.ReasonControllerUnreachable)},
		{"Insufficient privilege", muster.Errorf(muster.EForbidden, "its controller refuses ipmitool: the account's privilege does not suffice").Because(muster.ReasonControllerRefuses)},
		{"Invalid role", muster.Errorf(muster.EForbidden, "its controller refuses ipmitool: the account may not have that privilege").Because(muster.ReasonControllerRefuses)},
	} {
		if strings.Contains(out, known.says) {
			return known.err.WithHint("see the machine's power address, and the controller's accounts and sessions")
		}
	}
	return muster.Errorf(muster.EUnavailable, "ipmitool could not speak with its controller").Because(muster.ReasonControllerUnreachable).
		WithHint("run ipmitool by hand with the same address").Wrap(err)
}

// limit keeps the first bytes and lets the others go.
type limit struct {
	w    io.Writer
	left int
}

func (l *limit) Write(p []byte) (int, error) {
	keep := min(len(p), l.left)
	l.left -= keep
	_, _ = l.w.Write(p[:keep])
	return len(p), nil
}
