package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// What a supervisor can be asked.
const (
	doStatus  = "status"
	doCommand = "command"
	doConsole = "console"
	doTell    = "tell"
	doSave    = "save"
	doLoad    = "load"
)

// request is one line to a supervisor.
type request struct {
	Do        string          `json:"do"`
	Command   string          `json:"command,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Line      json.RawMessage `json:"line,omitempty"` // for the machine's channel
}

// answer is one line from it.
type answer struct {
	Return json.RawMessage `json:"return,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func parseRequest(line []byte) (request, error) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return request{}, fmt.Errorf("no request: %w", err)
	}
	switch r.Do {
	case doStatus, doConsole, doSave, doLoad:
		return r, nil
	case doTell:
		if len(r.Line) == 0 || len(r.Line) > maxTold {
			return request{}, errors.New("there is nothing to tell, or too much")
		}
		return r, nil
	case doCommand:
		if r.Command == "" {
			return request{}, errors.New("no command is named")
		}
		return r, nil
	}
	return request{}, fmt.Errorf("a supervisor cannot %q", r.Do)
}

// listen opens the supervisor's socket, for the host's root alone.
func listen(ctx context.Context, dir string) (net.Listener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	at := fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), controlFile)
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", at)
	if err != nil {
		return nil, err
	}
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // by that name it would remove something else
	}
	return ln, os.Chmod(at, 0o600)
}

// serve answers until the listener is closed.
func (v *vm) serve(ctx context.Context, ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go v.answer(ctx, conn)
	}
}

func (v *vm) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	line, err := readLine(conn, maxLine)
	if err != nil {
		return
	}
	r, err := parseRequest(line)
	if err == nil && r.Do == doConsole {
		_ = conn.SetDeadline(time.Time{})
		v.console.show(conn)
		return
	}
	var a answer
	if err == nil && (r.Do == doSave || r.Do == doLoad) {
		_ = conn.SetDeadline(time.Time{}) // it takes as long as its disk takes
		if a.Return, err = v.stream(ctx, conn, r.Do); err != nil {
			a = answer{Error: err.Error()}
		}
		_ = writeLine(conn, a)
		return
	}
	if err == nil {
		a.Return, err = v.do(ctx, r)
	}
	if err != nil {
		a = answer{Error: err.Error()}
	}
	_ = writeLine(conn, a)
}

func (v *vm) do(ctx context.Context, r request) (json.RawMessage, error) {
	if r.Do == doStatus {
		return json.Marshal(Status{QEMU: v.jail.PID(), Since: v.since, Given: v.task.given(), Supervisor: os.Getpid()})
	}
	if r.Do == doTell {
		return json.RawMessage("{}"), v.task.tell(r.Line)
	}
	ctx, cancel := context.WithTimeout(ctx, 50*time.Second)
	defer cancel()
	var args any
	if r.Arguments != nil {
		args = r.Arguments
	}
	return v.monitor.Do(ctx, r.Command, args)
}
