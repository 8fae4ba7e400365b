package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster/internal/process"
)

// Supervisor is the supervisor of a machine, as the server has it.
type Supervisor struct {
	dir     string
	process *process.Process
}

// Find finds the supervisor of the machine in a directory, whoever started it; os.ErrNotExist when it has
// ended, or there was none. The caller closes it.
func Find(dir string) (*Supervisor, error) {
	p, err := process.Find(filepath.Join(dir, supervisorRecord))
	if err != nil {
		return nil, err
	}
	return &Supervisor{dir: dir, process: p}, nil
}

// PID is the number of its process.
func (k *Supervisor) PID() int { return k.process.PID() }

// Alive reports whether it runs, and so does its machine.
func (k *Supervisor) Alive() bool { return k.process.Alive() }

// Close lets go of it; it goes on.
func (k *Supervisor) Close() { k.process.Close() }

// Status is how a machine is.
type Status struct {
	QEMU       int       `json:"qemu"`  // its process, on the host
	Since      time.Time `json:"since"` // when it was started
	Given      bool      `json:"given"` // its task: its first program has asked
	Supervisor int       `json:"supervisor"`
}

// Status asks how the machine is.
func (k *Supervisor) Status(ctx context.Context) (Status, error) {
	var s Status
	err := k.ask(ctx, request{Do: doStatus}, &s)
	return s, err
}

// Command has QEMU's monitor execute a command.
func (k *Supervisor) Command(ctx context.Context, name string, arguments any) (json.RawMessage, error) {
	r := request{Do: doCommand, Command: name}
	if arguments != nil {
		b, err := json.Marshal(arguments)
		if err != nil {
			return nil, err
		}
		r.Arguments = b
	}
	var out json.RawMessage
	err := k.ask(ctx, r, &out)
	return out, err
}

// Console is what the machine printed that nobody has read yet, as far as it is kept, and what it prints from now on.
// One reads at a time: the last who asked.
func (k *Supervisor) Console(ctx context.Context) (io.ReadCloser, error) {
	conn, err := k.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := writeLine(conn, request{Do: doConsole}); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Kill ends the machine; see End.
func (k *Supervisor) Kill(ctx context.Context) error { return End(ctx, k.dir) }

// End ends the machine in a directory, and returns nil only when its QEMU and its supervisor are proven to have
// ended, whatever state they were in, whoever started them, and whether or not the one outlived the other.
func End(ctx context.Context, dir string) error {
	// QEMU's record is there before QEMU runs; its supervisor, once killed, starts none any more.
	return errors.Join(end(ctx, filepath.Join(dir, supervisorRecord)), end(ctx, filepath.Join(dir, qemuRecord)))
}

// end ends the process of a record.
func end(ctx context.Context, record string) error {
	p, err := process.Find(record)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Kill(); err != nil {
		return err
	}
	return p.Wait(ctx, endTime)
}

// endTime is how long a process that was killed may take to end: it gives memory back meanwhile.
const endTime = 30 * time.Second

// dial connects to the supervisor. A directory's path may be longer than that of a socket may be.
func (k *Supervisor) dial(ctx context.Context) (net.Conn, error) {
	dir, err := os.Open(k.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), controlFile))
	if err != nil {
		return nil, fmt.Errorf("the supervisor of %s is not there: %w", filepath.Base(k.dir), err)
	}
	return conn, nil
}

// ask makes one exchange.
func (k *Supervisor) ask(ctx context.Context, r request, into any) error {
	conn, err := k.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := writeLine(conn, r); err != nil {
		return err
	}
	line, err := readLine(conn, maxLine)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("the supervisor of %s does not answer: %w", filepath.Base(k.dir), err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return err
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return json.Unmarshal(a.Return, into)
}
