package ipmi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power/rmcp"
)

// nameOnly finds the account by its name alone.
const nameOnly = 0x10

// openSession opens one, with the best suite that the controller speaks.
func (d *driver) openSession(ctx context.Context) (*session, error) {
	var last error
	for _, suite := range rmcp.Suites() {
		if d.quirk.suite != 0 && d.quirk.suite != suite.ID {
			continue
		}
		s, err := d.dial(ctx)
		if err != nil {
			return nil, err
		}
		err = d.handshake(ctx, s, suite)
		if err == nil {
			return s, nil
		}
		_ = s.close(context.WithoutCancel(ctx))
		var no *refusal
		if last = err; !errors.As(err, &no) || !no.suite {
			return nil, err
		}
	}
	return nil, last
}

// handshake is the key exchange (13.15): each side proves that it knows the
// password, and neither sends it.
func (d *driver) handshake(ctx context.Context, s *session, suite rmcp.Suite) error {
	password, err := d.t.Secret(ctx)
	if err != nil {
		return muster.Errorf(muster.EUnauth, "its controller's password cannot be fetched").Because(muster.ReasonControllerRefuses).Wrap(err)
	}
	if len(password) > rmcp.MaxPassword {
		return muster.Errorf(muster.EInvalid, "its controller's password is longer than the 20 bytes that IPMI allows")
	}
	key, err := d.key(ctx)
	if err != nil {
		return err
	}
	role := rmcp.RoleOperator
	if d.quirk.administrator {
		role = rmcp.RoleAdministrator
	}
	s.x = rmcp.Exchange{Suite: suite, ConsoleID: number(), Role: role | nameOnly, User: d.t.Address.User}
	if err := s.ask(ctx, role); err != nil {
		return err
	}
	if err := s.prove(ctx, password); err != nil {
		return err
	}
	s.keys = s.x.Keys(key, password)
	if err := s.finish(ctx, password); err != nil {
		return err
	}
	s.open = true
	_, err = s.command(ctx, rmcp.App, rmcp.SetPrivilege, role)
	return err
}

// key is the controller's K_G; empty where nobody gave one.
func (d *driver) key(ctx context.Context) ([]byte, error) {
	if d.t.Key == nil {
		return nil, nil
	}
	key, err := d.t.Key(ctx)
	if err != nil {
		return nil, muster.Errorf(muster.EUnauth, "its controller's key K_G cannot be fetched").Because(muster.ReasonControllerRefuses).Wrap(err)
	}
	return key, nil
}

// ask requests the session.
func (s *session) ask(ctx context.Context, role byte) error {
	var reply rmcp.OpenReply
	q := rmcp.OpenRequest{Tag: byte(number()), Role: role, ConsoleID: s.x.ConsoleID, Suite: s.x.Suite}
	err := s.step(ctx, rmcp.TypeOpenRequest, q.Bytes(), rmcp.TypeOpenReply, func(b []byte) bool {
		var err error
		reply, err = rmcp.ParseOpenReply(b)
		return err == nil && reply.Tag == q.Tag && (reply.Status != rmcp.StatusDone || reply.ConsoleID == q.ConsoleID)
	})
	switch {
	case err != nil:
		return err
	case reply.Status != rmcp.StatusDone:
		return refusedSession(reply.Status)
	case reply.Suite.ID != s.x.Suite.ID:
		// What was not asked for is not used: it may be weaker.
		return oddSession("its IPMI controller answered with another cipher suite than it was asked for")
	}
	s.x.SystemID = reply.SystemID
	return nil
}

// prove sends our random number, and checks that the controller knows the
// password.
func (s *session) prove(ctx context.Context, password []byte) error {
	_, _ = rand.Read(s.x.ConsoleRandom[:]) // never fails: crypto/rand aborts the program instead
	var reply rmcp.RAKP2
	q := rmcp.RAKP1{Tag: byte(number()), SystemID: s.x.SystemID, Random: s.x.ConsoleRandom, Role: s.x.Role, User: s.x.User}
	err := s.step(ctx, rmcp.TypeRAKP1, q.Bytes(), rmcp.TypeRAKP2, func(b []byte) bool {
		var err error
		reply, err = rmcp.ParseRAKP2(b)
		return err == nil && reply.Tag == q.Tag && (reply.Status != rmcp.StatusDone || reply.ConsoleID == s.x.ConsoleID)
	})
	if err != nil {
		return err
	}
	if reply.Status != rmcp.StatusDone {
		return refusedSession(reply.Status)
	}
	s.x.SystemRandom, s.x.GUID = reply.Random, reply.GUID
	want := s.x.SystemCode(password)
	if len(reply.Code) != len(want) {
		return oddSession("its IPMI controller's proof has an odd length")
	}
	if !hmac.Equal(reply.Code, want) {
		s.tellWrong(ctx)
		return refusedSession(rmcp.StatusBadCode)
	}
	return nil
}

// tellWrong lets the controller free the session that will not come to be.
func (s *session) tellWrong(ctx context.Context) {
	if ctx.Err() == nil {
		_, _ = s.conn.Write(rmcp.Plain(rmcp.TypeRAKP3, rmcp.RAKP3{Status: rmcp.StatusBadCode, SystemID: s.x.SystemID}.Bytes()))
	}
}

// finish sends our proof, and checks that the controller has the same keys.
func (s *session) finish(ctx context.Context, password []byte) error {
	var reply rmcp.RAKP4
	q := rmcp.RAKP3{Tag: byte(number()), SystemID: s.x.SystemID, Code: s.x.ConsoleCode(password)}
	err := s.step(ctx, rmcp.TypeRAKP3, q.Bytes(), rmcp.TypeRAKP4, func(b []byte) bool {
		var err error
		reply, err = rmcp.ParseRAKP4(b)
		return err == nil && reply.Tag == q.Tag && (reply.Status != rmcp.StatusDone || reply.ConsoleID == s.x.ConsoleID)
	})
	if err != nil {
		return err
	}
	if reply.Status != rmcp.StatusDone {
		return refusedSession(reply.Status)
	}
	if !hmac.Equal(reply.Check, s.keys.Check()) {
		return otherKeys()
	}
	return nil
}

// step is one exchange in the clear.
func (s *session) step(ctx context.Context, kind rmcp.Type, payload []byte, want rmcp.Type, accept func([]byte) bool) error {
	packet := rmcp.Plain(kind, payload)
	return s.exchange(ctx, func() ([]byte, error) { return packet, nil }, func(p rmcp.Packet) bool {
		return p.Plus && p.Session == 0 && p.Type == want && accept(p.Payload)
	})
}

// number is random and not zero.
func number() uint32 {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:])
		if n := binary.LittleEndian.Uint32(b[:]); n != 0 {
			return n
		}
	}
}
