package supervisor

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// What a machine's first program says on its channel, and how much of a line is heard.
const (
	askTask = "task"
	maxAsk  = 256
)

// task is given once: whoever has the machine later finds nothing in its channel.
type task struct {
	mu   sync.Mutex
	port sync.Mutex      // one line at a time to the machine
	out  io.Writer       // its channel
	text json.RawMessage // nil: it was given
	was  bool
}

// reply is what a machine's first program hears, in the form of wire.BootReply: the host's time,
// and its task or, where that was given, how to wait for another machine to be made.
type reply struct {
	Protocol int             `json:"protocol"`
	Now      time.Time       `json:"now"`
	Task     json.RawMessage `json:"task,omitempty"`
	Wait     *wait           `json:"wait,omitempty"`
}

type wait struct {
	Reason string          `json:"reason"`
	Next   muster.Duration `json:"next_seconds"`
}

func (t *task) given() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.was
}

// take gives the task away.
func (t *task) take() json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.text
	t.text, t.was = nil, t.was || text != nil
	return text
}

// answer speaks with the machine on its channel until that has ended. Who has the machine may write there
// whatever it likes, as fast as it likes.
func (t *task) answer(channel io.ReadWriter, now func() time.Time) {
	in := bufio.NewReaderSize(channel, maxAsk)
	for {
		line, err := in.ReadSlice('\n')
		if err == bufio.ErrBufferFull { //nolint:errorlint // as bufio gives it
			continue // noise
		}
		if err != nil {
			return
		}
		if !asks(line) {
			continue
		}
		r := reply{Protocol: 1, Now: now().UTC(), Task: t.take()}
		if r.Task == nil {
			r.Wait = &wait{Reason: "this machine had its task", Next: muster.Duration(time.Minute)}
		}
		t.port.Lock()
		err = writeLine(channel, r)
		t.port.Unlock()
		clear(r.Task)
		if err != nil {
			return
		}
	}
}

// What the machine is told besides its task, and how long it may take to hear it.
const (
	maxTold  = 4 << 10
	toldTime = 10 * time.Second
)

// tell writes one line to the machine. One that does not listen makes it fail.
func (t *task) tell(line json.RawMessage) error {
	t.port.Lock()
	defer t.port.Unlock()
	if c, ok := t.out.(net.Conn); ok {
		_ = c.SetWriteDeadline(time.Now().Add(toldTime))
		defer func() { _ = c.SetWriteDeadline(time.Time{}) }()
	}
	return writeLine(t.out, line)
}

// asks reports whether a line asks for the task. A port that was just opened may have had noise before it.
func asks(line []byte) bool {
	n := len(line) - 1
	if n > 0 && line[n-1] == '\r' {
		n--
	}
	from := max(0, n-len(askTask))
	return n >= 0 && string(line[from:n]) == askTask
}
