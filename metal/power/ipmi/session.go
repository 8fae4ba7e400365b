package ipmi

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power/rmcp"
)

// A packet may be lost: it is sent again after this time, so often.
const (
	resend = time.Second
	sends  = 4
)

// session is one session with a controller.
type session struct {
	conn     net.Conn
	place    string // host and port, for messages
	x        rmcp.Exchange
	keys     rmcp.Keys
	open     bool
	sequence uint32 // of what was sent
	seen     uint32 // of what was received
	request  byte   // number of the last request
}

// command sends a request until its answer comes, and returns the answer's
// data. A refusal of the controller is a *refusal.
func (s *session) command(ctx context.Context, f rmcp.Function, command byte, data ...byte) ([]byte, error) {
	s.request = (s.request + 1) % 64
	q := rmcp.Request{Function: f, Sequence: s.request, Command: command, Data: data}
	var r rmcp.Response
	err := s.exchange(ctx, func() ([]byte, error) {
		s.sequence++ // also when it is sent again: old numbers are dropped
		return s.keys.Seal(rmcp.TypeIPMI, s.x.SystemID, s.sequence, q.Bytes())
	}, func(p rmcp.Packet) bool {
		payload, err := s.keys.Open(p, s.x.ConsoleID)
		if err != nil || p.Type != rmcp.TypeIPMI || p.Sequence <= s.seen {
			return false // forged, damaged, or said before
		}
		s.seen = p.Sequence
		r, err = rmcp.ParseResponse(payload)
		return err == nil && r.Answers(q)
	})
	if err != nil {
		return nil, err
	}
	if r.Code != rmcp.CodeDone {
		return nil, refusedBy(command, r.Code)
	}
	return r.Data, nil
}

// exchange sends what next makes until a packet that accept takes comes back.
// Whatever else arrives is dropped: it may be forged.
func (s *session) exchange(ctx context.Context, next func() ([]byte, error), accept func(rmcp.Packet) bool) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, rmcp.MaxPacket)
	for range sends {
		b, err := next()
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ended(ctx)
		}
		_ = s.conn.SetReadDeadline(time.Now().Add(resend))
		if ctx.Err() != nil { // it ended meanwhile, and its deadline was overwritten
			return ended(ctx)
		}
		if _, err := s.conn.Write(b); err != nil {
			return s.noAnswer(err)
		}
		for {
			n, err := s.conn.Read(buf)
			if ctx.Err() != nil {
				return ended(ctx)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return s.noAnswer(err) // nobody listens at the port
			}
			if p, err := rmcp.Parse(buf[:n]); err == nil && accept(p) {
				return nil
			}
		}
	}
	return s.noAnswer(nil)
}

func (s *session) noAnswer(err error) error {
	return muster.Errorf(muster.EUnavailable, "its IPMI controller at %s does not answer", s.place).Because(muster.ReasonControllerUnreachable).
		WithHint("see that IPMI over LAN is switched on in the controller, and that UDP reaches it from this server").Wrap(err)
}

// close says goodbye, once: controllers drop idle sessions anyway.
func (s *session) close(ctx context.Context) error {
	defer s.conn.Close()
	if !s.open {
		return nil
	}
	_, err := s.command(ctx, rmcp.App, rmcp.CloseSession, binary.LittleEndian.AppendUint32(nil, s.x.SystemID)...)
	return err
}

// abandon says goodbye without waiting for an answer: the controller may be
// gone, and must not keep a session for us if it is not.
func (s *session) abandon() {
	defer s.conn.Close()
	s.sequence++
	q := rmcp.Request{Function: rmcp.App, Command: rmcp.CloseSession, Data: binary.LittleEndian.AppendUint32(nil, s.x.SystemID)}
	if b, err := s.keys.Seal(rmcp.TypeIPMI, s.x.SystemID, s.sequence, q.Bytes()); err == nil {
		_, _ = s.conn.Write(b)
	}
}

// dial opens the socket. Packets of others than the controller's address do
// not arrive at it.
func (d *driver) dial(ctx context.Context) (*session, error) {
	host, port := d.t.Address.Endpoint()
	place := net.JoinHostPort(host, strconv.Itoa(port))
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp", place)
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "its IPMI controller at %s cannot be reached", place).Because(muster.ReasonControllerUnreachable).
			WithHint("see that the name is right and that this server has a route to it").Wrap(err)
	}
	return &session{conn: conn, place: place}, nil
}
