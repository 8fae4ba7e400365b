package boot

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
)

// Console is where people see what a machine does: one line for each thing, with
// the kernel's time. Nothing secret is written to it.
type Console struct {
	mu   sync.Mutex
	out  io.Writer
	up   func() time.Duration
	last string
}

// Say writes one line. The same line twice in a row is written once.
func (c *Console) Say(format string, args ...any) {
	text := plain(fmt.Sprintf(format, args...))
	c.mu.Lock()
	defer c.mu.Unlock()
	if text == c.last {
		return
	}
	c.last = text
	fmt.Fprintf(c.out, "muster [%8.3f] %s\r\n", c.up().Seconds(), text)
}

// Fail writes what went wrong and what to do.
func (c *Console) Fail(stage string, err error) {
	text, hint := muster.Explain(err)
	c.Say("%s: FAILED: %s", stage, text)
	if hint != "" {
		c.Say("%s: %s", stage, hint)
	}
}

// plain makes one line that cannot do anything to a terminal.
func plain(s string) string {
	s = cleantext.Line(s)
	if r := []rune(s); len(r) > 500 {
		s = string(r[:500]) + "..."
	}
	return strings.TrimSpace(s)
}

// describe is an error in one line.
func describe(err error) string {
	text, _ := muster.Explain(err)
	return text
}
