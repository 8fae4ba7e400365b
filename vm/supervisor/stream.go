package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/vm/qmp"
)

const (
	// stateFD is QEMU's name of the descriptor by which a state goes.
	stateFD = "state"
	// poll is how often QEMU is asked how far it is.
	poll = 20 * time.Millisecond
	// fastest is what bounds the rate of a state, in bytes a second: the descriptor does.
	fastest = 1 << 40
)

// Streamed is what a state was as QEMU counts it.
type Streamed struct {
	Bytes int64 `json:"bytes"` // written or read
}

// stream has QEMU write its state to a descriptor that comes by the connection, or read it from there. The machine stands still
// before, and afterwards.
func (v *vm) stream(ctx context.Context, conn net.Conn, do string) (json.RawMessage, error) {
	f, err := takeFile(conn)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // who asked has gone
		_, _ = conn.Read(make([]byte, 1))
		cancel()
	}()
	if err := v.monitor.Give(ctx, stateFD, f); err != nil {
		return nil, err
	}
	_ = f.Close() // QEMU's alone: its end is the other side's
	command := "migrate"
	if do == doLoad {
		command = "migrate-incoming"
	} else if _, err := v.monitor.Do(ctx, "migrate-set-parameters", map[string]int64{"max-bandwidth": fastest}); err != nil {
		return nil, err
	}
	if _, err := v.monitor.Do(ctx, command, map[string]string{"uri": "fd:" + stateFD}); err != nil {
		return nil, err
	}
	for {
		text, err := v.monitor.Do(ctx, "query-migrate", nil)
		if err != nil {
			return nil, v.giveUp(ctx, do, err)
		}
		var m qmp.Migration
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, err
		}
		switch m.Status {
		case "completed":
			return json.Marshal(Streamed{Bytes: m.RAM.Transferred})
		case "failed", "cancelled":
			return nil, fmt.Errorf("QEMU could not %s the state: %s", do, m.Error)
		}
		select {
		case <-ctx.Done():
			return nil, v.giveUp(ctx, do, ctx.Err())
		case <-time.After(poll):
		}
	}
}

// giveUp stops QEMU writing: the machine goes on if it is told to.
func (v *vm) giveUp(ctx context.Context, do string, err error) error {
	if do == doLoad {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toldTime)
	defer cancel()
	_, undo := v.monitor.Do(ctx, "migrate_cancel", nil)
	return errors.Join(err, undo)
}

// takeFile receives a descriptor.
func takeFile(conn net.Conn) (*os.File, error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("no file can be taken from this connection")
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	list, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(list) != 1 {
		return nil, errors.Join(errors.New("no file came"), err)
	}
	fds, err := unix.ParseUnixRights(&list[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("no file came"), err)
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "state"), nil
}

// Save has QEMU write the state of the machine, which stands still, to a pipe or socket. It is written as a whole only
// where Save returns nil.
func (k *Supervisor) Save(ctx context.Context, to *os.File) (Streamed, error) {
	return k.stream(ctx, doSave, to)
}

// Load has a QEMU that was started for it read a state. The machine stands still afterwards.
func (k *Supervisor) Load(ctx context.Context, from *os.File) (Streamed, error) {
	return k.stream(ctx, doLoad, from)
}

func (k *Supervisor) stream(ctx context.Context, do string, f *os.File) (Streamed, error) {
	conn, err := k.dial(ctx)
	if err != nil {
		return Streamed{}, err
	}
	defer conn.Close()
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return Streamed{}, errors.New("the supervisor takes no files")
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := writeLine(conn, request{Do: do}); err != nil {
		return Streamed{}, err
	}
	if _, _, err := c.WriteMsgUnix([]byte{0}, unix.UnixRights(int(f.Fd())), nil); err != nil {
		return Streamed{}, err
	}
	line, err := readLine(conn, maxLine)
	if ctx.Err() != nil {
		return Streamed{}, ctx.Err()
	}
	if err != nil {
		return Streamed{}, fmt.Errorf("the supervisor ended: %w", err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return Streamed{}, err
	}
	if a.Error != "" {
		return Streamed{}, errors.New(a.Error)
	}
	var s Streamed
	return s, json.Unmarshal(a.Return, &s)
}

// Tell writes one line to the machine, by its channel: it has to be JSON, of 4 KiB at most.
func (k *Supervisor) Tell(ctx context.Context, line any) error {
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return k.ask(ctx, request{Do: doTell, Line: b}, &struct{}{})
}
