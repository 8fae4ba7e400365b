package boot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Channel is a serial port of a virtual machine, at whose other end its host answers: one line for each
// question, in the form of a BootReply. Who answers there needs no proof: it made the machine. The
// task comes once.
type Channel struct {
	port io.ReadWriter
	in   *bufio.Reader
	late bool // an answer may still come that nobody waits for
}

var _ Greeter = (*Channel)(nil)

// openChannel opens the port of this name, to ask for the task.
func openChannel(name string) (*Channel, error) {
	f, err := openPort(name)
	if err != nil {
		return nil, err
	}
	return newChannel(f), nil
}

// openPort opens the port of this name. What comes is bytes, not what somebody types.
func openPort(name string) (*os.File, error) {
	f, err := os.OpenFile("/dev/"+name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the port that muster.channel names cannot be opened").
			WithHint("the kernel needs a driver for it, built in").Wrap(err)
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		t.Iflag, t.Oflag, t.Lflag = unix.IGNBRK, 0, 0
		t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB|unix.CRTSCTS) | unix.CS8 | unix.CREAD | unix.CLOCAL
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETSF, t) // what came before is nobody's
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("set up %s: %w", name, err)
	}
	return f, nil
}

func newChannel(port io.ReadWriter) *Channel {
	return &Channel{port: port, in: bufio.NewReaderSize(port, 64<<10)}
}

// Key is nil: a host that answers by a channel needs no proof of who asks.
func (c *Channel) Key() []byte { return nil }

// answerTime is how long the host may take: it has nothing to look up.
const answerTime = time.Minute

// CheckIn asks for the task. What the machine says of itself does not pass: its host sees its console.
func (c *Channel) CheckIn(ctx context.Context, _ wire.BootCheckIn) (*wire.BootReply, error) {
	if c.late {
		return nil, muster.Errorf(muster.EUnavailable, "the host does not answer on the channel").WithHint("restart the node")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	type said struct {
		line []byte
		err  error
	}
	answer := make(chan said, 1)
	go func() { // a port cannot be read with a limit of time
		if _, err := io.WriteString(c.port, "\ntask\n"); err != nil {
			answer <- said{nil, err}
			return
		}
		line, err := readReply(c.in)
		answer <- said{line, err}
	}()
	select {
	case a := <-answer:
		if a.err != nil {
			return nil, muster.Errorf(muster.EUnavailable, "the host gives no answer on the channel").Wrap(a.err)
		}
		defer clear(a.line) // it holds a token
		return wire.DecodeBootReply(a.line)
	case <-ctx.Done():
		c.late = true
		return nil, muster.Errorf(muster.EUnavailable, "the host does not answer on the channel").Wrap(ctx.Err())
	}
}

// readReply reads one line that is not empty, as long as a reply may be.
func readReply(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		b, err := in.ReadByte()
		switch {
		case err != nil:
			return nil, err
		case b == '\n' && len(line) > 0:
			return line, nil
		case b == '\n' || b == '\r':
		case len(line) >= wire.MaxBootReply:
			return nil, errors.New("the line is too long")
		default:
			line = append(line, b)
		}
	}
}

// validChannel reports whether a name is one of a serial port.
func validChannel(name string) bool {
	rest, ok := strings.CutPrefix(name, "tty")
	return ok && rest != "" && len(rest) <= 16 && strings.Trim(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == ""
}
