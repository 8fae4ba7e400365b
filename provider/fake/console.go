package fake

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// maxConsole is how many lines a machine's console keeps.
const maxConsole = 50

// print adds a line to what the machine printed; the mutex is held.
func (m *Machine) print(format string, args ...any) {
	m.consoles = append(m.consoles, fmt.Sprintf(format, args...))
	if len(m.consoles) > maxConsole {
		m.consoles = m.consoles[len(m.consoles)-maxConsole:]
	}
}

// Console connects to a machine's console: what it printed, or a shell that
// says each line again.
func (p *Provider) Console(ctx context.Context, id muster.MachineID, shell bool) (io.ReadWriteCloser, error) {
	if err := p.w.call(ctx); err != nil {
		return nil, err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	m := p.w.byID[id]
	switch {
	case m == nil || m.absent:
		return nil, muster.Errorf(muster.ENotFound, "machine %s does not answer", id)
	case shell && (m.state != provider.StateRunning || m.trouble == TroubleHang):
		return nil, muster.Errorf(muster.EConflict, "machine %s runs no shell", id).Because(muster.ReasonNoConsole).WithHint("it is off, or hangs")
	}
	c := &console{shell: shell}
	if shell {
		c.Print("fake# ")
		m.shells = append(slices.DeleteFunc(m.shells, (*console).Ended), c)
		return c, nil
	}
	for _, line := range m.consoles {
		c.Print(line + "\r\n")
	}
	return c, nil
}

// console is one open console.
type console struct {
	provider.ConsoleBuffer
	shell bool

	mu   sync.Mutex
	line []byte
}

// Write types into the shell; without one it goes nowhere.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Ended() {
		return 0, io.ErrClosedPipe
	}
	if !c.shell {
		return len(p), nil
	}
	for _, b := range p {
		if b != '\n' && b != '\r' {
			c.line = append(c.line, b)
			continue
		}
		text := strings.TrimPrefix(string(c.line), "echo ")
		c.line = nil
		if text == "exit" {
			c.End()
			break
		}
		c.Print(text + "\r\nfake# ")
	}
	return len(p), nil
}

// Resize does nothing: the shell does not care.
func (c *console) Resize(int, int) error { return nil }

// Close ends the connection.
func (c *console) Close() error {
	c.End()
	return nil
}
