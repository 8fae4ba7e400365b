package bmc

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/muster-hpc/muster/metal/power/rmcp"
)

const (
	openTime = 10 * time.Second // to finish opening a session
	idleTime = time.Minute      // of a session that nobody uses (6.12.15)
	window   = 16               // how far packets may overtake each other
)

// ipmiSession is one session, or one that is being opened.
type ipmiSession struct {
	rmcp.Exchange
	keys     rmcp.Keys
	open     bool
	named    bool // RAKP 1 came
	role     byte // now
	until    time.Time
	sequence uint32 // of what is sent
	seen     uint32 // the highest received
	mask     uint32 // of those before it
}

// openSession answers the request for a session (13.17).
func (b *BMC) openSession(payload []byte) []byte {
	q, err := rmcp.ParseOpenRequest(payload)
	if err != nil {
		return nil
	}
	reply := rmcp.OpenReply{Tag: q.Tag, ConsoleID: q.ConsoleID, Role: q.Role, Suite: q.Suite}
	if reply.Role == 0 {
		reply.Role = b.cfg.Role
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire()
	switch {
	case b.faults.RefusesSessions:
		reply.Status = rmcp.StatusBadLength
	case q.Suite.ID == 0:
		reply.Status = rmcp.StatusNoSuite
	case b.faults.TableFull || len(b.ipmi) >= b.cfg.Sessions:
		reply.Status = rmcp.StatusNoResources
	default:
		s := &ipmiSession{until: b.clock.Now().Add(openTime)}
		s.Suite, s.ConsoleID, s.SystemID, s.GUID = q.Suite, q.ConsoleID, b.freshID(), b.guid
		b.ipmi[s.SystemID] = s
		reply.SystemID = s.SystemID
	}
	return rmcp.Plain(rmcp.TypeOpenReply, reply.Bytes())
}

// freshID is random and in use by nobody. The caller holds mu.
func (b *BMC) freshID() uint32 {
	for {
		var id [4]byte
		_, _ = rand.Read(id[:])
		n := binary.LittleEndian.Uint32(id[:])
		if _, taken := b.ipmi[n]; n != 0 && !taken {
			return n
		}
	}
}

// expire drops what nobody used. The caller holds mu.
func (b *BMC) expire() {
	now := b.clock.Now()
	for id, s := range b.ipmi {
		if now.After(s.until) {
			delete(b.ipmi, id)
		}
	}
}

// rakp1 names the account; the answer proves that the password is known here.
func (b *BMC) rakp1(payload []byte) []byte {
	q, err := rmcp.ParseRAKP1(payload)
	if err != nil {
		return nil
	}
	password := []byte(b.password())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire()
	reply := rmcp.RAKP2{Tag: q.Tag}
	s := b.ipmi[q.SystemID]
	switch {
	case s == nil || s.open:
		reply.Status = rmcp.StatusBadSession
	case q.User != b.cfg.User:
		reply.Status, reply.ConsoleID = rmcp.StatusBadName, s.ConsoleID
		delete(b.ipmi, q.SystemID)
		b.attempts++
	case q.Role&0x0f > b.cfg.Role:
		reply.Status, reply.ConsoleID = rmcp.StatusNoRole, s.ConsoleID
		delete(b.ipmi, q.SystemID)
	default:
		s.ConsoleRandom, s.Role, s.User = q.Random, q.Role, q.User
		if !s.named { // a packet that came twice gets the same answer
			_, _ = rand.Read(s.SystemRandom[:])
		}
		s.named = true
		reply.ConsoleID, reply.Random, reply.GUID = s.ConsoleID, s.SystemRandom, s.GUID
		reply.Code = s.SystemCode(password)
	}
	return rmcp.Plain(rmcp.TypeRAKP2, reply.Bytes())
}

// rakp3 is the console's proof; the session is open if it is right.
func (b *BMC) rakp3(payload []byte) []byte {
	q, err := rmcp.ParseRAKP3(payload)
	if err != nil {
		return nil
	}
	password := []byte(b.password())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire()
	reply := rmcp.RAKP4{Tag: q.Tag}
	s := b.ipmi[q.SystemID]
	switch {
	case s == nil || !s.named:
		reply.Status = rmcp.StatusBadSession
	case q.Status != rmcp.StatusDone:
		delete(b.ipmi, q.SystemID) // the console gave up: no answer is due
		if q.Status == rmcp.StatusBadCode {
			b.attempts++ // it compared the proofs, and they differ
		}
		return nil
	case !hmac.Equal(q.Code, s.ConsoleCode(password)):
		reply.Status, reply.ConsoleID = rmcp.StatusBadCode, s.ConsoleID
		delete(b.ipmi, q.SystemID)
		b.attempts++
	default:
		if !s.open {
			s.keys, s.open = s.Keys([]byte(b.cfg.Key), password), true
			s.role = rmcp.RoleUser
			s.until = b.clock.Now().Add(idleTime)
		}
		reply.ConsoleID, reply.Check = s.ConsoleID, s.keys.Check()
	}
	return rmcp.Plain(rmcp.TypeRAKP4, reply.Bytes())
}

// inSession opens a sealed packet, carries its command out and seals the answer.
func (b *BMC) inSession(p rmcp.Packet) []byte {
	b.mu.Lock()
	b.expire()
	s := b.ipmi[p.Session]
	if s == nil || !s.open {
		b.mu.Unlock()
		return nil
	}
	payload, err := s.keys.Open(p, s.SystemID)
	if err != nil || !s.fresh(p.Sequence) || p.Type != rmcp.TypeIPMI {
		b.mu.Unlock()
		return nil
	}
	s.until = b.clock.Now().Add(idleTime)
	garble := b.faults.Garbles
	b.mu.Unlock()

	q, err := rmcp.ParseRequest(payload)
	if err != nil {
		return nil
	}
	r := rmcp.Response{Function: q.Function, Sequence: q.Sequence, Command: q.Command}
	r.Code, r.Data = b.command(s, q)

	b.mu.Lock()
	defer b.mu.Unlock()
	s.sequence++
	sealed, err := s.keys.Seal(rmcp.TypeIPMI, s.ConsoleID, s.sequence, r.Bytes())
	if err != nil {
		return nil
	}
	if garble {
		sealed[len(sealed)/2] ^= 0xff
	}
	return sealed
}

// fresh accepts each number once, within a window (6.12.13). The caller holds mu.
func (s *ipmiSession) fresh(n uint32) bool {
	switch {
	case n == 0:
		return false
	case n > s.seen:
		if n-s.seen > window && s.seen != 0 {
			return false
		}
		s.mask = s.mask<<(n-s.seen) | 1
		s.seen = n
		return true
	case s.seen-n >= window || s.mask&(1<<(s.seen-n)) != 0:
		return false
	}
	s.mask |= 1 << (s.seen - n)
	return true
}

// DropSessions forgets all sessions, as a controller that was restarted.
func (b *BMC) DropSessions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.ipmi)
	clear(b.web)
}
