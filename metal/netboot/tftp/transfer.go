package tftp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

// overhead is IPv4's and UDP's and TFTP's headers: packets that are larger than
// the link come in fragments, which firmware cannot put together.
const overhead = 20 + 8 + 4

// transfer sends one file over a socket of its own.
func (s *Server) transfer(ctx context.Context, to netip.AddrPort, r request, file []byte) {
	r.block = min(r.block, s.mtu-overhead)
	r.window = min(r.window, maxWindow)
	d := net.Dialer{Control: s.bound, LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.Address, 0))}
	c, err := d.DialContext(ctx, "udp4", to.String())
	if err != nil {
		s.Note(to.Addr(), "tftp", "cannot send "+r.name+": "+err.Error())
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	x := &sending{conn: c, file: file, block: max(r.block, 0), window: max(r.window, 1), resend: firstResend}
	if x.block == 0 {
		x.block = 512
	}
	if r.timeout > 0 {
		x.resend = time.Duration(r.timeout) * time.Second
	}
	began := time.Now()
	err = x.run(r)
	switch {
	case err == nil:
		s.Note(to.Addr(), "tftp", fmt.Sprintf("sent %s, %d bytes in %v", r.name, len(file), time.Since(began).Round(time.Millisecond)))
	case errors.Is(err, errEnough):
		// UEFI asks for the size first and stops there.
	case ctx.Err() == nil:
		s.Note(to.Addr(), "tftp", "stopped sending "+r.name+": "+err.Error())
	}
}

// errEnough is what a client's ERROR packet means: it has what it wanted.
var errEnough = errors.New("the client stopped")

// sending is the state of one transfer. Blocks count from 1; on the wire their
// number has 16 bits and begins again at 0.
type sending struct {
	conn   net.Conn
	file   []byte
	block  int
	window int
	resend time.Duration
	acked  int       // blocks that the client has
	until  time.Time // when waiting ends, as the socket knows it
	out    []byte
	in     [maxRequest]byte
}

// blocks is how many the file has; the last is shorter than the others, and may be
// empty: that is its mark.
func (x *sending) blocks() int { return len(x.file)/x.block + 1 }

func (x *sending) run(r request) error {
	x.out = make([]byte, 0, 4+max(x.block, maxRequest))
	if r.options() {
		x.out = r.appendOACK(x.out[:0], len(x.file))
		if err := x.exchange(func() error { _, err := x.conn.Write(x.out); return err }, 0); err != nil {
			return err
		}
	}
	for x.acked < x.blocks() {
		if err := x.exchange(x.sendWindow, min(x.acked+x.window, x.blocks())); err != nil {
			return err
		}
	}
	return nil
}

// sendWindow sends the blocks after the last that the client has.
func (x *sending) sendWindow() error {
	for n := x.acked + 1; n <= min(x.acked+x.window, x.blocks()); n++ {
		from := (n - 1) * x.block
		x.out = append(x.out[:0], 0, opData)
		x.out = binary.BigEndian.AppendUint16(x.out, uint16(n))
		x.out = append(x.out, x.file[from:min(from+x.block, len(x.file))]...)
		if _, err := x.conn.Write(x.out); err != nil {
			return err
		}
	}
	return nil
}

// errGap is a client that misses the first block of a window and got a later one.
var errGap = errors.New("a block is missing")

// exchange sends, and sends again, until the client acknowledges something new, at
// most block last. When it acknowledges an old block that is not answered at once,
// or two copies on the way would double for ever; but for a window it is, once.
func (x *sending) exchange(send func() error, last int) error {
	wait, gap := x.resend, x.window > 1 && last > x.acked+1
	for range retries {
		if err := send(); err != nil {
			return err
		}
		if err := x.patience(wait); err != nil {
			return err
		}
		n, err := x.ack(last, gap)
		switch {
		case err == nil:
			x.acked = n
			return nil
		case errors.Is(err, errGap):
			gap = false
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		wait = min(2*wait, max(maxResend, x.resend))
	}
	return fmt.Errorf("no answer for %d blocks in %d tries, after block %d", last-x.acked, retries, x.acked)
}

// patience makes reads end after wait, or half as much again: setting the time for
// every block anew costs as much as sending it.
func (x *sending) patience(wait time.Duration) error {
	if left := time.Until(x.until); left >= wait && left <= 2*wait {
		return nil
	}
	x.until = time.Now().Add(wait * 3 / 2)
	return x.conn.SetReadDeadline(x.until)
}

// ack waits for a word of the client about the blocks under way.
func (x *sending) ack(last int, gap bool) (int, error) {
	for {
		n, err := x.conn.Read(x.in[:])
		if err != nil {
			return 0, err
		}
		if n < 4 || x.in[0] != 0 {
			continue
		}
		switch x.in[1] {
		case opError:
			return 0, errEnough
		case opAck:
			// How far after the last known one, in 16 bits.
			ahead := int(binary.BigEndian.Uint16(x.in[2:4]) - uint16(x.acked))
			if last == 0 && ahead == 0 || ahead > 0 && x.acked+ahead <= last {
				return x.acked + ahead, nil
			}
			if ahead == 0 && gap {
				return 0, errGap
			}
		}
	}
}
