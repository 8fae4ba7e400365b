package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

const (
	// maxHostLine is how long a line of the host may be.
	maxHostLine = 1 << 10
	// clockSlack is by how much a clock may be off without being set: setting it makes jobs see a jump.
	clockSlack = 50 * time.Millisecond
)

// hostLine is what the host of a virtual machine says by its serial port.
type hostLine struct {
	Clock time.Time `json:"clock"`
}

// parseHostLine reads a line, and reports whether it says something.
func parseHostLine(line []byte) (hostLine, bool) {
	var l hostLine
	if len(line) > maxHostLine || json.Unmarshal(line, &l) != nil {
		return hostLine{}, false
	}
	return l, !l.Clock.IsZero()
}

// followHost sets this machine's clock as its host says, until the port ends: it stood still while the machine was saved.
// What else comes is no business of the agent's.
func (a *agent) followHost(ctx context.Context, port io.Reader, set func(time.Time) error) {
	in := bufio.NewReaderSize(port, maxHostLine)
	for ctx.Err() == nil {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // noise
		}
		if err != nil {
			return
		}
		l, ok := parseHostLine(line)
		if !ok {
			continue
		}
		off := l.Clock.Sub(a.Clock.Now())
		if off.Abs() < clockSlack {
			continue
		}
		if err := set(l.Clock); err != nil {
			a.Log.Error("setting the clock failed", "error", err)
			continue
		}
		a.Log.Info("clock set by the host", "off_seconds", off.Seconds())
	}
}
