package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/internal/procstat"
)

// Process is one process that is held by a file descriptor: signals reach it and
// no other, whatever becomes of its number.
type Process struct {
	pid   int
	fd    int
	start uint64
}

// record is what is written down of a process.
type record struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks between the host's start and its own
	Boot  string `json:"boot"`  // of the host
}

const recordDoc document.Kind[record] = "process/1"

// Find opens the process that a record tells of. Returns os.ErrNotExist when there
// is no record or the process has ended. The caller closes it.
//
// Errors: EConflict for a record of another version.
func Find(path string) (*Process, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := parseRecord(path, b)
	if muster.CodeOf(err) == muster.EConflict {
		return nil, err
	}
	if err != nil || r.Boot != bootID() {
		return nil, os.ErrNotExist // half a record is none: nothing can be told from it
	}
	p, err := Open(r.PID)
	if err != nil {
		return nil, err
	}
	if p.start != r.Start {
		p.Close()
		return nil, os.ErrNotExist
	}
	return p, nil
}

func parseRecord(path string, b []byte) (record, error) {
	r, err := recordDoc.Decode(path, b)
	if err != nil {
		return record{}, err
	}
	if r.PID < 2 {
		return record{}, fmt.Errorf("%d is not the number of a process", r.PID)
	}
	return r, nil
}

// Open holds a process that runs; os.ErrNotExist when there is none. The caller closes it.
func Open(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, os.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	s, err := procstat.Read(pid)
	p := &Process{pid: pid, fd: fd, start: s.Start}
	if err == nil && s.Ending {
		// It was killed and holds on to what it has, until all of that is closed. Who
		// asks wants to know what to start, or to take away: neither before that.
		p.ended(context.Background(), lastBreath)
		err = os.ErrNotExist
	}
	if err != nil {
		p.Close()
		return nil, os.ErrNotExist
	}
	return p, nil
}

// lastBreath is how long a process that was killed may take to close what it holds.
const lastBreath = 10 * time.Second

// Write keeps a record of the process, with which Find finds it again.
func (p *Process) Write(path string) error {
	b, err := recordDoc.Encode(&record{PID: p.pid, Start: p.start, Boot: bootID()})
	if err != nil {
		return err
	}
	return atomicfile.ReplaceVolatile(path, b, 0o600) // the process does not outlive the host
}

// PID is its number, for people.
func (p *Process) PID() int { return p.pid }

// Alive reports whether it runs.
func (p *Process) Alive() bool {
	for {
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		if errors.Is(err, unix.EINTR) {
			continue // a signal, such as Go's own; it says nothing of the process
		}
		return err == nil && n == 0
	}
}

// Kill ends it at once.
func (p *Process) Kill() error { return p.signal(unix.SIGKILL) }

func (p *Process) signal(s unix.Signal) error {
	if err := unix.PidfdSendSignal(p.fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// Stop asks it to end, and ends it when it has not within grace.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	if err := p.signal(unix.SIGTERM); err != nil {
		return err
	}
	if p.ended(ctx, grace) {
		return nil
	}
	if err := p.Kill(); err != nil {
		return err
	}
	return p.Wait(context.WithoutCancel(ctx), 10*time.Second)
}

// Wait returns nil once it has ended, and an error when it has not within most.
func (p *Process) Wait(ctx context.Context, most time.Duration) error {
	if !p.ended(ctx, most) {
		return fmt.Errorf("process %d does not end", p.pid)
	}
	return nil
}

// ended waits until it has ended, for so long at most.
func (p *Process) ended(ctx context.Context, most time.Duration) bool {
	const look = 20 * time.Millisecond // how soon an end of ctx is seen
	for end := time.Now().Add(most); ; {
		left := min(time.Until(end), look)
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, max(0, int(left.Milliseconds()))); n > 0 && err == nil {
			return true
		}
		if left < look || ctx.Err() != nil {
			return !p.Alive()
		}
	}
}

// Close lets go of the process, which goes on.
func (p *Process) Close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
		p.fd = -1
	}
}

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
