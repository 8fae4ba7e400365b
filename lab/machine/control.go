package machine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/muster-hpc/muster"
)

// What a machine can be asked to do.
const (
	DoStatus = "status"
	DoOn     = "on"
	DoOff    = "off"
	DoReset  = "reset"
	DoPress  = "press" // the button: a system that listens goes off by itself
	DoBoot   = "boot"
	DoFault  = "fault"
	DoClear  = "clear"
)

// Request is one line to a machine's socket.
type Request struct {
	Do    string `json:"do"`
	Cause string `json:"cause,omitempty"` // who asks, for people
	Boot  string `json:"boot,omitempty"`
	Fault Fault  `json:"fault,omitzero"`
}

// Answer is one line from it.
type Answer struct {
	Status Status        `json:"status"`
	Error  *muster.Error `json:"error,omitempty"`
}

// maxRequest bounds what a line may hold.
const maxRequest = 64 << 10

func parseRequest(line []byte) (Request, error) {
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		return Request{}, muster.Errorf(muster.EInvalid, "no request: %v", err)
	}
	switch r.Do {
	case DoStatus, DoOn, DoOff, DoReset, DoPress, DoBoot, DoFault, DoClear:
		return r, nil
	}
	return Request{}, muster.Errorf(muster.EInvalid, "a machine cannot %q", r.Do)
}

// Ask asks the machine in a directory. Returns EUnavailable when its process is not
// there.
func Ask(ctx context.Context, dir string, r Request) (Status, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, controlFile))
	if err != nil {
		return Status{}, muster.Errorf(muster.EUnavailable, "the process of %s is not there", filepath.Base(dir)).
			WithHint("run 'muster lab up' again: it starts what is missing").Wrap(err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return Status{}, lost(ctx, dir, err)
	}
	var a Answer
	if err := json.NewDecoder(io.LimitReader(conn, 1<<20)).Decode(&a); err != nil {
		return Status{}, lost(ctx, dir, err)
	}
	if a.Error != nil {
		return a.Status, a.Error
	}
	return a.Status, nil
}

func lost(ctx context.Context, dir string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return muster.Errorf(muster.EUnavailable, "%s did not answer", filepath.Base(dir)).WithHint("see %s", Log(dir)).Wrap(err)
}

// listen opens the socket of this machine. Whoever holds the machine's lock may
// take the place of one that was killed.
func listen(ctx context.Context, dir string) (net.Listener, error) {
	path := filepath.Join(dir, controlFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return ln, os.Chmod(path, 0o600)
}

// serve answers on the socket until it is closed.
func (m *Machine) serve(ctx context.Context, ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go m.answer(ctx, conn)
	}
}

func (m *Machine) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	line, err := bufio.NewReaderSize(io.LimitReader(conn, maxRequest), maxRequest).ReadBytes('\n')
	if err != nil {
		return
	}
	var a Answer
	r, err := parseRequest(line)
	if err == nil {
		a, err = m.ask(ctx, r)
	}
	if err != nil {
		var e *muster.Error
		if !errors.As(err, &e) {
			e = muster.Errorf(muster.EInternal, "%v", err)
		}
		a.Error = e
	}
	if err := json.NewEncoder(conn).Encode(a); err != nil {
		m.log.Warn("control reply failed", "error", fmt.Sprint(err))
	}
}
