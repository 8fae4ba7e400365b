package script

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
)

const (
	maxOutput = 64 << 10 // bytes kept of each of the two streams
	maxSaid   = 200      // bytes of it that an error repeats
	// drain is how long its streams are read after its end: something that
	// it started in the background may hold them open.
	drain = 500 * time.Millisecond
)

// call runs the program and returns what it printed.
func (d *driver) call(ctx context.Context, operation string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, d.t.Address.Address, operation)
	cmd.Env = d.environment()
	cmd.Dir = "/"
	var secret []byte
	if d.t.Secret != nil {
		var err error
		if secret, err = d.t.Secret(ctx); err != nil {
			return nil, muster.Errorf(muster.EUnauth, "its password cannot be fetched").Because(muster.ReasonControllerRefuses).Wrap(err)
		}
		cmd.Stdin = bytes.NewReader(append(bytes.Clone(secret), '\n'))
	}
	out, said := &bounded{most: maxOutput}, &bounded{most: maxOutput}
	cmd.Stdout, cmd.Stderr = out, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drain
	err := cmd.Start()
	if err != nil {
		return nil, explain(operation, err, "")
	}
	ended(cmd.Process.Pid)
	// What it left behind in its group goes with it. The group keeps its number
	// until the program was waited for, so that no other one is hit.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	err = cmd.Wait()
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, muster.Errorf(muster.ETimeout, "the site's program did not end in time and was killed").Because(muster.ReasonNoAnswer).
				WithHint("run it by hand as docs/operators/power.md says").Wrap(ctx.Err())
		}
		return nil, context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, explain(operation, err, quote(said.b.Bytes(), secret))
	}
	return out.b.Bytes(), nil
}

// ended returns once the process ended, and leaves it to be waited for.
func ended(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		continue
	}
}

// bounded keeps the first bytes and lets the others go.
type bounded struct {
	b    bytes.Buffer
	most int
}

func (w *bounded) Write(p []byte) (int, error) {
	w.b.Write(p[:min(len(p), w.most-w.b.Len())])
	return len(p), nil
}

// quote makes what the program said fit for an error: one line, no control
// characters, and not the password, should it repeat that.
func quote(said, secret []byte) string {
	if len(secret) > 0 {
		said = bytes.ReplaceAll(said, secret, []byte("(password)"))
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	return cleantext.Cut(cleantext.Line(line), maxSaid)
}
