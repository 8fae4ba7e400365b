package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/muster-hpc/muster/wire"
)

const (
	// maxHostLine is how long a line of the host may be.
	maxHostLine = 4 << 10
	// clockSlack is by how much a clock may be off without being set: setting it makes jobs see a jump.
	clockSlack = 50 * time.Millisecond
)

// parseHostLine reads a line, and reports whether it says something.
func parseHostLine(line []byte) (wire.HostLine, bool) {
	var l wire.HostLine
	if len(line) > maxHostLine || json.Unmarshal(line, &l) != nil || l.Clock.IsZero() {
		return wire.HostLine{}, false
	}
	if j := l.Join; j != nil && (j.Machine == "" || len(j.Machine) > 256 || j.Attempt < 1 || j.Token == "" || len(j.Token) > 1024) {
		return wire.HostLine{}, false
	}
	return l, true
}

// followHost sets this machine's clock as its host says, until the port ends: it stood still while the machine was saved.
// Where the host says that it is another boot now, that is passed on, the newest alone. What else comes is
// no business of the agent's.
func followHost(ctx context.Context, c *Config, port io.Reader, set func(time.Time) error, joins chan wire.HostJoin) {
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
		if off := l.Clock.Sub(c.Clock.Now()); off.Abs() >= clockSlack {
			if err := set(l.Clock); err != nil {
				c.Log.Error("setting the clock failed", "error", err)
			} else {
				c.Log.Info("clock set by the host", "off_seconds", off.Seconds())
			}
		}
		if l.Join == nil {
			continue
		}
		select {
		case <-joins: // an older one
		default:
		}
		joins <- *l.Join
	}
}

// become makes what is configured and kept that of another boot: this machine went on from its saved memory, in the
// place of another. Its node is configured as it was. Its credential was of the boot before.
func (c *Config) become(j wire.HostJoin) {
	if c.SetLinks != nil && len(j.Links) > 0 {
		if err := c.SetLinks(j.Links); err != nil {
			c.Log.Error("setting the addresses that the host said failed", "error", err)
		}
	}
	c.Bootstrap.Machine, c.Bootstrap.Attempt, c.Bootstrap.Token, c.Bootstrap.Started = j.Machine, j.Attempt, j.Token, c.Clock.Now()
	if c.Became != nil {
		if err := c.Became(c.Bootstrap); err != nil {
			c.Log.Error("keeping what the host said failed", "error", err)
		}
	}
	err := c.Store.Delete(fileCredential)
	if b, bad := c.Store.Load(fileState); bad == nil {
		var s state
		if s, bad = stateDoc.Decode(fileState, b); bad == nil {
			s.Machine, s.Attempt = j.Machine, j.Attempt
			if b, bad = stateDoc.Encode(&s); bad == nil {
				bad = c.Store.Save(fileState, b)
			}
		}
		err = errors.Join(err, bad)
	}
	if err != nil {
		c.Log.Error("keeping what the host said failed", "error", err)
	}
	c.Log.Info("this machine went on from its saved memory", "machine", j.Machine, "attempt", j.Attempt)
}
