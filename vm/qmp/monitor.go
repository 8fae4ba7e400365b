package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Event is something that QEMU tells by itself.
type Event struct {
	Name string          `json:"event"`
	Data json.RawMessage `json:"data"`
}

// Events that matter here.
const (
	EventShutdown = "SHUTDOWN"              // the guest, or somebody, switched it off
	EventReset    = "RESET"                 // it starts anew
	EventPanicked = "GUEST_PANICKED"        // its kernel says that it is lost
	EventFilter   = "NIC_RX_FILTER_CHANGED" // an operating system has set up a card
)

// message is one line from QEMU: an answer, an event or a greeting.
type message struct {
	Event
	ID     string          `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
}

// maxLine bounds what one line may hold.
const maxLine = 1 << 20

func parseMessage(line []byte) (message, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("QEMU's monitor: %w", err)
	}
	return m, nil
}

// Monitor speaks QMP, one command after the other.
type Monitor struct {
	conn    net.Conn
	serial  sync.Mutex // one command at a time
	next    int
	answers chan message
	done    chan struct{}
}

// NewMonitor begins to speak on a connection. Events go to told, which must not
// wait and is not called any more once the connection has ended.
func NewMonitor(ctx context.Context, conn net.Conn, told func(Event)) (*Monitor, error) {
	m := &Monitor{conn: conn, answers: make(chan message, 1), done: make(chan struct{})}
	go m.read(told)
	if _, err := m.Do(ctx, "qmp_capabilities", nil); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Monitor) read(told func(Event)) {
	defer close(m.done)
	in := bufio.NewScanner(io.Reader(m.conn))
	in.Buffer(nil, maxLine)
	for in.Scan() {
		msg, err := parseMessage(in.Bytes())
		switch {
		case err != nil:
			return
		case msg.Name != "":
			told(Event{Name: msg.Name, Data: append(json.RawMessage(nil), msg.Data...)})
		case msg.ID != "":
			select {
			case m.answers <- msg:
			default: // nobody waits for it any more
			}
		}
	}
}

// write writes a line, and a file with it.
func (m *Monitor) write(line []byte, f *os.File) error {
	if f == nil {
		_, err := m.conn.Write(line)
		return err
	}
	conn, ok := m.conn.(*net.UnixConn)
	if !ok {
		return errors.New("no file can be given by this connection")
	}
	n, _, err := conn.WriteMsgUnix(line, unix.UnixRights(int(f.Fd())), nil)
	if err == nil && n < len(line) {
		_, err = conn.Write(line[n:])
	}
	return err
}

// Do executes a command.
func (m *Monitor) Do(ctx context.Context, command string, arguments any) (json.RawMessage, error) {
	return m.do(ctx, command, arguments, nil)
}

// Give hands QEMU an open file, under a name by which later commands mean it. The file stays open here.
func (m *Monitor) Give(ctx context.Context, name string, f *os.File) error {
	_, err := m.do(ctx, "getfd", map[string]string{"fdname": name}, f)
	return err
}

// do executes a command, with which a file may go.
func (m *Monitor) do(ctx context.Context, command string, arguments any, f *os.File) (json.RawMessage, error) {
	m.serial.Lock()
	defer m.serial.Unlock()
	select { // an answer that came too late for the command before
	case <-m.answers:
	default:
	}
	m.next++
	id := fmt.Sprint(m.next)
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        string `json:"id"`
	}{command, arguments, id})
	if err != nil {
		return nil, err
	}
	if err := m.write(append(line, '\n'), f); err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-m.done:
			return nil, errors.New("QEMU's monitor is closed")
		case a := <-m.answers:
			switch {
			case a.ID != id:
			case a.Error != nil:
				return nil, fmt.Errorf("QEMU: %s: %s", command, a.Error.Desc)
			default:
				return a.Return, nil
			}
		}
	}
}

// Close ends the conversation, if it has not ended by itself.
func (m *Monitor) Close() error {
	if err := m.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
