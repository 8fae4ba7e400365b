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
	maxOutput = 4 << 20 // bytes of what it prints: some ten thousand ports
	maxErrors = 64 << 10
	maxSaid   = 200 // bytes of its errors that ours repeats
	// drain is how long its streams are read after its end: something that it started in
	// the background may hold them open.
	drain = 500 * time.Millisecond
)

// Exit statuses of the program, which are those of programs that switch machines. All others
// mean that it failed.
const (
	exitUnsupported = 2 // it cannot do this
	exitRefused     = 3 // account or password
	exitBusy        = 4 // not now: try again
	exitUnknown     = 5 // it knows no such switch
)

// call runs the program and returns what it printed.
func (s *Switch) call(ctx context.Context, operation string, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.c.Program, operation)
	// Nothing of this server's own environment gets there.
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "MUSTER_SWITCH=" + s.c.Name}
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(input)
	out, said := &bounded{most: maxOutput}, &bounded{most: maxErrors}
	cmd.Stdout, cmd.Stderr = out, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drain
	if err := cmd.Start(); err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the site's program for the switch could not be run").
			WithHint("see that %s is there and may be executed by this server", s.c.Program).Wrap(err)
	}
	ended(cmd.Process.Pid)
	// What it left behind in its group goes with it. The group keeps its number until the
	// program was waited for, so that no other one is hit.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	err := cmd.Wait()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, muster.Errorf(muster.EUnavailable, "the site's program for the switch did not end in time and was killed").
			WithHint("run it by hand as docs/operators/switches.md says").Wrap(ctx.Err())
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, explain(operation, err, firstLine(said.b.Bytes()))
	case out.over:
		return nil, nonsense(operation, "it is longer than %d MiB", maxOutput>>20)
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
	over bool
}

func (w *bounded) Write(p []byte) (int, error) {
	keep := min(len(p), w.most-w.b.Len())
	w.over = w.over || keep < len(p)
	w.b.Write(p[:keep])
	return len(p), nil
}

// firstLine makes what the program said fit for an error.
func firstLine(said []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if line == "" {
		return ""
	}
	return ": " + cleantext.Cut(cleantext.Line(line), maxSaid)
}

// explain makes an error of how the program ended.
func explain(operation string, err error, said string) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		switch exit.ExitCode() {
		case exitUnsupported:
			return muster.Errorf(muster.EInvalid, "the site's program for the switch cannot do %q%s", operation, said)
		case exitRefused:
			return muster.Errorf(muster.EUnauth, "the site's program was refused by the switch%s", said).WithHint("see the account that it uses")
		case exitBusy:
			return muster.Errorf(muster.EUnavailable, "the site's program for the switch says not now%s", said)
		case exitUnknown:
			return muster.Errorf(muster.ENotFound, "the site's program knows no such switch%s", said).WithHint("see the name after # in the registrations of its machines")
		}
	}
	return muster.Errorf(muster.EUnavailable, "the site's program for the switch failed at %q (%v)%s", operation, err, said).
		WithHint("run it by hand as docs/operators/switches.md says")
}
